"""Candidates by NN-descent: neighbours of neighbours are likely neighbours, for a set searched within itself."""

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.choice import DESCENT_DIMENSIONS, descent_bytes, descent_lists
from entourage.runtime.extras import require
from entourage.runtime.memory import free_memory
from entourage.runtime.randomness import generator
from entourage.runtime.threads import thread_count
from entourage.values import IntArray

__all__ = ["NNDescentGraph"]

_SAMPLE = 2**14
_MOST_TIMES = 2  # that lists are made longer


class NNDescentGraph:
    """The neighbourhood graph of a set, by pynndescent.

    As its lists are only candidates, which exact similarities put in order, it looks at the 128 principal directions of
    long vectors alone: all that it takes is time, and most of that goes with their number. Where too few neighbours are
    found, it looks at whole vectors, and then makes longer lists, as far as half of the free memory allows.

    Parameters
    ----------
    vectors : array of shape (N, d)
        Unit vectors.
    k : int
        How many neighbours of each will be asked for. Lists are longer: the nearest of long lists are found surely.
    """

    def __init__(self, vectors: NDArray[np.float32], k: int) -> None:
        require("pynndescent", "search by NN-descent")
        self._vectors, self._length, self._longer = vectors, descent_lists(len(vectors), k), 0
        self._projected = vectors.shape[1] > DESCENT_DIMENSIONS
        self._rows = self._found()

    @property
    def name(self) -> str:
        directions = f" in {DESCENT_DIMENSIONS} principal directions" if self._projected else ""
        return f"NN-descent{directions}, lists of {self._rows.shape[1]}"

    def of(self, queries: NDArray[np.float32], rows: slice | IntArray, k: int) -> IntArray:
        return np.asarray(self._rows[rows][:, :k], np.int64)

    def widen(self) -> bool:
        """Descend once more, with whole vectors or to longer lists, if there is memory for it."""
        longer = round(1.4 * self._length)
        if self._projected and self._fits(self._vectors.shape[1], self._length):
            self._projected = False
        elif (
            self._longer < _MOST_TIMES
            and self._rows.shape[1] < len(self._vectors) - 1
            and self._fits(self._dim, longer)
        ):
            self._longer, self._length = self._longer + 1, longer
        else:
            return False
        self._rows = self._found()
        return True

    @property
    def _dim(self) -> int:
        """How many dimensions it looks at."""
        return DESCENT_DIMENSIONS if self._projected else self._vectors.shape[1]

    def _fits(self, dim: int, length: int) -> bool:
        return descent_bytes(len(self._vectors), dim, length) <= free_memory() / 2

    def _found(self) -> IntArray:
        from pynndescent import NNDescent

        vectors = _in_principal_directions(self._vectors, DESCENT_DIMENSIONS) if self._projected else self._vectors
        length = min(self._length + 1, len(vectors) - 1)
        found = NNDescent(vectors, metric="dot", n_neighbors=length, random_state=0, n_jobs=thread_count())
        return np.asarray(found.neighbor_graph[0])


def _in_principal_directions(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Vectors (N, count) in the directions in which a sample is largest."""
    rows = np.sort(generator(0).choice(len(vectors), min(_SAMPLE, len(vectors)), replace=False))
    sample = vectors[rows]
    _, axes = np.linalg.eigh(sample.T @ sample)  # the largest last
    return vectors @ np.ascontiguousarray(axes[:, -count:], np.float32)
