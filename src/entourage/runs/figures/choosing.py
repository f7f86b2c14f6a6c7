"""Which items a picture shows."""

import numpy as np

from entourage.data.image_set import Items
from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.label_styles import NAMED, by_frequency
from entourage.figures.retrieval import choose_queries
from entourage.runtime.randomness import generator
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, Neighbors

__all__ = [
    "SHOWN",
    "choose_changed",
    "choose_drifting",
    "choose_row",
    "choose_rows",
    "first",
    "most_changed",
    "sheet_size",
]

SHOWN = 8  # neighbours of a query
DRIFTING = 480
"""Items of a drift whose arrows can be told apart; of 20 each, all classes can be named."""
_EACH = 10  # items of a class, at least, if it has as many


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


def choose_drifting(items: Embeddings, points: int | None, seed: int) -> IntArray:
    """Choose rows that a drift shows, ascending: items of the most frequent classes, as many of each as there is room.

    Parameters
    ----------
    items : Embeddings
        N items.
    points : int or None
        At most so many, 2 or more. None: as many as can be told apart, and no class that would not be named.
    seed : int
        Decides between equally frequent classes, and which items of a class are taken.

    Returns
    -------
    array of shape (n,)
        All rows if there are no more items than that.
    """
    most = DRIFTING if points is None else points
    if most < 2:
        raise InputError(f"points is {points}; wanted 2 or more")
    if most >= len(items):
        return np.arange(len(items))
    drawn = generator(seed).permutation(len(items))
    if items.labels is None:
        return np.sort(drawn[:most])
    _, codes, counts = np.unique(items.labels, return_inverse=True, return_counts=True)
    place = np.argsort(by_frequency(counts, seed))[codes[drawn]]  # of every item's class among the most frequent
    named = min(NAMED, max(1, most // _EACH))
    turn = _occurrence(place)  # all classes have their first item before any has its second
    order = np.lexsort((place, np.where(place < named, turn, len(items))))
    chosen = order[:most] if points is not None else order[: min(most, int((place < named).sum()))]
    return np.sort(drawn[chosen])


def _occurrence(values: IntArray) -> IntArray:
    """How often each value has occurred before, (N,).

    >>> _occurrence(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(values, kind="stable")
    starts = np.searchsorted(values[order], values[order])
    occurrence = np.empty(len(values), int)
    occurrence[order] = np.arange(len(values)) - starts
    return occurrence


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


def choose_changed(
    gains: FloatArray | None, before: Neighbors, after: Neighbors, count: int, labels: LabelArray | None = None
) -> IntArray:
    """Choose rows, half of them gains and half losses; without labels, those whose neighbours changed most."""
    if gains is None:
        return most_changed(before, after, count)
    chosen = choose_queries(gains, count // 2, count - count // 2, labels)
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
