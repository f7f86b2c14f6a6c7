"""Neighbours of items among themselves, searched once for all who look for them while work is shared."""

from entourage.neighbors import search
from entourage.runtime.sharing import is_shared, shared
from entourage.values import Embeddings, Neighbors

__all__ = ["nearest_others"]

_DEPTH = 130  # what is searched at once, so that those who ask for fewer or a few more find it


def nearest_others(items: Embeddings, k: int) -> Neighbors:
    """Find the k nearest others of each item, as `search(items, k=k)` does.

    Where work is shared (runtime/sharing.py), more neighbours are searched and kept, and the next who asks for these
    items gets the first of them: the same items, with similarities that may differ by rounding.

    Parameters
    ----------
    items : Embeddings
        N items.
    k : int
        Less than N.

    Returns
    -------
    Neighbors
        Of shape (N, k).
    """
    if not is_shared(items.vectors, items.ids):
        return search(items, k=k)
    depth = min(max(k, _DEPTH), len(items) - 1)
    arrays = items.vectors, items.ids
    found = shared("neighbors", arrays, lambda: search(items, k=depth), lambda known: known.k >= k)
    return Neighbors(found.rows[:, :k], found.similarities[:, :k])
