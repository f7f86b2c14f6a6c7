"""The page: a title, one sentence that says what happened, and sections of blocks, as one HTML file.

It fetches nothing and runs nothing: styles and pictures are inside it, and its content security policy holds browsers
to that.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from entourage import __version__
from entourage.report.templates import Block, templates

__all__ = ["Page", "Section"]


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """What links to the section name.

        >>> Section("Wins and losses", []).anchor
        'wins-and-losses'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """All that a report says; sections without blocks are left out."""

    title: str
    headline: str
    """What happened, in one sentence."""
    sections: Sequence[Section]
    lede: str = ""
    """Further notes."""
    footer: str = ""

    @property
    def shown(self) -> list[Section]:
        """The sections that have something to show."""
        return [section for section in self.sections if section.blocks]

    def html(self) -> str:
        """The whole document."""
        return templates().get_template("page.html").render(page=self, version=__version__)
