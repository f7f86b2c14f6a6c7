"""Which items methods learn from and which they are scored on."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.errors import InputError
from entourage.runtime.randomness import generator
from entourage.values import BoolArray, Embeddings, LabelArray, as_column, labels_of

__all__ = ["check_words", "judged", "queries_given", "sorted_classes", "split_given", "split_half", "split_numbered"]


def split_half(items: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Split items into those of the first half of the sorted classes (C // 2) and the others.

    Parameters
    ----------
    items : Embeddings of shape (N, d)
        With labels; whole numbers read as text are sorted as numbers.

    Returns
    -------
    training, test : Embeddings

    >>> training, test = split_half(Embeddings.from_vectors(np.eye(3), labels=["b", "c", "a"]))
    >>> training.labels.tolist(), test.labels.tolist()
    (['a'], ['b', 'c'])
    """
    labels = labels_of(items)
    classes = sorted_classes(labels)
    if len(classes) < 2:
        raise InputError(
            f"all items ({len(items)}) are of one class; wanted at least two, one to learn from and one to be scored "
            "on: add items, or check the labels"
        )
    seen = np.isin(labels, classes[: len(classes) // 2])
    return items.take(seen), items.take(~seen)


def split_numbered(items: Embeddings, number: int) -> tuple[Embeddings, Embeddings]:
    """Split items by class into halves: number 0 is `split_half`, every other one draws the training classes.

    Parameters
    ----------
    items : Embeddings of shape (N, d)
        With labels.
    number : int
        From 0 on; the seed of what is drawn.

    Returns
    -------
    training, test : Embeddings
        Of C // 2 classes, and of the others.
    """
    training, test = split_half(items)
    if number == 0:
        return training, test
    labels, classes = labels_of(items), np.array(sorted_classes(labels_of(items)))
    seen = np.isin(labels, generator(number).permutation(classes)[: len(classes) // 2])
    return items.take(seen), items.take(~seen)


def split_given(items: Embeddings, parts: ArrayLike) -> tuple[Embeddings, Embeddings]:
    """Split items by a column of the words "train" and "test", or "train", "query" and "gallery".

    Parameters
    ----------
    items : Embeddings of shape (N, d)
    parts : array-like of shape (N,)
        The word for each item.

    Returns
    -------
    training, test : Embeddings
        Queries and gallery are both test items; `queries_given` tells them apart.
    """
    words = check_words(items, parts)
    seen = words == "train"
    if not seen.any():
        raise InputError("no entry of the split is 'train'; mark some items as train")
    if seen.all():
        raise InputError("no entry of the split is 'test'; mark some items as test, or as query and gallery")
    return items.take(seen), items.take(~seen)


def queries_given(parts: ArrayLike) -> BoolArray | None:
    """Which of the test items of such a column are queries.

    Parameters
    ----------
    parts : array-like of shape (N,)
        As in `split_given`.

    Returns
    -------
    ndarray of bool, shape (n,), or None
        One for each test item; None where the column tells no queries from a gallery.

    >>> queries_given(["train", "query", "gallery", "query"]).tolist(), queries_given(["train", "test"])
    ([True, False, True], None)
    """
    words = as_column(parts).astype(str)
    return words[words != "train"] == "query" if "query" in words else None


def judged(items: Embeddings, parts: ArrayLike) -> tuple[Embeddings, Embeddings | None]:
    """Take what is scored by such a column: the test items among themselves, or queries in a gallery.

    Parameters
    ----------
    items, parts
        As in `split_given`; nothing need be marked as train.

    Returns
    -------
    queries : Embeddings
    gallery : Embeddings or None
        None where queries are searched among themselves.
    """
    words = check_words(items, parts)
    if (words == "train").all():
        raise InputError("every entry of the split is 'train'; mark some items as test, or as query and gallery")
    if "query" in words:
        return items.take(words == "query"), items.take(words == "gallery")
    return items.take(words == "test"), None


def check_words(items: Embeddings, parts: ArrayLike) -> LabelArray:
    """The word for each item, (N,), as text; other words, and queries without a gallery, are refused."""
    if isinstance(parts, str):
        raise InputError(f"the split is {parts!r}; wanted half, or the word train or test for each vector")
    words = as_column(parts).astype(str)
    if words.shape != (len(items),):
        entries = f"{len(words)} entries" if len(words) != 1 else "1 entry"
        raise InputError(f"the split has {entries} for {len(items)} vectors; wanted train or test for each vector")
    other = np.flatnonzero(~np.isin(words, ["train", "test", "query", "gallery"]))
    if other.size:
        raise InputError(
            f"entry {other[0]} of the split is {str(words[other[0]])!r}, and {other.size} in all are neither 'train' "
            "nor 'test', 'query' or 'gallery'; use these words only"
        )
    found = set(words.tolist()) - {"train"}
    if found & {"query", "gallery"} and found != {"query", "gallery"}:
        raise InputError(
            f"the split marks items as {', '.join(sorted(found))}; wanted test alone, or both query and gallery: "
            "mark them so"
        )
    return words


def sorted_classes(labels: np.ndarray) -> list[Any]:
    """Distinct labels in order; whole numbers read as text come in the order of the numbers, as from any other file."""
    classes = np.unique(labels).tolist()
    try:
        return sorted(classes, key=int)
    except ValueError:
        return classes
