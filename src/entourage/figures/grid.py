"""A score over two settings at once: a heat map with every number, the best marked by a frame and a star."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.figures.style import INK, head

__all__ = ["draw_grid"]

_HEAT = "cividis"  # light means more; its lightness rises evenly, so that it also reads in grey
_CELL = (0.95, 0.62)  # inches


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
    scores = np.asarray(values, float)
    spreads = None if spread is None else np.asarray(spread, float)
    _check(scores, rows, columns, spreads)
    r, c = scores.shape
    figure = Figure(figsize=(max(4.6, _CELL[0] * c + 2.0), _CELL[1] * r + 1.7), layout="constrained")
    head(figure, title)
    axes = figure.add_subplot()
    axes.set_facecolor("0.9")
    heat = axes.imshow(np.ma.masked_invalid(scores), cmap=_HEAT, aspect="auto")
    axes.set_xticks(range(c), [str(column) for column in columns])
    axes.set_yticks(range(r), [str(row) for row in rows])
    axes.set_xlabel(column_title)
    axes.set_ylabel(row_title)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for line in range(r):
        for column in range(c):
            _number(axes, heat, scores, spreads, line, column)
    bar = figure.colorbar(heat, ax=axes, label=value_title, fraction=0.08, pad=0.03)
    bar.outline.set_visible(False)
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


def _number(
    axes: Axes, heat: ScalarMappable, values: NDArray[Any], spread: NDArray[Any] | None, line: int, column: int
) -> None:
    value = values[line, column]
    if not np.isfinite(value):
        axes.text(column, line, "–", ha="center", va="center", fontsize=9, color="0.4")
        return
    best = value == np.nanmax(values)
    text = f"{'★ ' if best else ''}{value:.1f}"
    if spread is not None and np.isfinite(spread[line][column]):
        text += f"\n± {spread[line][column]:.1f}"
    light = sum(heat.cmap(heat.norm(value))[:3]) / 3 > 0.5
    colour = INK if light else "white"
    weight = "bold" if best else "normal"
    axes.text(column, line, text, ha="center", va="center", fontsize=9, color=colour, fontweight=weight)
    if best:
        frame = Rectangle((column - 0.46, line - 0.46), 0.92, 0.92, fill=False, edgecolor=INK, linewidth=2)
        axes.add_patch(frame)
