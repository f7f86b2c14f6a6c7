"""Near-identical items counted once, so that copies of one item are never a whole neighbourhood."""

import numpy as np

from entourage.neighbors import search
from entourage.runtime.progress import Progress
from entourage.values import BoolArray, Embeddings, IntArray, Neighbors

__all__ = ["copy_similarity", "distinct_items", "search_distinct"]

_COPY = 0.002  # of the usual squared distance
_ROUNDING = 5e-7  # of the similarity of a vector to itself
_LOOK_AT = 8
_SPARE = 8  # neighbours looked up beyond k, in case some are copies
_ROUNDS = 6


def copy_similarity(items: Embeddings) -> float:
    """The similarity from which on two items of a set count as copies: at 0.2 % of the usual squared distance.

    Unit vectors of mean m are 1 - |m|² apart on average (half their squared distance), which is little for encoders
    that put everything into a narrow cone.

    Parameters
    ----------
    items : Embeddings

    Returns
    -------
    float
    """
    mean = items.vectors.mean(axis=0, dtype=np.float64)
    return 1 - max(_COPY * (1 - float(mean @ mean)), _ROUNDING)


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
    rows = np.arange(len(items))
    stand_in = np.arange(len(items))
    rank = np.empty(len(items), np.int64)
    rank[np.argsort(items.ids, kind="stable")] = np.arange(len(items))
    for _ in range(_ROUNDS):
        if len(rows) < 2:
            break
        if found is None:
            found = search(items.take(rows), k=min(_LOOK_AT, len(rows) - 1))
        copy = found.similarities >= similarity
        leader = _leaders(found.rows, copy, rank[rows])
        stand_in = rows[leader][np.searchsorted(rows, stand_in)]
        rows = np.unique(stand_in)
        if not copy[:, -1].any():  # no list ends in a copy, so none was overlooked
            break
        found = None
    return rows, np.searchsorted(rows, stand_in)


def _leaders(neighbors: IntArray, copy: BoolArray, rank: IntArray) -> IntArray:
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
    items: Embeddings, k: int, *, progress: Progress | None = None
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

    Returns
    -------
    rows : array of shape (G,)
        The items that represent groups of copies, ascending.
    stands_for : array of shape (N,)
        For each item, the position in `rows` of the item that represents it.
    found : Neighbors
        (G, k) neighbours of the distinct items, as positions in `rows`.
    """
    similarity = copy_similarity(items)
    found = search(items, k=min(k + _SPARE, len(items) - 1), progress=progress)
    copy = found.similarities >= similarity
    if not copy.any():
        return np.arange(len(items)), np.arange(len(items)), _first(found, k)
    rows, stands_for = distinct_items(items, similarity, found)
    k = min(k, len(rows) - 1)
    if not k:
        nobody = np.empty((len(rows), 0))
        return rows, stands_for, Neighbors(nobody, nobody)
    neighbors = stands_for[found.rows[rows]]
    again = neighbors == np.arange(len(rows))[:, None]
    for column in range(1, neighbors.shape[1]):
        again[:, column] |= (neighbors[:, :column] == neighbors[:, column : column + 1]).any(axis=1)
    if (~again).sum(axis=1).min() < k:
        return rows, stands_for, search(items.take(rows), k=k, progress=progress)
    new = np.argsort(again, axis=1, kind="stable")[:, :k]
    similarities = np.take_along_axis(found.similarities[rows], new, axis=1)
    return rows, stands_for, Neighbors(np.take_along_axis(neighbors, new, axis=1), similarities)


def _first(found: Neighbors, k: int) -> Neighbors:
    return Neighbors(found.rows[:, :k], found.similarities[:, :k])
