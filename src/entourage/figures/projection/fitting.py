"""An item's place among landmarks that keep theirs: the minimum of F_i (see the docstring of the package).

With w_j = 1 / (1 + |y - z_j|²) and a = Σ_j p_ij w_j, half the gradient of F_i at y is

    a (y - Σ_j p_ij w_j z_j / a) - R(y),    R(y) = Σ_j w_j² (y - z_j) / Z,

what pulls the item to its neighbours and what keeps it from lying on others. A step goes against it, over a, the
curvature of the pull; where that leads up, repulsion being curved, too, a shorter one is tried.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from entourage.runtime.jit import compiled
from entourage.runtime.threads import share_out
from entourage.values import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Repulsion", "fit"]

_GRID = 512  # points along each side; repulsion is a sum of bumps of width 1, and they must be well closer than that
_ITERATIONS = 500
_SETTLED = 1e-4  # a picture is some 100 wide, and where the valley is flat many short moves are still a way


class Repulsion:
    """Σ_j w_j and Σ_j w_j² (y - z_j) of the landmarks as functions of the place y.

    Landmarks do not move, so these are computed once, on a grid, as convolutions, and interpolated.

    Parameters
    ----------
    fixed : array of shape (A, 2)
        The places of the landmarks.

    Attributes
    ----------
    sums : array of shape (3, G, G)
        The first sum, and x and y of the second, at low + step * (column, row).
    around : array of shape (A,)
        Z_i, the part of Z that does not change when landmark i moves.
    total : float
        The part of Z that does not change when an item moves that is no landmark.
    """

    def __init__(self, fixed: FloatArray) -> None:
        self.fixed = np.ascontiguousarray(fixed, np.float64)
        low, high = self.fixed.min(axis=0), self.fixed.max(axis=0)
        side = (high - low).max() * 1.2 + 4  # an item may come to lie outside the others
        self.low, self.step = (low + high - side) / 2, side / (_GRID - 1)
        self.sums = self._convolved()
        others = _sum_over_others(self.fixed)
        self.total = others.sum()
        self.around = self.total - 2 * others

    def _convolved(self) -> NDArray[np.float64]:
        from scipy.signal import fftconvolve

        mass = np.zeros((_GRID, _GRID))
        cell, rest = np.divmod((self.fixed - self.low) / self.step, 1)
        cell = cell.astype(int)
        for x in (0, 1):  # each landmark is shared out among the corners of its cell
            for y in (0, 1):
                share = np.abs(1 - x - rest[:, 0]) * np.abs(1 - y - rest[:, 1])
                np.add.at(mass, (cell[:, 0] + x, cell[:, 1] + y), share)
        offsets = self.step * np.arange(1 - _GRID, _GRID)
        dx, dy = np.meshgrid(offsets, offsets, indexing="ij")
        w = 1 / (1 + dx**2 + dy**2)
        return np.stack([fftconvolve(mass, kernel, mode="valid") for kernel in (w, w**2 * dx, w**2 * dy)])


def fit(starts: FloatArray, affinities: "csr_array", repulsion: Repulsion, own: IntArray) -> NDArray[np.float64]:
    """Find the minimum of F_i that lies downhill from each start.

    Parameters
    ----------
    starts : array of shape (M, 2)
    affinities : sparse array of shape (M, A)
        p_ij, in compressed rows.
    repulsion : Repulsion
        The repulsion of the A landmarks.
    own : array of shape (M,)
        Which landmark each item is, or -1.

    Returns
    -------
    array of shape (M, 2)
    """
    places = np.array(starts, np.float64)
    p, columns, ends = affinities.data, affinities.indices.astype(np.int64), affinities.indptr.astype(np.int64)
    fixed, sums, low, step = repulsion.fixed, repulsion.sums, repulsion.low, repulsion.step
    around = np.where(own < 0, repulsion.total, repulsion.around[own])
    own = own.astype(np.int64)
    work = partial(_fit, places, p, columns, ends, own, around, fixed, sums, low, step)
    share_out(work, len(places))
    return places


@compiled
def _fit(
    places: NDArray[np.float64],
    p: FloatArray,
    columns: IntArray,
    ends: IntArray,
    own: IntArray,
    around: FloatArray,
    fixed: FloatArray,
    sums: FloatArray,
    low: FloatArray,
    step: float,
    first: int,
    last: int,
) -> None:
    high = low + step * (sums.shape[1] - 1)
    for i in range(first, last):
        item = (p, columns, ends[i], ends[i + 1], own[i], around[i], fixed, sums, low, step)
        (x, y), share = places[i], 1.0
        value, step_x, step_y = _value_and_step(x, y, item)
        for _ in range(_ITERATIONS):
            new_x = min(max(x + share * step_x, low[0]), high[0])  # it stays where repulsion is known
            new_y = min(max(y + share * step_y, low[1]), high[1])
            moved = abs(new_x - x) + abs(new_y - y)
            new_value, new_step_x, new_step_y = _value_and_step(new_x, new_y, item)
            if new_value <= value:
                x, y, value, step_x, step_y = new_x, new_y, new_value, new_step_x, new_step_y
                share = min(1.5 * share, 1.0)
            else:
                share /= 2
            if moved < _SETTLED:
                break
        places[i, 0], places[i, 1] = x, y


@compiled
def _value_and_step(x: float, y: float, item: Any) -> tuple[float, float, float]:
    """F_i at a place, and the step from there."""
    p, columns, start, end, own, z, fixed, sums, low, step = item
    a = pull_x = pull_y = value = 0.0
    for entry in range(start, end):
        dx, dy = x - fixed[columns[entry], 0], y - fixed[columns[entry], 1]
        distance = 1 + dx * dx + dy * dy
        value += p[entry] * np.log(distance)
        weight = p[entry] / distance
        a += weight
        pull_x += weight * dx
        pull_y += weight * dy
    near, push_x, push_y = _interpolated(sums, (x - low[0]) / step, (y - low[1]) / step)
    if own >= 0:  # it does not push itself
        dx, dy = x - fixed[own, 0], y - fixed[own, 1]
        weight = 1 / (1 + dx * dx + dy * dy)
        near -= weight
        push_x -= weight * weight * dx
        push_y -= weight * weight * dy
    z += 2 * near
    return value + np.log(z) / 2, (push_x / z - pull_x) / a, (push_y / z - pull_y) / a


@compiled
def _interpolated(sums: FloatArray, x: float, y: float) -> tuple[float, float, float]:
    """The three sums at a place in units of the grid: linear along both sides, and outside as at the edge."""
    last = sums.shape[1] - 1
    x, y = min(max(x, 0.0), last - 1e-9), min(max(y, 0.0), last - 1e-9)
    column, row = int(x), int(y)
    x, y = x - column, y - row
    a, b, c, d = (1 - x) * (1 - y), (1 - x) * y, x * (1 - y), x * y
    f0 = a * sums[0, column, row] + b * sums[0, column, row + 1]
    f0 += c * sums[0, column + 1, row] + d * sums[0, column + 1, row + 1]
    f1 = a * sums[1, column, row] + b * sums[1, column, row + 1]
    f1 += c * sums[1, column + 1, row] + d * sums[1, column + 1, row + 1]
    f2 = a * sums[2, column, row] + b * sums[2, column, row + 1]
    f2 += c * sums[2, column + 1, row] + d * sums[2, column + 1, row + 1]
    return f0, f1, f2


@compiled
def _sum_over_others(fixed: FloatArray) -> NDArray[np.float64]:
    """Σ_l 1 / (1 + |z_j - z_l|²) over the landmarks l other than j, (A,)."""
    sums = np.zeros(len(fixed))
    for j in range(len(fixed)):
        for other in range(j):
            dx, dy = fixed[j, 0] - fixed[other, 0], fixed[j, 1] - fixed[other, 1]
            weight = 1 / (1 + dx * dx + dy * dy)
            sums[j] += weight
            sums[other] += weight
    return sums
