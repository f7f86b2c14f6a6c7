"""What pyproject.toml cannot say: the README as a package index shows it, with links that lead out of the index.

The README links to files beside it, which a repository shows and an index does not have. Where [project.urls] names a
Source, links and pictures start from there; without one they stay as they are.
"""

import re
import sys
from pathlib import Path

from setuptools import setup

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent


def with_absolute_links(text: str, source: str | None) -> str:
    """The text with every relative link `](target)` starting from the repository; unchanged without one.

    >>> with_absolute_links("![a](docs/a.png), [b](docs/b.md#c)", "https://example.org/x")
    '![a](https://example.org/x/raw/HEAD/docs/a.png), [b](https://example.org/x/blob/HEAD/docs/b.md#c)'
    """
    if source is None:
        return text

    def absolute(link: re.Match[str]) -> str:
        opening, target = link["opening"], link["target"]
        if target.startswith("#"):
            return f"{opening}{source}{target})"
        return f"{opening}{source}/{'raw' if opening.startswith('!') else 'blob'}/HEAD/{target})"

    return re.sub(r"(?P<opening>!?\[[^\]]*\]\()(?!https?://|mailto:)(?P<target>[^)\s]+)\)", absolute, text)


def readme() -> str:
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project.get("urls", {}).get("Source")
    return with_absolute_links((HERE / "README.md").read_text(encoding="utf-8"), source and source.rstrip("/"))


if __name__ == "__main__":
    setup(long_description=readme(), long_description_content_type="text/markdown")
