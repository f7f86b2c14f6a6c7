"""Which classes are learned from and which are judged."""

import numpy as np

from entourage.errors import InputError
from entourage.values import Embeddings

__all__ = ["split_as_told", "split_half"]


def split_half(items: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Training and test items: the first half of the sorted classes (C // 2), and the others.

    >>> training, test = split_half(Embeddings.from_vectors(np.eye(3), labels=["b", "c", "a"]))
    >>> training.labels.tolist(), test.labels.tolist()
    (['a'], ['b', 'c'])
    """
    classes = _sorted_classes(items.labels)
    if len(classes) < 2:
        raise InputError("all items are of one class; wanted at least two classes, to learn from one and judge another")
    seen = np.isin(items.labels, classes[: len(classes) // 2])
    return items.take(seen), items.take(~seen)


def split_as_told(items: Embeddings, parts) -> tuple[Embeddings, Embeddings]:
    """Training and test items by parts (N,): "train" or "test" for each."""
    parts = np.asarray(parts).astype(str)
    if parts.shape != (len(items),):
        raise InputError(f"the split has shape {parts.shape} for {len(items)} vectors; wanted one entry per vector")
    other = np.flatnonzero(~np.isin(parts, ["train", "test"]))
    if other.size:
        raise InputError(
            f"entry {other[0]} of the split is {str(parts[other[0]])!r} ({other.size} such); "
            "wanted the word train or test for every vector: rename them"
        )
    seen = parts == "train"
    for word, chosen in (("train", seen), ("test", ~seen)):
        if not chosen.any():
            raise InputError(f"no entry of the split is {word!r}; wanted some of both: name some items {word}")
    return items.take(seen), items.take(~seen)


def _sorted_classes(labels) -> list:
    """Distinct labels in order; whole numbers read as text come in the order of the numbers, as from any other file."""
    classes = np.unique(labels).tolist()
    try:
        return sorted(classes, key=int)
    except ValueError:
        return classes
