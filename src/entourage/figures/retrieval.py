"""A sheet of queries with what they retrieve before and after: the biggest gains first, then the biggest losses.

Pictures are drawn side by side, a row for each query; texts and ids in lists, a block for each query.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from entourage.errors import InputError
from entourage.figures.appearance import Appearance, same_label
from entourage.figures.sheet import INK, draw_cell, new_sheet, write, write_title
from entourage.figures.text import shorten, width_of, wrap
from entourage.values import FloatArray, IntArray, LabelArray, Neighbors

__all__ = ["choose_queries", "draw_retrieval"]

_CELL = 0.62  # inches, of a picture
_SPLIT = 0.7  # cells between the groups of a row
_BELOW = 0.32  # cells for a note below a row
_CAPTION = 3.2  # cells for the words before a row
_LINE, _TWO_LINES = 0.29, 0.4  # inches, of an item in a list
_NAMES = 2.0  # inches for the labels beside a list at most


def choose_queries(gains: FloatArray, n_best: int, n_worst: int, labels: LabelArray | None = None) -> IntArray:
    """Choose the queries that gained most and those that lost most.

    Parameters
    ----------
    gains : array of shape (N,)
        The change of each query's score.
    n_best, n_worst : int
        How many of each to choose.
    labels : array of shape (N,), optional
        Of queries that gained the same, those of the most frequent labels are chosen, not the first of the alphabet.

    Returns
    -------
    array of shape (n_best + n_worst,) or less
        Rows, the biggest gain first and the biggest loss first, then by label, then by row. A query that did not gain
        is never chosen as a gain, nor one that did not lose as a loss.

    Examples
    --------
    >>> choose_queries(np.array([0.1, -0.2, 0.4, 0.0]), 2, 2).tolist()
    [2, 0, 1]
    """
    sizes = np.zeros(len(gains), int)
    if labels is not None:
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        sizes = counts[codes]
    best = [row for row in np.lexsort((-sizes, -gains))[:n_best] if gains[row] > 0]
    worst = [row for row in np.lexsort((-sizes, gains))[:n_worst] if gains[row] < 0]
    return np.array(best + worst, int)


def draw_retrieval(
    queries: Appearance,
    before: Neighbors | None,
    after: Neighbors,
    chosen: Sequence[int] | IntArray,
    gains: FloatArray | None,
    title: str,
    *,
    gallery: Appearance | None = None,
    notes: Sequence[str] | None = None,
) -> Figure:
    """Draw chosen queries, each with its nearest items before and after.

    Parameters
    ----------
    queries : Appearance
        How the N queries look.
    before : Neighbors or None
        Neighbours of all N queries, as rows of the gallery; None to draw only `after`.
    after : Neighbors
        Neighbours of all N queries, as rows of the gallery.
    chosen : sequence of int
        The rows of the queries to draw, in order.
    gains : array of shape (N,) or None
        The change of each query's average precision, a fraction; it is printed beside the query.
    title : str
    gallery : Appearance, optional
        How the gallery looks; by default the queries are the gallery.
    notes : sequence of str, optional
        What is written below the items of each chosen query, such as where matches went that are not shown.

    Returns
    -------
    matplotlib Figure
    """
    _check(queries, before, after)
    gallery = queries if gallery is None else gallery
    rankings = {"nearest": after} if before is None else {"before": before, "after": after}
    if not len(chosen):
        return _nothing(title)
    draw = _picture_sheet if "pictures" in (queries.kind, gallery.kind) else _lists
    said = [""] * len(chosen) if notes is None else list(notes)
    return draw(queries, gallery, rankings, [int(row) for row in chosen], gains, title, said)


def _check(queries: Appearance, before: Neighbors | None, after: Neighbors) -> None:
    for name, found in (("before", before), ("after", after)):
        if found is not None and len(found) != len(queries):
            raise InputError(f"{name} has neighbours of {len(found)} queries; wanted those of all {len(queries)}")


def _nothing(title: str) -> Figure:
    figure, axes = new_sheet(-0.15, 8.0, -0.6, 0.4, 1.0)
    write_title(axes, 0, -0.3, title)
    write(axes, 0, 0.1, "There is no such query.", size=9)
    return figure


def _picture_sheet(
    queries: Appearance,
    gallery: Appearance,
    rankings: dict[str, Neighbors],
    chosen: list[int],
    gains: FloatArray | None,
    title: str,
    notes: list[str],
) -> Figure:
    starts: dict[str, float] = {}
    x = 1 + _SPLIT
    for name, found in rankings.items():
        starts[name] = x
        x += found.k + _SPLIT
    end = max(x - _SPLIT, 10.0) + 0.2  # room for the title
    pitch = 1 + _BELOW * any(notes)
    figure, axes = new_sheet(-_CAPTION - 0.2, end, -1.6, pitch * len(chosen) + 0.2, _CELL)
    write_title(axes, -_CAPTION, -1.15, title)
    write(axes, 0.5, -0.3, "query", size=11, ha="center")
    for name, start in starts.items():
        write(axes, start + rankings[name].k / 2, -0.3, name, size=11, ha="center")
    for line, (query, note) in enumerate(zip(chosen, notes, strict=True)):
        y = pitch * line
        caption = "\n".join(_caption_lines(queries, query, gains))
        write(axes, -0.2, y + 0.5, caption, size=8, ha="right")
        draw_cell(axes, queries, query, 0, y, None, edge=INK)
        for name, found in rankings.items():
            for place, row in enumerate(found.rows[query]):
                right = same_label(queries, query, gallery, row)
                draw_cell(axes, gallery, row, starts[name] + place, y, right)
        if note:
            left = min(starts.values())
            write(axes, left + 0.06, y + 1.12, shorten(note, (end - left) * _CELL, 8), size=8, color="0.35")
    return figure


def _caption_lines(queries: Appearance, query: int, gains: FloatArray | None) -> list[str]:
    """What is written beside a query: at most four lines, which is what fits into a row."""
    width = _CELL * _CAPTION - 0.2
    label = [] if queries.labels is None else wrap(queries.name(query), width, 2, 8)
    change = [] if gains is None else [_change(gains[query])]
    return [*label, shorten(f"item {queries.ids[query]}", width, 8), *change]


def _lists(
    queries: Appearance,
    gallery: Appearance,
    rankings: dict[str, Neighbors],
    chosen: list[int],
    gains: FloatArray | None,
    title: str,
    notes: list[str],
) -> Figure:
    """In inches: a block for each query, with a list for each ranking, labels beside their items."""
    as_texts = "texts" in (queries.kind, gallery.kind)
    cell = 2.0 if not as_texts else 3.6 if len(rankings) > 1 else 5.8
    names = 0.0 if gallery.labels is None else _width_of_names(gallery, rankings, chosen)
    line = _LINE if _fit_one_line(gallery, rankings, chosen, cell) else _TWO_LINES
    head = 0.92 if as_texts else 0.44
    rows = line * max(found.k for found in rankings.values())
    block = head + rows + 0.35 + 0.17 * any(notes)
    column = cell + names + 0.2
    width = max(7.1, column * len(rankings) - 0.2)
    figure, axes = new_sheet(-0.15, width + 0.15, -0.6, block * len(chosen) - 0.2, 1.0)
    write_title(axes, 0, -0.3, title)
    for number, (query, note) in enumerate(zip(chosen, notes, strict=True)):
        top = number * block
        if note:
            write(axes, 0.02, top + head + rows + 0.11, shorten(note, width, 8), size=8, color="0.35")
        change = "" if gains is None else f"   {_change(gains[query])}"
        write(
            axes, 0, top + 0.1, shorten(_caption(queries, query), width - 1.5, 10.5) + change, size=9, fontweight="bold"
        )
        if as_texts:
            draw_cell(axes, queries, query, 0, top + 0.24, None, width=width, height=0.4, inset=0.02, edge=INK, size=9)
        for start, (heading, found) in enumerate(rankings.items()):
            x = column * start
            write(axes, x + 0.02, top + head - 0.12, heading, size=8.5, color="0.35")
            for place, row in enumerate(found.rows[query]):
                y = top + head + line * place
                right = same_label(queries, query, gallery, row)
                draw_cell(axes, gallery, row, x, y, right, width=cell, height=line, inset=0.02, size=8)
                if names:
                    name = shorten(gallery.name(row), names - 0.1, 8)
                    write(axes, x + cell + 0.08, y + line / 2, name, size=8, color="0.35")
    return figure


def _width_of_names(gallery: Appearance, rankings: dict[str, Neighbors], chosen: list[int]) -> float:
    shown = _shown(rankings, chosen)
    return min(_NAMES, max((width_of(gallery.name(row), 8) for row in shown), default=0.0) + 0.15)


def _shown(rankings: dict[str, Neighbors], chosen: list[int]) -> set[int]:
    return {row for found in rankings.values() for row in found.rows[chosen].ravel().tolist()}


def _fit_one_line(gallery: Appearance, rankings: dict[str, Neighbors], chosen: list[int], cell: float) -> bool:
    return all(width_of(gallery.text(row), 8) < cell - 0.3 for row in _shown(rankings, chosen))


def _caption(queries: Appearance, query: int) -> str:
    return f"item {queries.ids[query]}" + ("" if queries.labels is None else f": {queries.name(query)}")


def _change(gain: float) -> str:
    sign = "▲" if gain > 0 else "▼" if gain < 0 else "="
    return f"{sign} {100 * gain:+.0f} AP@R".replace("-", "−")
