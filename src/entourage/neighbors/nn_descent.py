"""Candidates by NN-descent: neighbours of neighbours are likely neighbours, for a set searched within itself."""

import numpy as np
from numpy.typing import NDArray

from entourage.runtime.extras import require
from entourage.runtime.threads import thread_count
from entourage.values import IntArray

__all__ = ["NNDescentGraph"]


class NNDescentGraph:
    """The neighbourhood graph of a set, by pynndescent.

    Parameters
    ----------
    vectors : array of shape (N, d)
        Unit vectors.
    k : int
        How many neighbours of each are found.
    """

    name = "NN-descent"

    def __init__(self, vectors: NDArray[np.float32], k: int) -> None:
        require("pynndescent", "search by NN-descent")
        from pynndescent import NNDescent

        most = min(k + 1, len(vectors) - 1)
        found = NNDescent(vectors, metric="dot", n_neighbors=most, random_state=0, n_jobs=thread_count())
        self._rows: IntArray = found.neighbor_graph[0]

    def of(self, queries: NDArray[np.float32], rows: slice | IntArray, k: int) -> IntArray:
        return np.asarray(self._rows[rows][:, :k], np.int64)

    def widen(self) -> bool:
        return False
