"""Contexts for inference, where classes are not known: groups of a fixed size in which items exchange messages.

reciprocal   the item, its reciprocal neighbours, and what they bring along (Eq. 7); a group for each item
nearest      n chunks, each an item and its nearest; every item is the anchor of one chunk
kmeans, ...  as in training: n chunks of p items from one cluster each; every item is in one group

N items, G groups of s items, c chunks of p.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.neighbors.reciprocal import reciprocal_sets
from entourage.runtime.config import check_known
from entourage.runtime.randomness import generator
from entourage.systems.intra_batch.clusters import CLUSTERINGS, cluster
from entourage.values import Embeddings, brief

__all__ = ["CONTEXTS", "Contexts", "cluster_contexts", "find_contexts", "nearest_contexts", "reciprocal_contexts"]

CONTEXTS = ("reciprocal", "nearest", *sorted(CLUSTERINGS))
GROUP_SIZE, K1 = 7, 30  # as in the authors' configuration for inference


@dataclass(frozen=True, eq=False)
class Contexts:
    """Groups of items, and the one group of each item whose output is kept.

    Where chunks of a group overlap, an item stands in it more than once; it counts once (`repeated`).
    """

    groups: np.ndarray
    """(G, s) rows of the items in each group, in any order."""
    group_of: np.ndarray
    """(N,) the group in which each item is the anchor, or one of them."""

    __repr__ = brief

    def __post_init__(self) -> None:
        absent = np.flatnonzero(~(self.groups[self.group_of] == np.arange(len(self.group_of))[:, None]).any(axis=1))
        if absent.size:
            raise InputError(f"item {absent[0]} is not in its own group; wanted each item where its output is kept")

    @property
    def repeated(self) -> np.ndarray:
        """(G, s) whether an item stands in its group at an earlier place too.

        >>> Contexts(np.array([[1, 0, 1], [2, 1, 0]]), np.array([0, 0, 1])).repeated.tolist()
        [[False, False, True], [False, False, False]]
        """
        order = np.argsort(self.groups, axis=1, kind="stable")
        rows = np.take_along_axis(self.groups, order, axis=1)
        repeated = np.zeros(self.groups.shape, bool)
        np.put_along_axis(repeated, order[:, 1:], rows[:, 1:] == rows[:, :-1], axis=1)
        return repeated

    @property
    def anchors(self) -> np.ndarray:
        """(G, r) where in each group the anchors stand, r being the most that any group has; others fill the rest."""
        own = (self.group_of[self.groups] == np.arange(len(self.groups))[:, None]) & ~self.repeated
        return np.argsort(~own, axis=1, kind="stable")[:, : own.sum(axis=1).max()]


def find_contexts(
    items: Embeddings,
    by: str = "reciprocal",
    *,
    size: int | None = None,
    k1: int = K1,
    batch: tuple[int, int] = (10, 7),
    n_clusters: int | None = None,
    seed: int = 0,
) -> Contexts:
    """Find contexts without labels.

    Parameters
    ----------
    items : Embeddings
        N items.
    by : str
        One of `CONTEXTS`.
    size : int, optional
        Items in a group by "reciprocal", or in a chunk by "nearest"; default: 7, or all if there are fewer.
    k1 : int
        Number of neighbours that "reciprocal" considers.
    batch : tuple of int
        Chunks in a group, and items in a chunk of a cluster.
    n_clusters : int, optional
        For the algorithms that take a number; default: an eighth of the items.
    seed : int
        Seed of the order in which chunks are joined, and of clusters.

    Returns
    -------
    Contexts
        Every item is the anchor of one group.
    """
    check_known(by, CONTEXTS, "the context")
    if len(items) < 2:
        raise InputError(f"there is {len(items)} item; wanted two or more, to exchange messages")
    for name, value, least in (("size", size, 2), ("k1", k1, 1), ("n_clusters", n_clusters, 1)):
        if value is not None and value < least:
            raise InputError(f"{name} is {value}; wanted {least} or more")
    if size is not None and by in CLUSTERINGS:
        raise InputError(
            f"size is {size} but groups by {by} have the size of training, {batch[0]} chunks of {batch[1]} items; "
            "leave size out"
        )
    size = GROUP_SIZE if size is None else size
    if by == "reciprocal":
        return reciprocal_contexts(items, size, k1)
    if by == "nearest":
        return nearest_contexts(items, size, batch[0], seed=seed)
    codes = cluster(items.vectors, by, n_clusters, seed=seed)
    return cluster_contexts(items, codes, *batch, seed=seed)


def nearest_contexts(items: Embeddings, size: int = GROUP_SIZE, n_chunks: int = 10, *, seed: int = 0) -> Contexts:
    """Groups of chunks, each an item and its nearest (supplement, C.2), joined at random.

    Parameters
    ----------
    items : Embeddings
        N items.
    size : int
        Items in a chunk: its anchor and the size - 1 nearest to it.
    n_chunks : int
        Chunks in a group.
    seed : int
        Seed of the order in which chunks are joined.

    Returns
    -------
    Contexts
        Every item is the anchor of one chunk.
    """
    own = np.arange(len(items))
    size = min(size, len(items))
    chunks = own[:, None]
    if size > 1:
        chunks = np.column_stack([own, search(items, k=size - 1).rows])
    return _joined(chunks, own, n_chunks, generator(seed))


# ---- reciprocal neighbours ---------------------------------------------------------------------------------------


def reciprocal_contexts(items: Embeddings, size: int = GROUP_SIZE, k1: int = K1) -> Contexts:
    """Groups of an item and its reciprocal neighbours, expanded by Eq. 7.

    Parameters
    ----------
    items : Embeddings
        N items.
    size : int
        Items in a group: the nearest reciprocal neighbours; where there are fewer, other nearest items fill it.
    k1 : int
        Number of neighbours that are considered.

    Returns
    -------
    Contexts
        N groups; item i is the anchor of group i.
    """
    count = len(items)
    size = min(size, count)
    nearest = search(items, k=min(max(k1, size - 1), count - 1)).rows
    groups = np.empty((count, size), np.int64)
    for block, members in reciprocal_sets(nearest, k1):
        groups[block] = _filled(*_nearest_members(items, block, members, size), nearest[block], size)
    return Contexts(groups, np.arange(count))


def _nearest_members(items: Embeddings, block: slice, members: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The members (n, N, sparse) nearest to each item of the block, itself first: (owners (m,), members (m,)).

    Owners count from 0 in the block and never decrease; each has `size` members at most.
    """
    owners = np.repeat(np.arange(members.shape[0]), np.diff(members.indptr))
    rows = members.indices.astype(np.int64)
    similarities = np.einsum("md,md->m", items.vectors[owners + block.start], items.vectors[rows])
    similarities[rows == owners + block.start] = np.inf
    order = np.lexsort([np.asarray(items.ids)[rows], -similarities, owners])
    owners, rows = owners[order], rows[order]
    kept = np.arange(len(rows)) - members.indptr[owners] < size
    return owners[kept], rows[kept]


def _filled(owners: np.ndarray, members: np.ndarray, nearest: np.ndarray, size: int) -> np.ndarray:
    """Groups (n, size) of the members (m,) of their owners (m,), filled up with the nearest (n, k) not among them."""
    count = len(nearest)
    sizes = np.bincount(owners, minlength=count)
    starts = np.cumsum(sizes) - sizes
    groups = np.empty((count, size), np.int64)
    groups[owners, np.arange(len(owners)) - starts[owners]] = members
    base = int(max(members.max(), nearest.max())) + 1
    there = np.isin(np.arange(count)[:, None] * base + nearest, owners * base + members)
    places = sizes[:, None] + np.cumsum(~there, axis=1) - 1
    filling = ~there & (places < size)
    groups[np.nonzero(filling)[0], places[filling]] = nearest[filling]
    return groups


# ---- clusters ----------------------------------------------------------------------------------------------------


def cluster_contexts(
    items: Embeddings, codes: np.ndarray, n_clusters: int, per_cluster: int, *, seed: int = 0
) -> Contexts:
    """Groups like the batches of training: chunks of items, each chunk from one cluster.

    Clusters are cut into chunks at random. A chunk that falls short is filled with others of its cluster, then with the
    nearest items; a group that does, with other chunks. What fills a group has its own output in its own group.

    Parameters
    ----------
    items : Embeddings
        N items.
    codes : ndarray of int, shape (N,)
        The cluster of each, from 0.
    n_clusters : int
        Chunks in a group.
    per_cluster : int
        Items in a chunk.
    seed : int
        Seed of the chunks, and of the order in which they are joined.

    Returns
    -------
    Contexts
        Every item is an anchor of one group.
    """
    draw = generator(seed)
    per_cluster = min(per_cluster, len(items))
    chunks, chunk_of = _chunks(items, codes, per_cluster, draw)
    return _joined(chunks, chunk_of, n_clusters, draw)


def _chunks(
    items: Embeddings, codes: np.ndarray, per_cluster: int, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(chunks (c, p) of rows, the chunk (N,) each item belongs to)."""
    nearest = None
    chunks: list[np.ndarray] = []
    chunk_of = np.empty(len(items), np.int64)
    shuffled = draw.permutation(len(items))
    by_cluster = shuffled[np.argsort(codes[shuffled], kind="stable")]
    for members in np.split(by_cluster, np.cumsum(np.bincount(codes))[:-1]):
        for start in range(0, len(members), per_cluster):
            chunk = members[start : start + per_cluster]
            chunk_of[chunk] = len(chunks)
            if len(chunk) < per_cluster:
                if nearest is None:
                    nearest = search(items, k=min(per_cluster, len(items) - 1)).rows
                candidates = np.concatenate([chunk, members[:start], nearest[chunk[0]]])
                chunk = candidates[np.sort(np.unique(candidates, return_index=True)[1])][:per_cluster]
            chunks.append(chunk)
    return np.array(chunks), chunk_of


# ---- chunks ------------------------------------------------------------------------------------------------------


def _joined(chunks: np.ndarray, chunk_of: np.ndarray, n_chunks: int, draw: np.random.Generator) -> Contexts:
    """Groups of n of the chunks (c, p) in random order; chunk_of (N,): where each item is an anchor.

    A group that falls short is filled with chunks of other groups.
    """
    order = draw.permutation(len(chunks))
    n_chunks = min(n_chunks, len(chunks))
    whole = len(order) - len(order) % n_chunks  # what lies beyond is a group that falls short
    others = draw.choice(order[:whole], -len(order) % n_chunks, replace=False)
    groups = chunks[np.append(order, others)].reshape(-1, n_chunks * chunks.shape[1])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return Contexts(groups, place[chunk_of] // n_chunks)
