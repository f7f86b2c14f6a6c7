"""A score over two settings at once: a heat map that says every number, and marks the best by a frame and a star."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from entourage.errors import InputError
from entourage.figures.style import INK, head

__all__ = ["draw_grid"]

_HEAT = "cividis"  # light means more; its lightness rises evenly, so that it also reads in grey
_CELL = (0.95, 0.62)  # inches


def draw_grid(
    values: np.ndarray,
    rows,
    columns,
    row_title: str,
    column_title: str,
    title: str,
    *,
    value_title: str,
    spread: np.ndarray | None = None,
) -> Figure:
    """R@1 over k x T, or over message-passing steps x heads.

    values (r, c): what cells say, in the unit of value_title, NaN where nothing was measured; rows (r,), columns (c,):
    the settings; spread (r, c): how far a value varies, printed beneath it after ±.
    """
    values = np.asarray(values, float)
    _check(values, rows, columns, spread)
    r, c = values.shape
    figure = Figure(figsize=(max(4.6, _CELL[0] * c + 2.0), _CELL[1] * r + 1.7), layout="constrained")
    head(figure, title)
    axes = figure.add_subplot()
    axes.set_facecolor("0.9")
    heat = axes.imshow(np.ma.masked_invalid(values), cmap=_HEAT, aspect="auto")
    axes.set_xticks(range(c), [str(column) for column in columns])
    axes.set_yticks(range(r), [str(row) for row in rows])
    axes.set_xlabel(column_title)
    axes.set_ylabel(row_title)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for line in range(r):
        for column in range(c):
            _number(axes, heat, values, spread, line, column)
    figure.colorbar(heat, ax=axes, label=value_title, fraction=0.08, pad=0.03).outline.set_visible(False)
    return figure


def _check(values: np.ndarray, rows, columns, spread) -> None:
    wanted = (len(rows), len(columns))
    for name, shape in (("values", values.shape), ("spreads", wanted if spread is None else np.shape(spread))):
        if shape != wanted:
            raise InputError(
                f"the {name} have shape {shape} for {wanted[0]} rows and {wanted[1]} columns; wanted {wanted}"
            )
    if not np.isfinite(values).any():
        raise InputError("no cell of the grid has a value; wanted one at least: measure some")


def _number(axes, heat, values: np.ndarray, spread, line: int, column: int) -> None:
    value = values[line, column]
    if not np.isfinite(value):
        axes.text(column, line, "–", ha="center", va="center", fontsize=9, color="0.4")
        return
    best = value == np.nanmax(values)
    said = f"{'★ ' if best else ''}{value:.1f}"
    if spread is not None and np.isfinite(spread[line][column]):
        said += f"\n± {spread[line][column]:.1f}"
    light = sum(heat.cmap(heat.norm(value))[:3]) / 3 > 0.5
    colour = INK if light else "white"
    weight = "bold" if best else "normal"
    axes.text(column, line, said, ha="center", va="center", fontsize=9, color=colour, fontweight=weight)
    if best:
        frame = Rectangle((column - 0.46, line - 0.46), 0.92, 0.92, fill=False, edgecolor=INK, linewidth=2)
        axes.add_patch(frame)
