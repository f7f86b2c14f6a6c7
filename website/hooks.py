"""What the site adds to docs/: pages that lie at the root of the repository, and whatever links of pages lead out to.

The pages are written for a repository, where links start from the file they stand in. Here README.md becomes the first
page, a linked source file a page of its own, and a linked picture of another folder comes along.
"""

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
AT_THE_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
PICTURES = (".png", ".webp", ".svg")
# A link with where it leads; not one to another host, nor to a heading of the same page.
LINK = re.compile(r"(?P<opening>\]\()(?!https?:|mailto:|#)(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")

NO_DESCRIPTION = re.compile(r'\s*–\s*<div class="doc-md-description">\s*</div>')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that the navigation does not list under "More", so that none is lost."""
    listed = set(_leaves(config.nav)) | set(AT_THE_ROOT.values())
    docs = Path(config.docs_dir)
    more = [page for page in sorted(_uri(path, docs) for path in docs.rglob("*.md")) if page not in listed]
    if more:
        config.nav = [*(config.nav or []), {"More": more}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and what pages link to outside docs/."""
    for name, uri in AT_THE_ROOT.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text(encoding="utf-8")))
    pages = [page for page in files.documentation_pages()]
    for path in sorted({target for page in pages for target in _outside(page)}):
        uri = site_uri(path)
        if files.get_file_from_path(uri) is not None:
            continue
        if path.suffix in PICTURES:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
        else:
            files.append(File.generated(config, uri, content=_as_page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where their targets are on the site."""
    here = PurePosixPath(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        target = _target(page.file, link["target"])
        if target is None:
            return link[0]
        return f"{link['opening']}{os.path.relpath(site_uri(target), here)}{link['anchor'] or ''})"

    return _outside_code(LINK, moved, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out the dash before the description of a parameter that has none."""
    return NO_DESCRIPTION.sub("", html)


def site_uri(path: PurePosixPath) -> str:
    """Where a file of the repository is on the site.

    >>> site_uri(PurePosixPath("docs/refiner.md")), site_uri(PurePosixPath("src/entourage/errors.py"))
    ('refiner.md', 'source/src/entourage/errors.py.md')
    """
    if path.parts[0] == "docs":
        return str(PurePosixPath(*path.parts[1:]))
    if str(path) == "README.md":
        return "index.md"
    name = AT_THE_ROOT.get(str(path))
    return name or (f"source/{path}" if path.suffix in PICTURES else f"source/{path}.md")


def _outside(file: File) -> set[PurePosixPath]:
    """The files outside docs/ that a page links to."""
    found: set[PurePosixPath] = set()

    def note(link: re.Match[str]) -> str:
        target = _target(file, link["target"])
        if target is not None and target.parts[0] != "docs" and str(target) != "README.md":
            found.add(target)
        return link[0]

    _outside_code(LINK, note, file.content_string)
    return found


def _target(file: File, link: str) -> PurePosixPath | None:
    """What a link of a page means, from the root of the repository; None if there is no such file."""
    root = {uri: name for name, uri in AT_THE_ROOT.items()}.get(file.src_uri)
    base = ROOT if root else (ROOT / "docs" / file.src_uri).parent
    path = Path(os.path.normpath(base / link))
    return PurePosixPath(_uri(path, ROOT)) if path.is_file() and path.is_relative_to(ROOT) else None


def _outside_code(pattern: re.Pattern[str], replace, text: str) -> str:
    """Replace what is not within a fenced block."""
    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else pattern.sub(replace, part) for part in parts)


def _as_page(path: PurePosixPath) -> str:
    language = {".py": "python", ".json": "json"}.get(path.suffix, "text")
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"# {path.name}\n\n`{path}`\n\n````{language}\n{text}\n````\n"


def _leaves(nav: object) -> list[str]:
    """Every page of a navigation."""
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav or []
    return [leaf for each in inner for leaf in _leaves(each)]


def _uri(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
