"""Free space on a sheet: where names and pictures fit without covering what is drawn, or each other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from entourage.values import FloatArray

__all__ = ["FreeSpace"]

_STEP = 0.04  # inches
_EVERY = 7  # places tried: those beside one that is barred are likely to be barred, too
_GAP = 0.03  # inches between two things that were placed


class FreeSpace:
    """Keeps track of what is covered on a sheet: by dots, which may be written over, or by things placed here.

    Parameters
    ----------
    width, height : float
        Size of the sheet, in inches.
    """

    def __init__(self, width: float, height: float) -> None:
        self._shape = (int(height / _STEP), int(width / _STEP))
        self._dots = np.zeros(self._shape)
        self._taken = np.zeros(self._shape)

    def add_dots(self, points: FloatArray) -> None:
        """Note that there are dots at points (M, 2), in inches."""
        column, row = (np.asarray(points).reshape(-1, 2).T / _STEP).astype(int)
        inside = (column >= 0) & (row >= 0) & (column < self._shape[1]) & (row < self._shape[0])
        np.add.at(self._dots, (row[inside], column[inside]), 1)

    def add_lines(self, starts: FloatArray, ends: FloatArray) -> None:
        """Note that there are lines from starts (M, 2) to ends (M, 2), in inches, as dots along them."""
        for share in np.linspace(0, 1, 12):
            self.add_dots(starts + share * (ends - starts))

    def place(
        self,
        size: tuple[float, float],
        near: Sequence[float] | FloatArray,
        *,
        farthest: float,
        per_dot: float | None = None,
        crossing: bool = False,
    ) -> tuple[float, float] | None:
        """Take the free box that is nearest to a point.

        Parameters
        ----------
        size : (width, height) in inches
        near : (x, y) in inches
        farthest : float
            How far from the point the middle of the box may be, in inches.
        per_dot : float, optional
            A box over dots counts as this many inches farther for each of them. By default it must not lie on any.
        crossing : bool
            Whether a straight line from the point to the edge of the box may cross other things that were placed.

        Returns
        -------
        (x, y) or None
            The middle of the box, which is taken from now on; None if no box is free.
        """
        height, width = (int(np.ceil((side + _GAP) / _STEP)) for side in size[::-1])
        if height >= self._shape[0] or width >= self._shape[1]:
            return None
        dots, taken = _box_sums(self._dots, height, width), _box_sums(self._taken, height, width)
        y, x = np.ogrid[: dots.shape[0], : dots.shape[1]]
        distance = np.hypot((x + width / 2) * _STEP - near[0], (y + height / 2) * _STEP - near[1])
        cost = distance + (per_dot or 0) * dots
        cost[(taken > 0) | (distance > farthest) | ((dots > 0) & (per_dot is None))] = np.inf
        for place in np.argsort(cost, axis=None, kind="stable")[:: 1 if per_dot else _EVERY]:
            row, column = np.unravel_index(place, cost.shape)
            if np.isinf(cost[row, column]):
                return None
            middle = (float((column + width / 2) * _STEP), float((row + height / 2) * _STEP))
            edge = np.clip(near, np.subtract(middle, np.divide(size, 2)), np.add(middle, np.divide(size, 2)))
            if crossing or self._free_line(near, edge):
                self._taken[row : row + height, column : column + width] = 1
                return middle
        return None

    def _free_line(self, start: Sequence[float] | FloatArray, end: FloatArray) -> bool:
        """Whether nothing that was placed lies on the way, but for what covers the start itself."""
        points = np.linspace(start, end, 40)
        column, row = np.clip((points.T / _STEP).astype(int), 0, np.array(self._shape)[::-1, None] - 1)
        taken = self._taken[row, column] > 0
        return not taken[np.argmin(taken) :].any()


def _box_sums(values: NDArray[np.float64], height: int, width: int) -> NDArray[np.float64]:
    """Sums over all boxes of height x width cells, (H - height + 1, W - width + 1)."""
    sums = np.pad(values, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    return sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] + sums[:-height, :-width]
