"""Which items stand for others: near-identical items share one node of the graph, as items come and go.

An item is represented by the first item, in order of id, that is similar enough and represents itself
(neighbors/copies.py). Here the rule is kept to the letter however many copies there are, and applied again only to
items that a change may concern: one that represents itself from now on may take over later ones, and one that no longer
does sets free those that it stood for. Either concerns later items alone, so going through them in order settles all.

M items in order of id, d dimensions.
"""

import heapq
from collections.abc import Iterable

import numpy as np

from entourage.neighbors import search
from entourage.neighbors.choice import EXACT
from entourage.neighbors.index import groups_of_equal_vectors
from entourage.refiner.gallery.similar import pairs_above
from entourage.values import Embeddings, FloatArray, IntArray, Neighbors

__all__ = ["NOBODY", "representatives", "represented_anew"]

NOBODY = -1
_LOOK_AT = 8


def representatives(vectors: FloatArray, similarity: float) -> IntArray:
    """Choose for each item the one that represents it.

    Parameters
    ----------
    vectors : ndarray of shape (M, d)
        Unit vectors, float32.
    similarity : float
        From which on items are copies.

    Returns
    -------
    ndarray of shape (M,)
        The row that represents each item, its own for most.
    """
    members, starts = groups_of_equal_vectors(vectors, np.arange(len(vectors)))
    firsts = members[starts[:-1]]  # equal vectors have one representative: it is found for the first of them
    distinct = vectors if len(firsts) == len(vectors) else vectors[firsts]
    chosen: IntArray = np.arange(len(firsts))
    if len(firsts) > 1:
        found = search(Embeddings(distinct), k=min(_LOOK_AT, len(firsts) - 1), by=EXACT)
        chosen = represented_anew(distinct, chosen, _with_copies(found, similarity), similarity)
    result = np.empty(len(vectors), np.int64)
    result[members] = np.repeat(firsts[chosen], np.diff(starts))
    return result


def _with_copies(found: Neighbors, similarity: float) -> IntArray:
    """The rows whose nearest neighbour may be a copy."""
    return np.flatnonzero(found.similarities[:, 0] >= np.float32(similarity) - np.float32(1e-4))


def represented_anew(vectors: FloatArray, current: IntArray, concerned: IntArray, similarity: float) -> IntArray:
    """Apply the rule again to items that something has changed for, and to those that this concerns in turn.

    Parameters
    ----------
    vectors : ndarray of shape (M, d)
        Unit vectors, float32.
    current : ndarray of shape (M,)
        The row that represents each item so far, or NOBODY.
    concerned : ndarray of shape (n,)
        Rows for which it may be another one from now on.
    similarity : float
        From which on items are copies.

    Returns
    -------
    ndarray of shape (M,)
    """
    current = current.copy()
    similar = _Similar(vectors, similarity)
    similar.look_up(concerned)
    queue = sorted(map(int, concerned))
    waiting = set(queue)
    while queue:
        item = heapq.heappop(queue)
        waiting.remove(item)
        before, now = int(current[item]), _first_representative(item, similar.to(item), current)
        if now == before:
            continue
        current[item] = now
        for other in _concerned(item, before, now, similar, current):
            if other not in waiting:
                heapq.heappush(queue, other)
                waiting.add(other)
    return current


def _first_representative(item: int, similar: IntArray, current: IntArray) -> int:
    earlier = similar[similar < item]
    representing = earlier[current[earlier] == earlier]
    return int(representing.min()) if len(representing) else item


def _concerned(item: int, before: int, now: int, similar: "_Similar", current: IntArray) -> Iterable[int]:
    """Later items that may have another representative, as this one has."""
    if now == item:  # which may take them over
        others = similar.to(item)
    elif before == item:
        others = np.flatnonzero(current == item)
    else:
        return ()
    return map(int, others[others > item])


class _Similar:
    """The rows that are similar enough to each of some items, looked up when they are first asked for."""

    def __init__(self, vectors: FloatArray, similarity: float) -> None:
        self._vectors = vectors
        self._bars = np.full(len(vectors), similarity, np.float32)
        self._known: dict[int, IntArray] = {}

    def look_up(self, rows: IntArray) -> None:
        left, right, _ = pairs_above(self._vectors, rows, self._bars)
        order = np.argsort(left, kind="stable")
        ends = np.searchsorted(left[order], rows, side="right")
        starts = np.searchsorted(left[order], rows, side="left")
        for row, start, end in zip(rows, starts, ends, strict=True):
            self._known[int(row)] = right[order[start:end]]

    def to(self, item: int) -> IntArray:
        if item not in self._known:
            self.look_up(np.array([item]))
        return self._known[item]
