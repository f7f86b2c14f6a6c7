"""The legend of a figure: a line of marks and what they mean, from left to right."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from entourage.figures.sheet import write
from entourage.figures.text import width_of

__all__ = ["Legend"]


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

    def bar(self, coloured: ScalarMappable, meaning: str) -> None:
        """The colours of a density from 1 to its largest count."""
        counts = coloured.get_array()
        largest = 1 if counts is None else int(counts.max())
        shades = coloured.to_rgba(np.geomspace(1, max(largest, 2), 64))[None]
        left = self._x + width_of("1", 9) + 0.06
        extent = (left, left + 1.0, self._y + 0.07, self._y - 0.07)
        self._axes.imshow(shades, extent=extent, aspect="auto", clip_on=False)
        self._write(0, "1")
        self._x = left + 1.06
        self._write(0, f"{largest:,} {meaning}")

    def _write(self, after: float, text: str) -> None:
        write(self._axes, self._x + after, self._y, text, size=9)
        self._x += after + width_of(text, 9) + 0.35
