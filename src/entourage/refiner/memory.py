"""Among whom items are refined: among themselves, a gallery, or the items of fit that a refiner remembers.

N items, M items of fit, d dimensions.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from entourage.neighbors import search
from entourage.refiner.conversion import Table
from entourage.refiner.protocol import RefiningNetwork
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray

__all__ = ["Among", "same_items", "with_fitted"]

Rows = TypeVar("Rows", FloatArray, IntArray)

_ROUNDING = 1e-6  # of the similarity of a vector to itself, in whatever precision it came


@dataclass(frozen=True, eq=False)
class Among:
    """Items to refine and the gallery to find their neighbours in."""

    table: Table
    """The N items as they were given."""
    items: Embeddings
    """The items, and behind them others that are refined along with them, if there are any."""
    gallery: Embeddings
    """The items again, or the context."""
    ids: LabelArray
    """(N,) the ids of the items."""
    network: RefiningNetwork
    """What refines them."""

    def wanted(self, refined: Rows) -> Rows:
        """The items' part, of shape (N, ...)."""
        return refined[: len(self.ids)]


def with_fitted(items: Embeddings, fitted: Embeddings) -> Embeddings:
    """The items, followed by those of fit that are not among them.

    Refined as one set, the items land beside those of their class that fit has seen, as these were refined by
    `fit_transform`; an item alone has their company.

    Parameters
    ----------
    items : Embeddings
        N items.
    fitted : Embeddings
        M items. One with the vector of an item, up to rounding, or with its id where both sets are `named`, is that
        item.

    Returns
    -------
    Embeddings
        N to N + M items without labels, `items` itself where there are no others. They keep their ids if both sets are
        named, and are numbered otherwise.

    Examples
    --------
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]])
    >>> len(with_fitted(items, Embeddings.from_vectors([[1.0, 0.0], [0.6, 0.8]])))  # the first is there already
    3
    """
    if same_items(items, fitted):
        return items
    named = items.named and fitted.named
    nearest = search(Embeddings(fitted.vectors), Embeddings(items.vectors), k=1).similarities[:, 0]
    known = (nearest >= 1 - _ROUNDING) | (named & np.isin(fitted.ids, items.ids))
    if known.all():
        return items
    others = fitted.take(~known)
    vectors = np.concatenate([items.vectors, others.vectors])
    return Embeddings(vectors, np.concatenate([items.ids, others.ids]) if named else None)


def same_items(items: Embeddings, others: Embeddings) -> bool:
    """Whether two sets are the same: `X[seen]` written twice makes two arrays, but means one set.

    Where both are named, their ids decide who is who, and this is not asked.
    """
    unnamed = not (items.named and others.named)
    return items is others or (unnamed and np.array_equal(items.vectors, others.vectors))
