"""Some classes of a set, for a try that takes minutes."""

from typing import TypeVar

import numpy as np

from entourage.data.image_set import Items
from entourage.errors import InputError
from entourage.values import labels_of

__all__ = ["some_classes"]

Set = TypeVar("Set", bound=Items)


def some_classes(items: Set, count: int, like: Items | None = None) -> Set:
    """Take the items of some classes, evenly over the sorted ones.

    Parameters
    ----------
    items : ImageSet or Embeddings
        N labelled items.
    count : int
        How many classes, at most.
    like : ImageSet or Embeddings, optional
        The set whose classes are counted, as queries and their gallery must have the same; default: the items.

    Returns
    -------
    ImageSet or Embeddings
        Those of the chosen classes, in their order.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"max_classes is {count!r}; wanted a whole number from 1 on")
    labels = labels_of(items)
    classes = np.unique(labels if like is None else labels_of(like))
    if count >= len(classes):
        return items
    chosen = classes[np.linspace(0, len(classes) - 1, count).round().astype(int)]
    return items.take(np.flatnonzero(np.isin(labels, chosen)))  # type: ignore[return-value]  # take keeps the kind
