"""One query: what it attended to, and how its nearest neighbours changed.

On the left lines run from the query to the items it attended to, one for each step, as wide as the attention. On the
right are its neighbours before and after, with an arrow from each place before to the place after. Where its attention
is not known, only the right part is drawn.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path

from entourage.errors import InputError
from entourage.figures.appearance import Appearance, same_label
from entourage.figures.sheet import INK, draw_cell, new_sheet, write, write_title
from entourage.figures.text import POINTS, shorten, wrap
from entourage.values import FloatArray, IntArray, Neighbors

__all__ = ["draw_query"]

_SHOWN = 8
_BLUES = ((0.62, 0.76, 0.88), (0.05, 0.24, 0.47))  # the first step and the last
_HEAD, _NOTE = 1.0, 0.2  # inches above the cells, and of a note there
_HAIR = 0.3  # points, of a line that stands for next to nothing
_NOTHING = 0.005  # an item that no step attends to more is not shown


@dataclass(frozen=True)
class _Layout:
    """Inches: of a cell, of the query, of the words beside cells, and of the space for lines and for arrows."""

    cell: tuple[float, float]
    query: tuple[float, float]
    words: float
    lines: float = 1.35
    arrows: float = 1.9
    attends: bool = True

    @property
    def attended(self) -> float:
        return self.query[0] + self.lines

    @property
    def before(self) -> float:
        if not self.attends:
            return self.query[0] + self.words + 0.35
        return self.attended + self.cell[0] + 2 * self.words + 0.35

    @property
    def after(self) -> float:
        return self.before + self.cell[0] + self.arrows

    @property
    def width(self) -> float:
        return self.after + self.cell[0] + self.words


_PICTURES = _Layout(cell=(0.7, 0.7), query=(1.3, 1.3), words=1.05)
_TEXTS = _Layout(cell=(2.2, 0.56), query=(1.6, 1.2), words=0.42, lines=1.2, arrows=1.7)
_IDS = _Layout(cell=(1.2, 0.42), query=(1.2, 0.6), words=1.05)


def draw_query(
    queries: Appearance,
    row: int,
    before: Neighbors,
    after: Neighbors,
    attention_rows: IntArray | None,
    weights: FloatArray | None,
    title: str,
    *,
    gallery: Appearance | None = None,
    positions: IntArray | None = None,
    note: str = "",
) -> Figure:
    """Draw one query with what it attended to and its first 8 neighbours before and after.

    Parameters
    ----------
    queries : Appearance
        How the queries look.
    row : int
        The query to draw.
    before, after : Neighbors
        The neighbours of this one query, (1, K) rows of the gallery. Those after the eighth are not drawn, but show
        where a new neighbour came from and where an old one went.
    attention_rows : array of shape (k,) or None
        The rows of the gallery that the query attended to; None if that is not known.
    weights : array of shape (T, k) or None
        How much, in each step; rows sum to 1. The 8 items attended to most are drawn.
    title : str
    gallery : Appearance, optional
        How the gallery looks; by default the queries are the gallery.
    positions : array of shape (8,), optional
        The ranks before, counted from 1, of the first neighbours after, where `before` is not deep enough to hold
        them.
    note : str, optional
        What is written below the title, such as where matches went that are not drawn.

    Returns
    -------
    matplotlib Figure
    """
    attends = weights is not None and attention_rows is not None
    attended = np.asarray(attention_rows, int) if attends else np.empty(0, int)
    shares = np.asarray(weights, float) if attends else np.zeros((1, 0))
    _check(before, after, attended, shares if attends else None)
    gallery = queries if gallery is None else gallery
    layout = {"pictures": _PICTURES, "texts": _TEXTS, "ids": _IDS}[gallery.kind]
    if gallery.labels is None:
        layout = replace(layout, words=_TEXTS.words)  # shares and ranks alone
    layout = replace(layout, attends=attends)
    count = max(1, min(_SHOWN, max(before.k, after.k, len(attended))))
    height = max(layout.cell[1] * count, layout.query[1] + 0.5)
    head = _HEAD + (_NOTE if note else 0)
    figure, axes = new_sheet(-0.15, layout.width + 0.1, -head, height + 0.3, 1.0)
    write_title(axes, 0, -head + 0.25, title)
    if note:
        write(axes, 0, -head + 0.52, shorten(note, layout.width, 9), size=9, color="0.35")
    shown = _most_attended(shares)
    middle = max(layout.cell[1] * (len(shown) if attends else count), layout.query[1] + 0.5) / 2
    sheet = _Sheet(axes, layout, queries, row, gallery, middle)
    sheet.query()
    if attends:
        sheet.attention(attended, shares, shown)
    sheet.rankings(before.rows[0], after.rows[0], positions)
    return figure


def _check(before: Neighbors, after: Neighbors, attended: IntArray, weights: FloatArray | None) -> None:
    for name, found in (("before", before), ("after", after)):
        if len(found) != 1:
            raise InputError(
                f"{name} has neighbours of {len(found)} queries; wanted only those of the query that is drawn"
            )
    if weights is not None and (weights.ndim != 2 or not weights.size or weights.shape[1] != len(attended)):
        raise InputError(f"weights have shape {weights.shape}; wanted (T, {len(attended)}), a row for each step")


def _most_attended(weights: FloatArray) -> IntArray:
    """The first 8 columns of weights (T, k), the one attended to most first; without those hardly attended to."""
    order = np.argsort(-weights.mean(axis=0), kind="stable")[:_SHOWN]
    return np.asarray(order[weights[:, order].max(axis=0) >= _NOTHING])


@dataclass(frozen=True)
class _Sheet:
    """What everything of one query is drawn on."""

    axes: Axes
    layout: _Layout
    queries: Appearance
    row: int
    gallery: Appearance
    middle: float
    """The height at which the query is drawn, in inches."""

    def query(self) -> None:
        """Draw the query, with its name below."""
        width, height = self.layout.query
        top = self.middle - height / 2
        draw_cell(
            self.axes, self.queries, self.row, 0, top, None, width=width, height=height, inset=0.03, edge=INK, size=9
        )
        if self.queries.name(self.row) != self.queries.text(self.row):
            name = shorten(self.queries.name(self.row), width, 9)
            write(self.axes, width / 2, top + height + 0.12, name, size=9, ha="center")
        write(self.axes, width / 2, top - 0.12, "query", size=9, ha="center", color="0.35")

    def attention(self, rows: IntArray, weights: FloatArray, shown: IntArray) -> None:
        """Draw the columns `shown` of rows (k,) and weights (T, k), each at the end of a bundle of lines."""
        (width, height), x = self.layout.cell, self.layout.attended
        for place, column in enumerate(shown):
            y = place * height
            self.cell(int(rows[column]), x, y)
            self.bundle(weights[:, column], x, y + height / 2, weights.max())
            self.words(x + width + 0.07, y, _share(weights[:, column]), int(rows[column]), "left")
        self.heading(x + width / 2, "attends to", "one line per step, the first on top; width: share of attention")
        left = weights.shape[1] - len(shown)
        if left:
            rest = weights.sum(axis=1).mean() - weights[:, shown].sum(axis=1).mean()
            others = f"and {left} other{'s' if left > 1 else ''}: {100 * rest:.0f} %"
            write(self.axes, x, len(shown) * height + 0.14, others, size=8, color="0.35")

    def bundle(self, weights: FloatArray, x: float, y: float, most: float) -> None:
        """T lines from the query to the cell at (x, y), step 1 on top; most: the largest weight of all cells."""
        step = 0.74 * self.layout.cell[1] / len(weights)
        start = self.layout.query[0] - 0.03
        for number, weight in enumerate(weights):
            offset = (number - (len(weights) - 1) / 2) * step
            begin, end = (start, self.middle + 0.4 * offset), (x, y + offset)
            half = (begin[0] + end[0]) / 2
            curve = Path([begin, (half, begin[1]), (half, end[1]), end], [Path.MOVETO, *[Path.CURVE4] * 3])
            wide = max(_HAIR, 0.9 * step * POINTS * weight / max(most, 1e-9))
            line = PathPatch(curve, fill=False, edgecolor=_shade(number, len(weights)), linewidth=wide, zorder=0.5)
            line.set_capstyle("butt")
            self.axes.add_patch(line)

    def rankings(self, before: IntArray, after: IntArray, positions: IntArray | None) -> None:
        """Draw both columns, and an arrow for each neighbour of either: across if it is in both, else in or out."""
        width, height = self.layout.cell
        ranks = np.empty(0, int) if positions is None else positions
        stood = {int(row): int(place) - 1 for row, place in zip(after, ranks, strict=False)}
        stood |= {int(row): place for place, row in enumerate(before)}
        stands = {int(row): place for place, row in enumerate(after)}
        for place, row in enumerate(before[:_SHOWN].tolist()):
            self.cell(row, self.layout.before, place * height)
            self.words(self.layout.before - 0.07, place * height, f"{place + 1}", row, "right")
            if stands.get(row, _SHOWN) < _SHOWN:
                self.across(place, stands[row])
            else:
                self.out(place, stands.get(row))
        for place, row in enumerate(after[:_SHOWN].tolist()):
            self.cell(row, self.layout.after, place * height)
            self.words(self.layout.after + width + 0.07, place * height, f"{place + 1}", row, "left")
            if row not in before[:_SHOWN]:
                self.into(place, stood.get(row))
        self.heading(self.layout.before + width / 2, "nearest before")
        self.heading(self.layout.after + width / 2, "nearest after")

    def across(self, place: int, to: int) -> None:
        """Draw an arrow from a place before to one after: dark and solid, but grey and dashed downwards."""
        begin, end = (self.layout.before + self.layout.cell[0], place), (self.layout.after, to)
        self.arrow(begin, end, falls=to > place)

    def into(self, place: int, stood: int | None) -> None:
        """Draw an arrow to a new neighbour, and where it stood before, if known."""
        end = self.layout.after
        self.arrow((end - 0.36, place), (end, place), falls=False)
        self.aside(end - 0.38, place, "new" if stood is None else f"from {stood + 1}", "right")

    def out(self, place: int, stands: int | None) -> None:
        """Draw an arrow from a neighbour that is gone, and where it stands after, if known."""
        begin = self.layout.before + self.layout.cell[0]
        self.arrow((begin, place), (begin + 0.36, place), falls=True)
        self.aside(begin + 0.4, place, "out" if stands is None else f"to {stands + 1}", "left")

    def arrow(self, begin: tuple[float, int], end: tuple[float, int], *, falls: bool) -> None:
        """Draw an arrow between two points, (x, place) each."""
        height = self.layout.cell[1]
        colour = "0.55" if falls else INK
        style: Any = (0, (3, 2)) if falls else "solid"
        tail, head = ((x, (place + 0.5) * height) for x, place in (begin, end))
        arrow = FancyArrowPatch(
            tail,
            head,
            arrowstyle="-|>",
            mutation_scale=9,
            shrinkA=2,
            shrinkB=2,
            color=colour,
            linestyle=style,
            linewidth=1.2,
            zorder=2,
        )
        self.axes.add_patch(arrow)

    def aside(self, x: float, place: int, text: str, side: str) -> None:
        """Write a word between the columns, on white, so that arrows which pass behind do not run through it."""
        under = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
        y = (place + 0.5) * self.layout.cell[1]
        write(self.axes, x, y, text, size=8, ha=side, bbox=under, zorder=3, color="0.25")

    def cell(self, row: int, x: float, y: float) -> None:
        """Draw an item of the gallery with its upper left corner at (x, y)."""
        right = same_label(self.queries, self.row, self.gallery, row)
        width, height = self.layout.cell
        draw_cell(self.axes, self.gallery, row, x, y, right, width=width, height=height, inset=0.03)

    def words(self, x: float, y: float, text: str, row: int, side: str) -> None:
        """Write a rank or a share beside a cell and, where there is space, the name of the item."""
        if self.layout.words > 1 and self.gallery.labels is not None:
            text += "\n" + "\n".join(wrap(self.gallery.name(row), self.layout.words - 0.15, 2, 7.5))
        write(self.axes, x, y + self.layout.cell[1] / 2, text, size=7.5, ha=side, color="0.25")

    def heading(self, x: float, text: str, note: str = "") -> None:
        """Write a heading over a column, and a note below it."""
        write(self.axes, x, -0.28, text, size=10, ha="center", fontweight="bold")
        if note:
            write(self.axes, x, -0.1, note, size=7.5, ha="center", color="0.35")


def _share(weights: FloatArray) -> str:
    first, last = (f"{100 * weight:.0f}" for weight in (weights[0], weights[-1]))
    return f"{first} %" if first == last else f"{first} → {last} %"


def _shade(number: int, count: int) -> tuple[float, ...]:
    share = number / max(count - 1, 1)
    return tuple((1 - share) * first + share * last for first, last in zip(*_BLUES, strict=True))
