"""What marks mean: a line of them below a figure, and a key of labels beside it."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from entourage.figures.label_styles import THIN, LabelStyle
from entourage.figures.sheet import write
from entourage.figures.text import shorten, width_of
from entourage.values import LabelArray

__all__ = ["KEY_WIDTH", "Legend", "draw_key", "key_height"]

KEY_WIDTH = 2.45
"""Inches that a key takes."""
_ROW = 0.235  # inches, of a label in a key


class Legend:
    """A legend at height y of the axes, whose units are inches; each method adds a mark and what it means."""

    def __init__(self, axes: Axes, y: float) -> None:
        self._axes, self._x, self._y = axes, 0.1, y

    def dot(self, colour: str, alpha: float, meaning: str) -> None:
        """A dot; a pale one (alpha < 1) is also smaller."""
        size = 14 if alpha < 1 else 30
        dot = self._axes.scatter(
            [self._x + 0.05], [self._y], s=size, c=colour, alpha=alpha, linewidths=0, clip_on=False
        )
        dot.set_label(meaning)
        self._write(0.18, meaning)

    def arrow(self, colour: str, meaning: str) -> None:
        """An arrow."""
        style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
        head, tail = (self._x + 0.32, self._y), (self._x, self._y)
        self._axes.annotate("", xy=head, xytext=tail, arrowprops=style, annotation_clip=False)
        self._write(0.42, meaning)

    def _write(self, after: float, text: str) -> None:
        write(self._axes, self._x + after, self._y, text, size=9)
        self._x += after + width_of(text, 9) + 0.35


def key_height(rows: int) -> float:
    """How many inches a key of so many rows is high."""
    return _ROW * (rows + 1.5)


def draw_key(
    axes: Axes, x: float, styles: Sequence[LabelStyle], labels: LabelArray, sizes: Mapping[str, int] | None = None
) -> None:
    """List labels one below the other, the most frequent first: mark, name, and how many items are drawn.

    Parameters
    ----------
    axes : matplotlib Axes
        In inches, y downwards; the key begins at its top.
    x : float
        The left of the key.
    styles : sequence of LabelStyle
        Those of all N items that are drawn; what has no name comes last.
    labels : array of shape (N,)
    sizes : dict of int, optional
        How many items each label has in all; then it is said how many of them are drawn.
    """
    write(axes, x, 0.5 * _ROW, "classes" if sizes is None else "classes, and how many are drawn", size=8.5, color="0.4")
    listed = [style for style in styles if style.name is not None] + [style for style in styles if style.name is None]
    for number, (rows, colour, shape, name) in enumerate(listed):
        y = _ROW * (number + 1.6)
        area = 30 * (1.6 if shape in THIN else 1)
        axes.scatter([x + 0.07], [y], s=area, c=colour, marker=shape, linewidths=0, clip_on=False)
        count = f"{len(rows):,}"
        if name is None:
            others = len(np.unique(labels[rows]))
            name = f"{others:,} other class{'es' if others > 1 else ''}"
        elif sizes is not None and sizes[name] > len(rows):
            count += f" of {sizes[name]:,}"
        space = KEY_WIDTH - 0.5 - width_of(count, 8)
        write(axes, x + 0.2, y, shorten(name, space, 8), size=8)
        write(axes, x + KEY_WIDTH - 0.2, y, count, size=8, ha="right", color="0.35")
