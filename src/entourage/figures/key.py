"""What the marks of a figure mean: a line of them below it, from left to right."""

import numpy as np

from entourage.figures.cells import write
from entourage.figures.words import width_of

__all__ = ["Key"]


class Key:
    """Each mark is drawn when its method is called; y and all lengths in the units of the axes, inches."""

    def __init__(self, axes, y: float):
        self._axes, self._x, self._y = axes, 0.1, y

    def dot(self, colour: str, alpha: float, says: str) -> None:
        size = 14 if alpha < 1 else 30
        dot = self._axes.scatter(
            [self._x + 0.05], [self._y], s=size, c=colour, alpha=alpha, linewidths=0, clip_on=False
        )
        dot.set_label(says)
        self._say(0.18, says)

    def arrow(self, colour: str, says: str) -> None:
        style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
        ends = {"xy": (self._x + 0.32, self._y), "xytext": (self._x, self._y)}
        self._axes.annotate("", **ends, arrowprops=style, annotation_clip=False)
        self._say(0.42, says)

    def bar(self, coloured, says: str) -> None:
        """The colours of a density from 1 to its largest count."""
        largest = int(coloured.get_array().max())
        shades = coloured.to_rgba(np.geomspace(1, max(largest, 2), 64))[None]
        left = self._x + width_of("1", 9) + 0.06
        extent = (left, left + 1.0, self._y + 0.07, self._y - 0.07)
        self._axes.imshow(shades, extent=extent, aspect="auto", clip_on=False)
        self._say(0, "1")
        self._x = left + 1.06
        self._say(0, f"{largest:,} {says}")

    def _say(self, after: float, says: str) -> None:
        write(self._axes, self._x + after, self._y, says, size=9)
        self._x += after + width_of(says, 9) + 0.35
