"""Near-identical items counted once, so that copies of one item are never a whole neighbourhood."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from entourage.neighbors import search
from entourage.neighbors.given import GivenNeighbors
from entourage.runtime.progress import Progress
from entourage.values import BoolArray, Embeddings, FloatArray, IntArray, Neighbors

__all__ = [
    "COPY",
    "LOOK_AT",
    "ROUNDING",
    "ROUNDS",
    "SPARE",
    "Searched",
    "copies_from",
    "copy_similarity",
    "distinct_items",
    "distinct_neighbors",
    "leaders",
    "once_each",
    "search_distinct",
]

COPY = 0.002  # of the usual squared distance
ROUNDING = 5e-7  # of the similarity of a vector to itself
LOOK_AT = 8
"""Neighbours looked up where lists ended in copies."""
SPARE = 8
"""Neighbours looked up beyond k, in case some are copies."""
ROUNDS = 6
"""How often they are looked up again, at most."""


class Searched(Protocol):
    """A set of N items, which need not be in memory, as far as it has to be searched for copies."""

    @property
    def rank(self) -> IntArray:
        """(N,) the place of each item in order of id."""

    def within(self, rows: IntArray | None, k: int) -> Neighbors:
        """The k nearest of some rows among themselves, as positions in `rows`; None: of all."""

    def of_some(self, some: IntArray, rows: IntArray, k: int) -> Neighbors:
        """The k nearest among `rows` of those at the positions `some` of it, without themselves, as positions."""

    def of_pairs(self, rows: IntArray, others: IntArray) -> FloatArray:
        """The similarity (n,) of each of some items to another."""


@dataclass(frozen=True, eq=False)
class _InMemory:
    """Items in memory, as `Searched`."""

    items: Embeddings
    progress: Progress | None = None
    given: GivenNeighbors | None = None
    """Neighbours of all items, if they are known."""

    @property
    def rank(self) -> IntArray:
        rank = np.empty(len(self.items), np.int64)
        rank[np.argsort(self.items.ids, kind="stable")] = np.arange(len(self.items))
        return rank

    def within(self, rows: IntArray | None, k: int) -> Neighbors:
        if rows is None and self.given is not None:
            k = min(k, self.given.usable(np.arange(len(self.items))))
            return search(self.items, k=k, by=self.given, progress=self.progress)
        return search(self.items if rows is None else self.items.take(rows), k=k, progress=self.progress)

    def of_some(self, some: IntArray, rows: IntArray, k: int) -> Neighbors:
        named = Embeddings(self.items.vectors[rows], np.arange(len(rows)))
        return search(named.take(some), named, k)

    def of_pairs(self, rows: IntArray, others: IntArray) -> FloatArray:
        vectors = self.items.vectors
        products: FloatArray = np.einsum("nd,nd->n", vectors[rows], vectors[others], dtype=np.float64)
        return products


def copy_similarity(items: Embeddings) -> float:
    """The similarity from which on two items of a set count as copies: at 0.2 % of the usual squared distance.

    Unit vectors of mean m are 1 - |m|² apart on average (half their squared distance), which is little for encoders
    that put everything into a narrow cone. The average is rounded to a power of 2^(1/8), so that it stays put while a
    few items come and go.

    Parameters
    ----------
    items : Embeddings

    Returns
    -------
    float
    """
    return copies_from(items.vectors.mean(axis=0, dtype=np.float64))


def copies_from(mean: FloatArray) -> float:
    """`copy_similarity` of a set of unit vectors whose mean (d,) is known."""
    usual = max(1 - float(mean @ mean), ROUNDING)
    return 1 - max(COPY * math.pow(2, round(8 * math.log2(usual)) / 8), ROUNDING)


def distinct_items(
    items: Embeddings, similarity: float | None = None, found: Neighbors | None = None
) -> tuple[IntArray, IntArray]:
    """Choose one item of each group of copies to stand for the group.

    An item is represented by the first item, in order of id, that is similar enough and represents itself. Where an
    item has more copies than neighbours were looked up, what remains is searched again, for some rounds.

    Parameters
    ----------
    items : Embeddings
        N items.
    similarity : float, optional
        From which similarity on items are copies; by default `copy_similarity(items)`.
    found : Neighbors, optional
        Neighbours of the items among themselves; by default a few are searched.

    Returns
    -------
    rows : array of shape (G,)
        The items that represent groups, ascending.
    stands_for : array of shape (N,)
        For each item, the position in `rows` of the item that represents it.

    Examples
    --------
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.001], [1.0, 0.0]])
    >>> rows, stands_for = distinct_items(items)
    >>> rows.tolist(), stands_for.tolist()
    ([0, 1], [0, 1, 0, 0])
    """
    similarity = copy_similarity(items) if similarity is None else similarity
    return _distinct(_InMemory(items), similarity, found)


def _distinct(items: Searched, similarity: float, found: Neighbors | None) -> tuple[IntArray, IntArray]:
    """As `distinct_items`."""
    rank = items.rank
    rows = stand_in = np.arange(len(rank))
    for _ in range(ROUNDS):
        if len(rows) < 2:
            break
        if found is None:
            found = items.within(rows, min(LOOK_AT, len(rows) - 1))
        copy = found.similarities >= similarity
        leader = leaders(found.rows, copy, rank[rows])
        stand_in = rows[leader][np.searchsorted(rows, stand_in)]
        rows = np.unique(stand_in)
        if not copy[:, -1].any():  # no list ends in a copy, so none was overlooked
            break
        found = None
    return rows, np.searchsorted(rows, stand_in)


def leaders(neighbors: IntArray, copy: BoolArray, rank: IntArray) -> IntArray:
    """For each item the one that represents it, (n,): itself, or the first of its copies that represents itself.

    neighbors (n, k); copy (n, k): which of them are copies; rank (n,): the place of each item in order of id.
    """
    leader = np.arange(len(rank))
    with_copies = np.flatnonzero(copy.any(axis=1))
    for item in with_copies[np.argsort(rank[with_copies])]:
        copies = neighbors[item][copy[item]]
        first = copies[(rank[copies] < rank[item]) & (leader[copies] == copies)]
        if len(first):
            leader[item] = first[np.argmin(rank[first])]
    return leader


def search_distinct(
    items: Embeddings, k: int, *, progress: Progress | None = None, given: GivenNeighbors | None = None
) -> tuple[IntArray, IntArray, Neighbors]:
    """Find distinct items and the k nearest distinct others of each.

    One search suffices, unless an item is surrounded by more copies than spare neighbours are looked up.

    Parameters
    ----------
    items : Embeddings
        N items.
    k : int
        How many neighbours to find; fewer are found where there are not as many distinct items.
    progress : Progress, optional
        Called as progress(title, done, total).
    given : GivenNeighbors, optional
        Lists of the items' neighbours from elsewhere, k or more in each, to choose from.

    Returns
    -------
    rows : array of shape (G,)
        The items that represent groups of copies, ascending.
    stands_for : array of shape (N,)
        For each item, the position in `rows` of the item that represents it.
    found : Neighbors
        (G, k) neighbours of the distinct items among each other, as positions in `rows`.
    """
    return distinct_neighbors(_InMemory(items, progress, given), copy_similarity(items), k)


def distinct_neighbors(items: Searched, similarity: float, k: int) -> tuple[IntArray, IntArray, Neighbors]:
    """As `search_distinct`, of items that need not be in memory.

    Parameters
    ----------
    items : Searched
        N items.
    similarity : float
        From which similarity on items are copies.
    k : int
        How many neighbours to find; fewer are found where there are not as many distinct items.

    Returns
    -------
    rows, stands_for, found
        As `search_distinct` returns them.
    """
    count = len(items.rank)
    found = items.within(None, min(k + SPARE, count - 1))
    if not (found.similarities >= similarity).any():
        return np.arange(count), np.arange(count), found.first(k)
    rows, stands_for = _distinct(items, similarity, found)
    k = min(k, len(rows) - 1)
    if not k:
        nobody = np.empty((len(rows), 0))
        return rows, stands_for, Neighbors(nobody, nobody)
    neighbors, similarities = _of_representatives(items, stands_for[found.rows[rows]], found, rows)
    # Whoever was not looked up is not nearer than the last that was.
    short = np.flatnonzero(similarities[:, k - 1] < found.similarities[rows, -1])
    if len(short) * 2 > len(rows):
        return rows, stands_for, items.within(rows, k)
    neighbors, similarities = neighbors[:, :k].copy(), similarities[:, :k].copy()
    if len(short):
        searched = items.of_some(short, rows, k)
        neighbors[short], similarities[short] = searched.rows, searched.similarities
    return rows, stands_for, Neighbors(neighbors, similarities, found.method)


def _of_representatives(
    items: Searched, neighbors: IntArray, found: Neighbors, rows: IntArray
) -> tuple[IntArray, FloatArray]:
    """Lists (G, m) in which each neighbour is one that stands for others, once, and as similar as it is itself.

    neighbors (G, m): who stands for what was found; rows (G,): the distinct items among all. What comes again, or is
    the item itself, comes last, with a similarity of -2.
    """
    similarities = found.similarities[rows].copy()
    item, place = np.nonzero(rows[neighbors] != found.rows[rows])  # found through a copy
    similarities[item, place] = items.of_pairs(rows[item], rows[neighbors[item, place]])
    touched = np.unique(item)
    order, similarities[touched] = once_each(neighbors[touched], similarities[touched], touched)
    neighbors[touched] = np.take_along_axis(neighbors[touched], order, axis=1)
    return neighbors, similarities


def once_each(neighbors: IntArray, similarities: FloatArray, own: IntArray) -> tuple[IntArray, FloatArray]:
    """Put lists in order in which some neighbours come more than once, or are the item itself.

    Parameters
    ----------
    neighbors, similarities : arrays of shape (G, m)
        Of equally similar ones, those with lower numbers come first.
    own : array of shape (G,)
        The number of each item.

    Returns
    -------
    order : array of shape (G, m)
        Where in the list each comes from. What comes again, or is the item itself, comes last.
    similarities : array of shape (G, m)
        In this order; -2 of what comes last.

    Examples
    --------
    >>> order, similar = once_each(np.array([[7, 4, 7, 1]]), np.array([[0.9, 0.8, 0.8, 0.7]]), np.array([1]))
    >>> order.tolist(), similar.tolist()
    ([[0, 1, 3, 2]], [[0.9, 0.8, -2.0, -2.0]])
    """
    again = neighbors == own[:, None]
    for column in range(1, neighbors.shape[1]):
        again[:, column] |= (neighbors[:, :column] == neighbors[:, column : column + 1]).any(axis=1)
    similarities = np.where(again, similarities.dtype.type(-2), similarities)
    order: IntArray = np.lexsort((neighbors, -similarities), axis=1)
    return order, np.take_along_axis(similarities, order, axis=1)
