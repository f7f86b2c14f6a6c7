"""What single queries found, before and after.

Rankings are lists of the page, not a figure: they wrap on a phone, and a screen reader says which item is right. Right
is a solid frame with a tick, wrong a dashed one with a cross, unknown a plain one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from entourage.figures.appearance import Appearance, same_label
from entourage.report.pictures import picture_uri
from entourage.report.templates import Block

__all__ = ["Cell", "Ranking", "cells_of"]

SHOWN = 8  # items of every ranking
_THUMBNAIL = 96  # pixels; about twice the size it is shown at, for fine screens
_LONGEST = 160  # characters of a text
_SHORT = 8  # characters of ids that fit side by side


@dataclass(frozen=True)
class Cell(Block):
    """An item: what it is called, whether it is right (None: not known), and its picture as a data URI or its text."""

    name: str
    right: bool | None = None
    uri: str | None = None
    text: str = ""

    @property
    def shortened(self) -> str:
        """The text, or its beginning where it is long."""
        return self.text if len(self.text) <= _LONGEST else f"{self.text[: _LONGEST - 1].rstrip()}…"


@dataclass(frozen=True)
class Ranking(Block):
    """A query and what it found, nearest first; before is None where there is one state only."""

    title: str
    item: str
    """The id of the query."""
    note: str
    query: Cell
    after: Sequence[Cell]
    before: Sequence[Cell] | None = None
    moved: str = ""
    """Where matches went, which may be far below what is shown."""

    @property
    def lists(self) -> dict[str, Sequence[Cell]]:
        """What was found, by the title of each list."""
        return {"found": self.after} if self.before is None else {"before": self.before, "after": self.after}

    @property
    def kinds(self) -> list[str]:
        """Classes of the element, which decide the layout: one list or two; pictures, short ids or texts."""
        kinds = ["ranking"] if self.before is not None else ["ranking", "alone"]
        if self.query.uri is None:
            cells = (self.query, *self.after, *(self.before or ()))
            longest = max(len(text) for cell in cells for text in (cell.text, cell.name))
            kinds.append("ids" if longest <= _SHORT else "words")
        return kinds


def cells_of(
    queries: Appearance, row: int, gallery: Appearance, found: Sequence[int] | np.ndarray
) -> tuple[Cell, list[Cell]]:
    """Show a query and the gallery items it found as cells.

    Parameters
    ----------
    queries, gallery : Appearance
        How the items look.
    row : int
        The query.
    found : (k,)
        Rows of the gallery, nearest first; the first eight are shown.

    Returns
    -------
    query : Cell
    found : list of Cell
    """
    items = [_cell(gallery, other, same_label(queries, row, gallery, other)) for other in found[:SHOWN]]
    return _cell(queries, row, None), items


def _cell(appearance: Appearance, row: int, right: bool | None) -> Cell:
    picture = appearance.thumbnail(row, _THUMBNAIL)
    uri = None if picture is None else picture_uri(picture)
    return Cell(appearance.name(row), right, uri, appearance.text(row))
