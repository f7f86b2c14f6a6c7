"""Wins and losses: how many queries got better or worse, and what single ones found, before and after.

Rankings are lists of the page, not a figure: they wrap on a phone, and a screen reader says which item is right. Right
is a solid frame with a tick, wrong a dashed one with a cross, unknown a plain one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Cell", "Ranking", "Tally", "cells_of"]

SHOWN = 8  # items of every ranking
_THUMBNAIL = 96  # pixels; about twice the size it is shown at, for fine screens
_LONGEST = 160  # characters of a text
_SHORT = 8  # characters of ids that fit side by side
_MARKS = {True: ("right", "✓"), False: ("wrong", "✗")}


@dataclass(frozen=True)
class Cell:
    """An item: what it is called, whether it is right (None: not known), and its picture as a data URI or its text."""

    name: str
    right: bool | None = None
    uri: str | None = None
    text: str = ""

    def html(self, tag: str = "li") -> str:
        kind, mark = _MARKS.get(self.right, ("", ""))
        badge = f'<span class="mark" aria-hidden="true">{mark}</span>' if mark else ""
        return f'<{tag} class="{f"cell {kind}".strip()}">{self._shown(kind)}{badge}</{tag}>'

    def _shown(self, kind: str) -> str:
        if self.uri is not None:
            told = escape(f"{self.name}, {kind}" if kind else self.name)
            return f'<img src="{self.uri}" alt="{told}" title="{told}">'
        spoken = f'<span class="unseen">{kind}: </span>' if kind else ""
        text = self.text if len(self.text) <= _LONGEST else f"{self.text[: _LONGEST - 1].rstrip()}…"
        # Of a right item the name is the query's, which the heading says.
        name = f"<small><bdi>{escape(self.name)}</bdi></small>" if self.name != text and not self.right else ""
        return f"<p>{spoken}<bdi>{escape(text)}</bdi>{name}</p>"


@dataclass(frozen=True)
class Ranking:
    """A query and what it found, nearest first; before is None where there is one state only."""

    title: str
    item: str
    """The id of the query."""
    note: str
    query: Cell
    after: Sequence[Cell]
    before: Sequence[Cell] | None = None

    def html(self) -> str:
        lists = [_list("found", self.after)]
        if self.before is not None:
            lists = [_list("before", self.before), _list("after", self.after)]
        shape = ["ranking"]
        shape += ["alone"] if self.before is None else []
        if self.query.uri is None:
            shape.append("ids" if self._longest() <= _SHORT else "words")
        item = f"<p>item <bdi>{escape(self.item)}</bdi></p>" if self.item != self.title else ""
        header = f"<header><h4><bdi>{escape(self.title)}</bdi></h4><p>{escape(self.note)}</p>{item}</header>"
        asked = f'<div class="asked"><p class="title">query</p>{self.query.html("div")}</div>'
        return f'<article class="{" ".join(shape)}">{header}{asked}{"".join(lists)}</article>'

    def _longest(self) -> int:
        cells = (self.query, *self.after, *(self.before or ()))
        return max(len(text) for cell in cells for text in (cell.text, cell.name))


@dataclass(frozen=True)
class Tally:
    """How many queries are good, neither, and bad: drawn as one bar, and said."""

    good: tuple[int, str]
    bad: tuple[int, str]
    neither: tuple[int, str] = (0, "")
    marks: tuple[str, str] = ("▲", "▼")

    def html(self) -> str:
        parts = (("right", self.marks[0], *self.good), ("", "", *self.neither), ("wrong", self.marks[1], *self.bad))
        bar = "".join(f'<span class="{kind}" style="--share: {count}"></span>' for kind, _, count, _ in parts if count)
        said = "".join(
            f'<li><span class="{kind}" aria-hidden="true">{mark}</span> {count:,} {escape(words)}</li>'
            for kind, mark, count, words in parts
            if words
        )
        return f'<div class="tally" aria-hidden="true">{bar}</div><ul class="counts">{said}</ul>'


def cells_of(queries, row: int, gallery, found) -> tuple[Cell, list[Cell]]:
    """A query and the gallery items it found, as cells.

    queries, gallery: figures.appearance.Appearance; row: of the query; found: rows of the gallery, nearest first.
    """
    from entourage.figures.appearance import same_label

    items = [_cell(gallery, other, same_label(queries, row, gallery, other)) for other in found[:SHOWN]]
    return _cell(queries, row, None), items


def _cell(appearance, row: int, right: bool | None) -> Cell:
    from entourage.report.pictures import picture_uri

    picture = appearance.thumbnail(row, _THUMBNAIL)
    uri = None if picture is None else picture_uri(picture)
    return Cell(appearance.name(row), right, uri, appearance.text(row))


def _list(title: str, cells: Sequence[Cell]) -> str:
    items = "".join(cell.html() for cell in cells)
    return f'<div><p class="title">{title}</p><ol aria-label="{title}, nearest first">{items}</ol></div>'
