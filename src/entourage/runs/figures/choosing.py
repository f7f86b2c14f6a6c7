"""Which items a picture shows."""

import numpy as np

from entourage.data.image_set import Items
from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.retrieval import choose_queries
from entourage.runtime.randomness import generator
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, Neighbors

__all__ = ["SHOWN", "choose_changed", "choose_row", "choose_rows", "first", "most_changed", "sheet_size"]

SHOWN = 8  # neighbours of a query


def choose_rows(items: Embeddings, points: int | None, seed: int) -> IntArray | None:
    """Choose rows of at most `points` items, ascending; None for all.

    Where labels are known, whole classes are drawn by the seed as long as there is room, because items of a class say
    more together. The first class that is too large for the remaining room is cut.
    """
    if points is None or points >= len(items):
        return None
    if points < 2:
        raise InputError(f"points is {points}; wanted 2 or more")
    rng = generator(seed)
    if items.labels is None:
        return np.sort(rng.choice(len(items), points, replace=False))
    classes, codes = np.unique(items.labels, return_inverse=True)
    place = rng.permutation(len(classes))[codes]  # of every item's class in a random order
    return np.sort(np.argsort(place, kind="stable")[:points])


def choose_row(items: Items, query: str) -> int:
    """Return the row of the query with that id; `items` are Embeddings or an image set."""
    found = np.flatnonzero(items.ids.astype(str) == str(query))
    if not len(found):
        raise InputError(
            f"the query is {query!r}, which is not an id of the {len(items)} items; wanted one like {_some(items.ids)}"
        )
    return int(found[0])


def _some(ids: LabelArray) -> str:
    *first, last = map(str, ids[:3])
    return f"{', '.join(first)} or {last}" if first else last


def choose_changed(gains: FloatArray | None, before: Neighbors, after: Neighbors, count: int) -> IntArray:
    """Choose rows, half of them gains and half losses; without labels, those whose neighbours changed most."""
    if gains is None:
        return most_changed(before, after, count)
    chosen = choose_queries(gains, n_best=count // 2, n_worst=count - count // 2)
    return chosen if len(chosen) else np.arange(min(count, len(gains)))  # nothing changed: the first ones


def sheet_size(shown: Appearance) -> tuple[int, int]:
    """Return how many queries a sheet shows, and how many neighbours of each: fewer for texts and ids."""
    return (8, SHOWN) if shown.kind == "pictures" else (4, 5)


def first(found: Neighbors, count: int) -> Neighbors:
    """Keep the `count` nearest neighbours of each query."""
    return Neighbors(found.rows[:, :count], found.similarities[:, :count])


def most_changed(before: Neighbors, after: Neighbors, count: int) -> IntArray:
    """Rows of the items that keep the fewest neighbours, (count,); ties by row."""
    return np.argsort(before.kept_in(after), kind="stable")[:count]
