"""How the test items are used: who asks, and what is searched.

together   every test item is a query among the others, and all look at each other
served     three items in ten come one at a time to a gallery of the others, which was prepared without them
open       the same, but half of the queries' classes are not in the gallery: does a method know that?
sparse     galleries of 1, 2, 3 and 5 items a class, of very uneven classes, and with many items of no class

Where it is given which test items are queries, as with a dataset that has a query and a gallery split, those of served
and open are not drawn.

In all but the first, queries come alone: none is affected by another, and the gallery by none. What is drawn depends on
a seed alone, so that all methods, and all of their seeds, answer the same queries.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from entourage.comparison.splits import sorted_classes
from entourage.errors import InputError
from entourage.runtime.config import check_name
from entourage.runtime.randomness import generator
from entourage.values import BoolArray, Embeddings, IntArray, brief, label_codes, labels_of, shared_codes

__all__ = ["PROTOCOLS", "Task", "check_protocols", "tasks_of"]

QUERY_SHARE = 0.3
SIZES = (1, 2, 3, 5)  # items a class in sparse galleries
MOST_QUERIES = 2000  # of a sparse gallery
DISTRACTORS = 10  # for each item of a class
_OF_DISTRACTED = 5  # items a class among distractors
_ASKING, _UNKNOWN, _KEPT, _ORDER, _OTHERS = range(1, 6)  # streams of random numbers


@dataclass(frozen=True, eq=False)
class Task:
    """Queries and what they are searched in."""

    protocol: str
    """One of PROTOCOLS."""
    queries: Embeddings
    """N items with labels."""
    gallery: Embeddings | None = None
    """M items with labels, none of them a query; None: each query is searched among the others."""
    kind: str | None = None
    """Which gallery of the protocol this is, if it has several."""
    note: str = ""
    """What was drawn, for whoever reads the numbers."""
    known: BoolArray | None = None
    """(N,) whether the class of each query is in the gallery; None where all are meant to be."""

    __repr__ = brief

    @property
    def name(self) -> str:
        """Such as "served", or "sparse, 2 a class"."""
        return self.protocol if self.kind is None else f"{self.protocol}, {self.kind}"

    @property
    def depth(self) -> int:
        """How many items can be retrieved for a query."""
        return len(self.queries) - 1 if self.gallery is None else len(self.gallery)


def check_protocols(protocols: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of protocols, each once, given one name or several."""
    names = (protocols,) if isinstance(protocols, str) else tuple(protocols)
    for name in names:
        check_name(name, PROTOCOLS, "protocol")
    if not names:
        raise InputError(f"no protocol was named; wanted one or more of {', '.join(PROTOCOLS)}")
    return tuple(dict.fromkeys(names))


def tasks_of(
    protocols: Iterable[str],
    training: Embeddings,
    test: Embeddings,
    seed: int = 0,
    *,
    queries: BoolArray | None = None,
) -> list[Task]:
    """Make the tasks of some protocols from labelled items.

    Parameters
    ----------
    protocols : iterable of str
        Names from PROTOCOLS.
    training, test : Embeddings of shapes (L, d) and (N, d)
        With labels; training items serve as distractors.
    seed : int
        Decides what is drawn.
    queries : array of bool, shape (N,), optional
        Which test items are queries, and the others their gallery; by default they are drawn. Together all look at each
        other, and sparse galleries are drawn, whatever it says.

    Returns
    -------
    list of Task
        In the order of the protocols. A sparse gallery for which no two classes have enough items is left out, and
        so are distractors where all training classes are test classes.

    Examples
    --------
    >>> labels = np.repeat(np.arange(4), 5)
    >>> items = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(20, 3)), labels=labels)
    >>> (served,) = tasks_of(["served"], items, items)
    >>> len(served.queries), len(served.gallery)
    (6, 14)
    """
    return [task for name in protocols for task in _TASKS[name](training, test, seed, queries)]


def _together(training: Embeddings, test: Embeddings, seed: int, queries: BoolArray | None) -> Iterator[Task]:
    yield Task("together", test)


def _served(training: Embeddings, test: Embeddings, seed: int, queries: BoolArray | None) -> Iterator[Task]:
    asking, gallery = _divided(test, seed, queries)
    yield Task("served", asking, gallery, note=_counted(asking, gallery, given=queries is not None))


def _open(training: Embeddings, test: Embeddings, seed: int, queries: BoolArray | None) -> Iterator[Task]:
    asking, gallery = _divided(test, seed, queries)
    classes = generator(seed, _UNKNOWN).permutation(_classes(asking))
    if len(classes) < 2:
        raise InputError(
            f"{len(classes)} class of the test items has a query and more items; wanted two or more, of which half "
            "become unknown: add classes, or leave the protocol open out"
        )
    unknown = classes[: len(classes) // 2]
    known = ~np.isin(labels_of(asking), unknown)
    gallery = gallery.take(~np.isin(labels_of(gallery), unknown))
    note = f"{int((~known).sum())} of them of {len(unknown)} classes that are not in the gallery"
    counted = _counted(asking, gallery, given=queries is not None)
    yield Task("open", asking, gallery, note=f"{counted}; {note}", known=known)


def _sparse(training: Embeddings, test: Embeddings, seed: int, queries: BoolArray | None) -> Iterator[Task]:
    sizes = _sizes(test)
    kinds = {f"{size} a class": np.where(sizes > size, size, 0) for size in SIZES} | {"zipf": _zipf(sizes, seed)}
    for kind, kept in kinds.items():
        if (kept > 0).sum() > 1:
            asking, gallery = _thinned(test, kept, seed)
            yield Task("sparse", asking, gallery, kind, _counted(asking, gallery))
    few = np.where(sizes > 1, np.minimum(sizes - 1, _OF_DISTRACTED), 0)
    strangers = np.flatnonzero(~np.isin(*shared_codes(labels_of(training), labels_of(test))))
    if few.any() and strangers.size:
        asking, gallery = _thinned(test, few, seed)
        drawn = generator(seed, _OTHERS).permutation(strangers)[: DISTRACTORS * len(gallery)]
        others = training.take(np.sort(drawn))
        note = f"{_counted(asking, gallery)} and {len(others)} distractors, training items of no test class"
        yield Task("sparse", asking, _joined(gallery, others), "distractors", note)


_TASKS = {"together": _together, "served": _served, "open": _open, "sparse": _sparse}
PROTOCOLS = tuple(_TASKS)


# ---- what is drawn -----------------------------------------------------------------------------------------------


def _divided(test: Embeddings, seed: int, queries: BoolArray | None) -> tuple[Embeddings, Embeddings]:
    """Queries and their gallery, as given or drawn."""
    asks = _asking(test, seed) if queries is None else queries
    codes = label_codes(labels_of(test))
    if not np.isin(codes[asks], codes[~asks]).any():
        raise InputError("no query has an item of its class in the gallery; check the labels and the split")
    return test.take(asks), test.take(~asks)


def _asking(test: Embeddings, seed: int) -> BoolArray:
    """(N,) which items are queries: three in ten, as long as another item of their class stays in the gallery."""
    codes = label_codes(labels_of(test))
    drawn = generator(seed, _ASKING).permutation(len(test))
    last = np.unique(codes[drawn[::-1]], return_index=True)[1]  # of each class, the one that would be drawn last
    may_ask = np.delete(drawn[::-1], last)[::-1]
    asks = np.zeros(len(test), bool)
    asks[may_ask[: round(QUERY_SHARE * len(test))]] = True
    if not asks.any():
        raise InputError("no class of the test items has two items, one to ask with and one to be found; check labels")
    return asks


def _sizes(test: Embeddings) -> IntArray:
    """(C,) how many items each class has."""
    return np.bincount(label_codes(labels_of(test)))


def _zipf(sizes: IntArray, seed: int) -> IntArray:
    """(C,) how many items of each class stay: the r-th in an order that is drawn has 1/r as many as the first."""
    rank = 1 + generator(seed, _ORDER).permutation(len(sizes))
    return np.minimum(np.maximum((sizes.max() - 1) // rank, 1), sizes - 1)


def _thinned(test: Embeddings, kept: IntArray, seed: int) -> tuple[Embeddings, Embeddings]:
    """Queries and a gallery with so many items (C,) of each class; classes with none have no part.

    All other items of those classes are queries, or where that is too many, equally many of each class.
    """
    codes = label_codes(labels_of(test))
    order = generator(seed, _KEPT).permutation(len(test))
    order = order[np.argsort(codes[order], kind="stable")]
    place = np.empty(len(test), np.int64)  # of each item in its class, as drawn
    place[order] = np.arange(len(test)) - np.searchsorted(codes[order], codes[order])
    own, asking = kept[codes], max(1, MOST_QUERIES // int((kept > 0).sum()))
    in_gallery = place < own
    asks = (own > 0) & ~in_gallery & (place < own + asking)
    return test.take(asks), test.take(in_gallery)


def _joined(gallery: Embeddings, others: Embeddings) -> Embeddings:
    """Both as one gallery, numbered anew: the two sets may use one id for different items."""
    parts = gallery, others
    labels = np.concatenate([labels_of(part).astype(object) for part in parts]).astype(str)
    return Embeddings(np.concatenate([part.vectors for part in parts]), labels=labels)


def _classes(items: Embeddings) -> np.ndarray:
    return np.array(sorted_classes(labels_of(items)))


def _counted(queries: Embeddings, gallery: Embeddings, *, given: bool = False) -> str:
    classes = len(np.unique(labels_of(gallery)))
    counted = f"{len(queries)} queries, {len(gallery)} gallery items of {classes} classes"
    return f"as the split says: {counted}" if given else counted
