"""Points that would lie on one another, spread over a small disc each crowd, so that all of them can be seen.

Where a crowd of n points lies, each is moved within a disc of an area that is proportional to n: a crowd then looks as
large as it is. The way a point is moved is its own and the same at every step, so what moves does so by refinement.
"""

import numpy as np
from numpy.typing import NDArray

from entourage.runtime.randomness import generator
from entourage.values import FloatArray, IntArray

__all__ = ["spread"]

_SIDE = 256  # cells of a side; points within three by three of them are a crowd
_COVERED = 0.1  # the share of the plane that the discs of all points have


def spread(places: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Move points that lie on one another a little apart.

    Parameters
    ----------
    places : array of shape (S, P, 2)
        The places of P points in S steps, within -1 and 1.
    seed : int, default 0

    Returns
    -------
    array of shape (S, P, 2)
    """
    count = places.shape[1]
    rng = generator(seed)
    angles, radii = rng.uniform(0, 2 * np.pi, count), np.sqrt(rng.uniform(size=count))
    ways = (radii * [np.cos(angles), np.sin(angles)]).T  # (P, 2) within a disc of radius 1
    each = np.sqrt(4 * _COVERED / (np.pi * max(count, 1)))  # the radius of the disc of one point
    moved = np.empty_like(places)
    for step, here in enumerate(places):
        others = np.maximum(_crowds(here) - 1, 0)  # nobody on it: it stays
        moved[step] = here + each * np.sqrt(others)[:, None] * ways
    return moved


def _crowds(places: FloatArray) -> IntArray:
    """How many points lie in the cells around that of each, (P,); places are (P, 2)."""
    cells = np.clip(((places + 1) / 2 * _SIDE).astype(np.int64), 0, _SIDE - 1) + 1
    side = _SIDE + 2  # with an empty cell around
    counts = np.bincount(cells[:, 0] * side + cells[:, 1], minlength=side * side).reshape(side, side)
    around = np.sum([np.roll(counts, (x, y), (0, 1)) for x in (-1, 0, 1) for y in (-1, 0, 1)], axis=0)
    return np.asarray(around[cells[:, 0], cells[:, 1]])
