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
# The share of a sample's neighbours that must be among the candidates along that many principal directions.
_ENOUGH = {64: 0.99, DESCENT_DIMENSIONS: 0.97}
_MOST_TIMES = 2  # that lists are made longer


class NNDescentGraph:
    """The neighbourhood graph of a set, by pynndescent.

    As its lists are only candidates, which exact similarities put in order, it looks at 64 or 128 principal directions
    of longer vectors alone, if the neighbours of a sample are the same there, or where whole vectors do not fit: its
    time and memory grow with the number of dimensions. Of unit vectors, the nearest in Euclidean distance are the most
    similar; pynndescent finds them sooner than the largest inner products. How long its lists have to be depends on how
    many dimensions the items fill: of a large set, a part is searched first, which shows it. Where too few neighbours
    are found nevertheless, lists are made longer, as far as half of the free memory allows.

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
        self._axes = self._directions(k)
        if len(vectors) >= _LARGE * PILOT:
            length = descent_lists(len(vectors), k, self._missed(k))
            if length < self._length or self._fits(self._dim, length):
                self._length = length
        self._rows = self._found(self._vectors, self._length)

    @property
    def name(self) -> str:
        directions = f" in {self._dim} principal directions" if self._axes is not None else ""
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
        return int((self._vectors if self._axes is None else self._axes).shape[1])

    def _directions(self, k: int) -> NDArray[np.float32] | None:
        """(d, 64 or 128) the fewest principal directions that show enough of the neighbours; None: all are needed."""
        dim = self._vectors.shape[1]
        fewer = {count: enough for count, enough in _ENOUGH.items() if count < dim}
        if not fewer:
            return None
        axes, kept = _axes(self._vectors), _Kept(self._vectors, k)
        for count, enough in fewer.items():
            if kept.along(axes[:, -count:]) >= enough:
                return axes[:, -count:]
        fits = dim <= DESCENT_DIMENSIONS or self._fits(dim, self._length)
        return None if fits else axes[:, -DESCENT_DIMENSIONS:]

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

        seen = vectors if self._axes is None else _along(vectors, self._axes)
        length = min(length + 1, len(seen) - 1)
        found = NNDescent(seen, metric="euclidean", n_neighbors=length, random_state=0, n_jobs=thread_count())
        return np.asarray(found.neighbor_graph[0])


class _Kept:
    """The share of a sample's k nearest that are candidates along some directions, if NN-descent misses none there."""

    def __init__(self, vectors: NDArray[np.float32], k: int) -> None:
        self._vectors, self._k = vectors, k
        self._rows, self._everyone = _sampled(len(vectors), _QUERIES), np.arange(len(vectors))
        self._wanted, _ = nearest_exactly(vectors[self._rows], vectors, k, self._rows, self._everyone)

    def along(self, axes: NDArray[np.float32]) -> float:
        seen, rows = _along(self._vectors, axes), self._rows
        count = self._k + SPARE - 1  # one is the item itself
        return recall_of(self._wanted, nearest_exactly(seen[rows], seen, count, rows, self._everyone)[0])


def _axes(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """(d, d) the principal directions of a sample, the largest last."""
    sample = vectors[_sampled(len(vectors), _SAMPLE)]
    _, axes = np.linalg.eigh(sample.T @ sample)
    return np.asarray(axes, np.float32)


def _along(vectors: NDArray[np.float32], axes: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, count) unit vectors of what vectors have along axes (d, count)."""
    seen = vectors @ axes
    norms = np.sqrt(np.einsum("nd,nd->n", seen, seen))
    seen[norms == 0, 0] = 1  # a vector of nothing would be nearer to all others than most of them are to each other
    seen /= np.where(norms == 0, 1, norms)[:, None]
    return seen


def _sampled(n: int, count: int) -> IntArray:
    return np.sort(generator(0).choice(n, min(count, n), replace=False))
