"""Scores over two settings: a heat map for each, with every number; the best is starred, the one in use framed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.figures.style import INK, head
from entourage.figures.text import families

__all__ = ["draw_grid", "draw_grids"]

_HEAT = "cividis"  # light means more; its lightness rises evenly, so that it also reads in grey
_CELL = (0.82, 0.5)  # inches
_NARROWEST = 2.0  # of the range of colours, in points: a few tenths are not the way from dark to light


def draw_grid(
    values: ArrayLike,
    rows: Sequence[Any],
    columns: Sequence[Any],
    row_title: str,
    column_title: str,
    title: str,
    *,
    value_title: str,
    spread: ArrayLike | None = None,
) -> Figure:
    """Draw a score over two settings, such as recall@1 over neighbours and steps.

    Parameters
    ----------
    values : array-like of shape (r, c)
        The scores; NaN where nothing was measured.
    rows, columns : sequences of r and c values
        The settings.
    row_title, column_title, title : str
    value_title : str
        What the scores are, with their unit.
    spread : array-like of shape (r, c), optional
        How far each score varies; it is printed beneath the score after ±.

    Returns
    -------
    matplotlib Figure
    """
    spreads = None if spread is None else {value_title: spread}
    return draw_grids({value_title: values}, rows, columns, row_title, column_title, title, spreads=spreads)


def draw_grids(
    values: Mapping[str, ArrayLike],
    rows: Sequence[Any],
    columns: Sequence[Any],
    row_title: str,
    column_title: str,
    title: str,
    *,
    spreads: Mapping[str, ArrayLike] | None = None,
    references: Mapping[str, float] | None = None,
    used: tuple[Any, Any] | None = None,
) -> Figure:
    """Draw several scores over the same two settings, side by side.

    Parameters
    ----------
    values : dict of array-like of shape (r, c)
        By what the scores are, with their unit; NaN where nothing was measured.
    rows, columns, row_title, column_title, title
        As in `draw_grid`.
    spreads : dict of array-like of shape (r, c), optional
        By the same names.
    references : dict of float, optional
        The score without either setting, by the same names: that of the raw vectors.
    used : (row, column), optional
        The settings in use, which are framed.

    Returns
    -------
    matplotlib Figure
    """
    scores = {name: np.asarray(each, float) for name, each in values.items()}
    varied = {name: np.asarray(each, float) for name, each in (spreads or {}).items()}
    for name, each in scores.items():
        _check(each, rows, columns, varied.get(name))
    r, c = len(rows), len(columns)
    size = (max(4.6, len(scores) * (_CELL[0] * c + 0.75) + 0.3), _CELL[1] * r + 2.0)
    figure = Figure(figsize=size, layout="constrained")
    head(figure, title)
    for number, (name, each) in enumerate(scores.items()):
        axes = figure.add_subplot(1, len(scores), number + 1)
        _draw(axes, each, varied.get(name), name, (references or {}).get(name))
        axes.set_xticks(range(c), [str(column) for column in columns])
        axes.set_yticks(range(r), [str(row) for row in rows])
        axes.set_xlabel(column_title)
        axes.set_ylabel(row_title)
        if used is not None:
            _mark_used(axes, list(rows), list(columns), used)
    if used is not None:
        note = f"★ best; dashed: in use ({row_title} = {used[0]}, {column_title} = {used[1]})"
        figure.supxlabel(note, fontsize=9, color="0.35", family=families())
    return figure


def _check(values: NDArray[Any], rows: Sequence[Any], columns: Sequence[Any], spread: NDArray[Any] | None) -> None:
    wanted = (len(rows), len(columns))
    for name, shape in (("values", values.shape), ("spreads", wanted if spread is None else spread.shape)):
        if shape != wanted:
            raise InputError(
                f"the {name} have shape {shape} for {wanted[0]} rows and {wanted[1]} columns; wanted {wanted}"
            )
    if not np.isfinite(values).any():
        raise InputError("no cell of the grid has a value; wanted at least one: measure some")


def _draw(axes: Axes, values: NDArray[Any], spread: NDArray[Any] | None, name: str, reference: float | None) -> None:
    low, high = np.nanmin(values), np.nanmax(values)
    missing = max(0.0, _NARROWEST - (high - low)) / 2
    axes.set_facecolor("0.9")
    limits = {"vmin": low - missing, "vmax": high + missing}
    heat = axes.imshow(np.ma.masked_invalid(values), cmap=_HEAT, aspect="auto", **limits)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    best = high if reference is None else max(high, reference)
    for line, column in np.ndindex(values.shape):
        _number(axes, heat, values, spread, (line, column), best)
    raw = "" if reference is None else f"   raw vectors: {'★ ' if reference == best else ''}{reference:.1f}"
    axes.set_title(f"{name}{raw}", loc="left", fontsize=9, color=INK, family=families())


def _number(
    axes: Axes,
    heat: ScalarMappable,
    values: NDArray[Any],
    spread: NDArray[Any] | None,
    cell: tuple[int, int],
    best: float,
) -> None:
    (line, column), value = cell, values[cell]
    if not np.isfinite(value):
        axes.text(column, line, "–", ha="center", va="center", fontsize=9, color="0.4")
        return
    is_best = value == best
    text = f"{'★ ' if is_best else ''}{value:.1f}".replace("-", "\N{MINUS SIGN}")
    if spread is not None and np.isfinite(spread[cell]):
        text += f"\n± {spread[cell]:.1f}"
    light = sum(heat.cmap(heat.norm(value))[:3]) / 3 > 0.5
    colour = INK if light else "white"
    weight = "bold" if is_best else "normal"
    axes.text(column, line, text, ha="center", va="center", fontsize=9, color=colour, fontweight=weight)
    if is_best:
        _frame(axes, line, column, edgecolor=INK)


def _mark_used(axes: Axes, rows: list[Any], columns: list[Any], used: tuple[Any, Any]) -> None:
    """Frame the cell of the settings in use, and set their names on both axes in bold."""
    for value, known, ticks in ((used[0], rows, axes.get_yticklabels()), (used[1], columns, axes.get_xticklabels())):
        if value in known:
            ticks[known.index(value)].set_fontweight("bold")
    if used[0] in rows and used[1] in columns:
        _frame(axes, rows.index(used[0]), columns.index(used[1]), edgecolor="#d95f02", linestyle=(0, (3, 1.5)))


def _frame(axes: Axes, line: int, column: int, **look: Any) -> None:
    axes.add_patch(Rectangle((column - 0.46, line - 0.44), 0.92, 0.88, fill=False, linewidth=2, **look))
