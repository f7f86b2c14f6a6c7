"""Copies counted once: a crowd of near-identical items must not be anyone's whole neighbourhood."""

import numpy as np

from entourage.neighbors import search
from entourage.values import Embeddings

__all__ = ["COPIES", "distinct_items"]

COPIES = 0.999  # items at least this similar show the same thing
_LOOK_AT = 8
_ROUNDS = 6


def distinct_items(items: Embeddings, similarity: float = COPIES) -> tuple[np.ndarray, np.ndarray]:
    """Rows (G,) that stand for all others, in order, and for each item the position of its stand-in in them, (N,).

    An item joins the first item in order of id that is at least so similar to it and stands for itself. Searched a
    few neighbours at a time among the stand-ins that remain, until none has a copy (or a few rounds have passed).

    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.001], [1.0, 0.0]])
    >>> rows, stands_for = distinct_items(items)
    >>> rows.tolist(), stands_for.tolist()
    ([0, 1], [0, 1, 0, 0])
    """
    rows = np.arange(len(items))
    stand_in = np.arange(len(items))
    rank = np.empty(len(items), np.int64)
    rank[np.argsort(items.ids, kind="stable")] = np.arange(len(items))
    for _ in range(_ROUNDS):
        if len(rows) < 2:
            break
        remaining = items.take(rows)
        found = search(remaining, k=min(_LOOK_AT, len(rows) - 1))
        copy = found.similarities >= similarity
        if not copy.any():
            break
        leader = _leaders(found.rows, copy, rank[rows])
        stand_in = rows[leader][np.searchsorted(rows, stand_in)]
        rows = np.unique(stand_in)
    return rows, np.searchsorted(rows, stand_in)


def _leaders(neighbors, copy, rank) -> np.ndarray:
    """For each item the one that stands for it, (n,): itself, or the first of its copies that stands for itself."""
    leader = np.arange(len(rank))
    for item in np.argsort(rank):
        copies = neighbors[item][copy[item]]
        first = copies[(rank[copies] < rank[item]) & (leader[copies] == copies)]
        if len(first):
            leader[item] = first[np.argmin(rank[first])]
    return leader
