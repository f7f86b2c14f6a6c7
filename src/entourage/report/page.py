"""The page: a title, one sentence that says what happened, and sections of blocks, as one HTML file.

It fetches nothing and runs nothing: styles and pictures are inside it, and its content security policy holds browsers
to that. What is not a block of this package reaches the page only as escaped text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Protocol

from entourage import __version__

__all__ = ["Block", "Page", "Section"]


class Block(Protocol):
    """A part of a section that knows its HTML."""

    def html(self) -> str: ...


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

    def html(self) -> str:
        heading = f'<h2 id="{self.anchor}-title">{escape(self.title)}</h2>'
        inside = "\n".join(block.html() for block in self.blocks)
        return f'<section id="{self.anchor}" aria-labelledby="{self.anchor}-title">\n{heading}\n{inside}\n</section>'


@dataclass(frozen=True)
class Page:
    """All that a report says; sections without blocks are left out."""

    title: str
    headline: str
    """What happened, in one sentence."""
    sections: Sequence[Section]
    lede: str = ""
    """What should be known besides."""
    footer: str = ""

    def html(self) -> str:
        """The whole document."""
        shown = [section for section in self.sections if section.blocks]
        contents = (f'<li><a href="#{section.anchor}">{escape(section.title)}</a></li>' for section in shown)
        template = Template(files("entourage.report").joinpath("page.html").read_text(encoding="utf-8"))
        return template.substitute(
            version=escape(__version__),
            title=escape(self.title),
            headline=escape(_unbroken(self.headline)),
            lede=f'<p class="lede">{escape(_unbroken(self.lede))}</p>' if self.lede else "",
            contents="\n".join(contents),
            sections="\n".join(section.html() for section in shown),
            footer=escape(self.footer),
        )


def _unbroken(text: str) -> str:
    """No line begins with a unit: a number and its percent sign stay together."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
