"""Candidates by NN-descent: neighbours of neighbours are likely neighbours, for a set searched within itself."""

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.choice import DESCENT_DIMENSIONS, PILOT, SPARE, descent_bytes, descent_lists, pilot_lists
from entourage.neighbors.reference import nearest_exactly, recall_of
from entourage.runtime.extras import require
from entourage.runtime.memory import free_memory
from entourage.runtime.randomness import generator
from entourage.runtime.threads import thread_count
from entourage.values import IntArray

__all__ = ["NNDescentGraph"]

_SAMPLE, _QUERIES = 2**14, 256
_LARGE = 4  # times the items of a pilot, from which on it is worth its time
_ENOUGH = 0.97  # of the neighbours of a sample, for candidates along principal directions to be enough
_MOST_TIMES = 2  # that lists are made longer


class NNDescentGraph:
    """The neighbourhood graph of a set, by pynndescent.

    As its lists are only candidates, which exact similarities put in order, it looks at the 128 principal directions of
    long vectors alone, if the neighbours of a sample are the same there: most of its time goes with the number of
    dimensions. How long its lists have to be depends on how many dimensions the items fill: of a large set, a part is
    searched first, which shows it. Where too few neighbours are found nevertheless, lists are made longer, as far as
    half of the free memory allows.

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
        whole_fits = self._fits(vectors.shape[1], self._length)
        self._axes = _axes(vectors, DESCENT_DIMENSIONS) if vectors.shape[1] > DESCENT_DIMENSIONS else None
        if self._axes is not None and whole_fits and _kept(vectors, self._axes, k) < _ENOUGH:
            self._axes = None
        if len(vectors) >= _LARGE * PILOT:
            length = descent_lists(len(vectors), k, self._missed(k))
            if length < self._length or self._fits(self._dim, length):
                self._length = length
        self._rows = self._found(self._vectors, self._length)

    @property
    def name(self) -> str:
        directions = f" in {DESCENT_DIMENSIONS} principal directions" if self._axes is not None else ""
        return f"NN-descent{directions}, lists of {self._rows.shape[1]}"

    def of(self, queries: NDArray[np.float32], rows: slice | IntArray, k: int) -> IntArray:
        return np.asarray(self._rows[rows][:, :k], np.int64)

    def widen(self) -> bool:
        """Descend once more, to longer lists, if there is memory for it."""
        longer = round(1.4 * self._length)
        complete = self._rows.shape[1] >= len(self._vectors) - 1
        if complete or self._longer == _MOST_TIMES or not self._fits(self._dim, longer):
            return False
        self._longer, self._length = self._longer + 1, longer
        self._rows = self._found(self._vectors, self._length)
        return True

    @property
    def _dim(self) -> int:
        """How many dimensions it looks at."""
        return DESCENT_DIMENSIONS if self._axes is not None else self._vectors.shape[1]

    def _fits(self, dim: int, length: int) -> bool:
        return descent_bytes(len(self._vectors), dim, length) <= free_memory() / 2

    def _missed(self, k: int) -> float:
        """The share of the k nearest that is not found among a part of the items, with lists of a known length."""
        part = self._vectors[_sampled(len(self._vectors), PILOT)]
        rows = _sampled(len(part), _QUERIES)
        wanted, _ = nearest_exactly(part[rows], part, k, rows, np.arange(len(part)))
        return 1 - recall_of(wanted, self._found(part, pilot_lists(k))[rows][:, : k + SPARE])

    def _found(self, vectors: NDArray[np.float32], length: int) -> IntArray:
        from pynndescent import NNDescent

        seen = vectors if self._axes is None else vectors @ self._axes
        length = min(length + 1, len(seen) - 1)
        found = NNDescent(seen, metric="dot", n_neighbors=length, random_state=0, n_jobs=thread_count())
        return np.asarray(found.neighbor_graph[0])


def _axes(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """(d, count) the directions in which a sample is largest."""
    sample = vectors[_sampled(len(vectors), _SAMPLE)]
    _, axes = np.linalg.eigh(sample.T @ sample)  # the largest last
    return np.ascontiguousarray(axes[:, -count:], np.float32)


def _kept(vectors: NDArray[np.float32], axes: NDArray[np.float32], k: int) -> float:
    """The share of the k nearest of a sample that is among the candidates along the axes, at best."""
    rows, everyone = _sampled(len(vectors), _QUERIES), np.arange(len(vectors))
    wanted, _ = nearest_exactly(vectors[rows], vectors, k, rows, everyone)
    seen = vectors @ axes
    seen /= np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-12)  # as pynndescent does
    found, _ = nearest_exactly(seen[rows], seen, k + SPARE - 1, rows, everyone)  # one is the item itself
    return recall_of(wanted, found)


def _sampled(n: int, count: int) -> IntArray:
    return np.sort(generator(0).choice(n, min(count, n), replace=False))
