"""The search on the processor: tiles of the similarity matrix, each multiplied and sifted by one thread.

A thread multiplies its tile alone, so none waits for another, and as many run as `thread_count` says. Numpy multiplies,
not torch, whose library took a quarter longer on the processor this was measured on.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.kernels import Candidates, rounding_margin
from entourage.runtime.randomness import generator
from entourage.runtime.threads import blocks, in_threads, one_thread_each
from entourage.values import FloatArray, IntArray

__all__ = ["best_among_each_other", "best_of_gallery"]

_LONG = 128  # from this k on, a first bar is guessed


def best_of_gallery(
    queries: NDArray[np.float32], gallery: NDArray[np.float32], hidden: IntArray, k: int, rows: int, columns: int
) -> Iterator[tuple[slice, IntArray, NDArray[np.float32]]]:
    """Find the k best gallery items of each query and their similarities, both (n, k), ties by position.

    Parameters
    ----------
    queries, gallery : arrays of float32, shapes (N, d) and (M, d)
        Unit vectors.
    hidden : array of shape (N,)
        The gallery item that each query must not find, or -1; it comes last.
    k : int
        Number of neighbours.
    rows, columns : int
        How many queries are compared with how many gallery items at a time.

    Yields
    ------
    tuple of slice, array and array
        n queries, their neighbours (n, k) and the similarities (n, k).
    """
    memory = _Memory()
    sample = _sample(gallery, k)

    def search(block: slice) -> tuple[slice, IntArray, NDArray[np.float32]]:
        return block, *_settled(queries[block], gallery, hidden[block], k, columns, sample, memory).best(slice(None))

    return in_threads(search, blocks(len(queries), rows))


def best_among_each_other(
    items: NDArray[np.float32], hidden: IntArray, k: int, side: int, report: Callable[[float], None] | None = None
) -> Candidates:
    """Find the k best of each item (N, d) among all of them; `best(rows)` of the result returns them.

    Each tile above the diagonal of the symmetric matrix is computed once and serves its rows and its columns.
    """
    candidates = Candidates(len(items), k, rounding_margin(items.shape[1]))
    sample, rank = _sample(items, k)
    tile_rows = list(blocks(len(items), side))
    in_use = [threading.Lock() for _ in tile_rows]
    memory = _Memory()

    def expect(rows: slice) -> None:
        with memory.product(items[rows], sample) as tile:
            candidates.expect(tile, rows, rank)

    def meet(pair: tuple[int, int]) -> None:
        first, second = pair
        rows, columns = tile_rows[first], tile_rows[second]
        # All threads take the earlier block first, so no two wait for each other.
        both = (in_use[first], in_use[second] if second > first else nullcontext())
        with memory.product(items[rows], items[columns]) as tile, both[0], both[1]:
            candidates.meet_each_other(tile, rows.start, columns.start, hidden)

    def settle(rows: slice) -> None:
        candidates.settle(rows, items[rows], items)

    def search_again(rows: IntArray) -> None:
        candidates.keys[rows, :k] = _in_double_precision(items[rows], items, hidden[rows], k, side).keys[:, :k]

    # The diagonal first: every item has met some others, and its bar stands, before the many tiles away from it.
    pairs = ((first, first + away) for away in range(len(tile_rows)) for first in range(len(tile_rows) - away))
    total = len(tile_rows) * (len(tile_rows) + 1) // 2
    with one_thread_each:
        for _ in in_threads(expect, tile_rows if rank else ()):
            pass
        for done, _ in enumerate(in_threads(meet, pairs), start=1):
            if report:
                report(done / total)
        for _ in in_threads(settle, tile_rows):
            pass
        lost = candidates.unsettled()
        for _ in in_threads(search_again, (lost[block] for block in blocks(len(lost), side))):
            pass
    return candidates


def _settled(
    queries: NDArray[np.float32],
    gallery: NDArray[np.float32],
    hidden: IntArray,
    k: int,
    columns: int,
    sampled: tuple[NDArray[np.float32], int],
    memory: "_Memory",
) -> Candidates:
    """The candidates of a block of queries after they have met the whole gallery."""
    candidates = Candidates(len(queries), k, rounding_margin(queries.shape[1]))
    sample, rank = sampled
    if rank:
        with memory.product(queries, sample) as tile:
            candidates.expect(tile, slice(None), rank)
    for items in blocks(len(gallery), columns):
        with memory.product(queries, gallery[items]) as tile:
            candidates.meet(tile, items.start, hidden)
    candidates.settle(slice(None), queries, gallery)
    lost = candidates.unsettled()
    if len(lost):
        precise = _in_double_precision(queries[lost], gallery, hidden[lost], k, columns)
        candidates.keys[lost, :k] = precise.keys[:, :k]
    return candidates


def _in_double_precision(
    queries: FloatArray, gallery: FloatArray, hidden: IntArray, k: int, columns: int
) -> Candidates:
    """The same for queries with a crowd at the k-th place, so close that only exact similarities tell who is in.

    Items come in order of position, so that of equal ones the first are kept.
    """
    candidates = Candidates(len(queries), k, margin=0)
    queries = queries.astype(np.float64)
    for items in blocks(len(gallery), columns):
        tile = (queries @ gallery[items].T.astype(np.float64)).astype(np.float32)
        candidates.meet(tile, items.start, hidden)
    candidates.settle(slice(None), queries, gallery)
    return candidates


def _sample(items: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], int]:
    """Some of the items, and the rank among them that is almost surely below the k-th best of all; 0 for small k.

    It spares a long ranking from collecting thousands that are nearer than the k-th only of those met so far.
    """
    share = 1 / 32
    expected = k * share
    rank = int(expected + 5 * expected**0.5 + 5)
    size = int(len(items) * share)
    if k < _LONG or 2 * rank > size:
        return items[:0], 0
    chosen = generator(0).choice(len(items), size, replace=False)
    return items[np.sort(chosen)], rank


class _Memory:
    """Tiles in memory that is used again: fresh memory would have to be cleared by the system each time."""

    def __init__(self) -> None:
        self._free: list[NDArray[np.float32]] = []

    @contextmanager
    def product(self, a: NDArray[np.float32], b: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
        """a @ b.T of rows a (n, d) and b (m, d)."""
        size = len(a) * len(b)
        try:
            values = self._free.pop()
        except IndexError:  # another thread may have taken the last one
            values = np.empty(0, np.float32)
        if len(values) < size:
            values = np.empty(size, np.float32)
        yield np.matmul(a, b.T, out=values[:size].reshape(len(a), len(b)))
        self._free.append(values)
