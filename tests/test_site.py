"""The documentation as a site: built strictly, every page and public name in it, nothing asked of other hosts."""

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import entourage

ROOT = Path(__file__).parent.parent
pytest.importorskip("mkdocs", reason="the site is built with `entourage[docs]`")
pytest.importorskip("mkdocstrings", reason="the site is built with `entourage[docs]`")


class Asked(HTMLParser):
    """What a browser would fetch for a page without being asked to: everything but the targets of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag != "a":
            self.addresses += [found[name] for name in ("src", "href", "poster") if found.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(site):
    wanted = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    wanted |= {Path(name) for name in ("changelog.html", "contributing.html", "security.html")}
    assert [str(path) for path in sorted(wanted) if not (site / path).is_file()] == []


def test_no_page_fetches_anything_from_another_host(site):
    for page in site.rglob("*.html"):
        asked = Asked(page.read_text(encoding="utf-8")).addresses
        assert asked
        assert [each for each in asked if re.match(r"(https?:)?//", each)] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text(encoding="utf-8")), style.name


def test_every_public_name_has_its_place_in_the_reference(site):
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    missing = [name for name in entourage.__all__ if name != "__version__" and f">{name}</" not in shown]
    assert missing == []


def test_every_public_method_is_in_the_reference_inherited_ones_too(site):
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    for value in [getattr(entourage, name) for name in entourage.__all__]:
        if not inspect.isclass(value) or issubclass(value, (Exception, Warning)):
            continue
        ours = [base for base in value.__mro__ if base.__module__.startswith("entourage.")]
        names = {name for base in ours for name, member in vars(base).items() if _is_public(name, member)}
        missing = [name for name in sorted(names) if f'id="entourage.{value.__name__}.{name}"' not in shown]
        assert missing == [], value


def _is_public(name: str, member: object) -> bool:
    """Whether a method or property is for users, and written here: scikit-learn adds some to a class."""
    written = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
    here = getattr(written, "__module__", "").startswith("entourage.") if inspect.isroutine(written) else False
    return here and not name.startswith("_")


def test_links_to_sources_lead_to_pages_of_them(site):
    page = (site / "refiner.html").read_text(encoding="utf-8")
    assert 'href="source/src/entourage/refiner/relations.py.html"' in page
    assert "relation_features" in (site / "source/src/entourage/refiner/relations.py.html").read_text(encoding="utf-8")
    assert (site / "source/benchmarks/results/scaling.png").is_file()
