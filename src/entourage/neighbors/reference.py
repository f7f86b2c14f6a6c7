"""The exact neighbours of a few queries, by which approximate search is judged.

Vectors may be in memory or not: all that is asked of them are rows.
"""

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.candidates import Vectors
from entourage.runtime.threads import blocks, in_threads
from entourage.values import IntArray

__all__ = ["nearest_exactly", "recall_of"]

_COLUMNS = 2**14  # gallery items at a time


def nearest_exactly(
    queries: NDArray[np.float32], gallery: Vectors, k: int, own_rows: IntArray, id_rank: IntArray
) -> tuple[IntArray, NDArray[np.float32]]:
    """Find the k nearest of a few queries (n, d) by all similarities: rows and similarities (n, k), ties by id."""
    rows: IntArray = np.empty((len(queries), 0), np.int64)
    similarities: NDArray[np.float32] = np.empty((len(queries), 0), np.float32)

    def among(columns: slice) -> tuple[IntArray, NDArray[np.float32]]:
        tile = queries @ gallery[columns].T
        own = (own_rows >= columns.start) & (own_rows < columns.stop)
        tile[np.flatnonzero(own), own_rows[own] - columns.start] = -np.inf
        nearest = np.argpartition(-tile, min(k, tile.shape[1]) - 1, axis=1)[:, :k]
        return nearest + columns.start, np.take_along_axis(tile, nearest, axis=1)

    for new_rows, new in in_threads(among, blocks(len(gallery), _COLUMNS)):
        rows, similarities = np.hstack([rows, new_rows]), np.hstack([similarities, new])
        order = np.lexsort((id_rank[rows], -similarities), axis=-1)[:, :k]
        rows, similarities = np.take_along_axis(rows, order, axis=1), np.take_along_axis(similarities, order, axis=1)
    return rows, similarities


def recall_of(wanted: IntArray, found: IntArray) -> float:
    """The share of the wanted (n, k) that is among the found (n, L), row by row."""
    return float((wanted[:, :, None] == found[:, None, :]).any(axis=2).mean())
