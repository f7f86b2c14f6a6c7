"""What a refiner remembers: the items of fit, among which others are refined later.

N items, M items of fit, d dimensions.
"""

import numpy as np

from entourage.values import Embeddings

__all__ = ["same_items", "with_fitted"]


def with_fitted(items: Embeddings, fitted: Embeddings) -> Embeddings:
    """The items, followed by those of fit that are not among them.

    Refined as one set, the items land beside those of their class that fit has seen, as these were refined by
    `fit_transform`; an item alone has their company.

    Parameters
    ----------
    items : Embeddings
        N items.
    fitted : Embeddings
        M items. One with the vector of an item, or with its id where both sets are `named`, is that item.

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
    named = items.named and fitted.named
    known = np.isin(_as_bytes(fitted), _as_bytes(items)) | (named & np.isin(fitted.ids, items.ids))
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


def _as_bytes(items: Embeddings) -> np.ndarray:
    """(N,) each vector as one value, to be compared as a whole."""
    return items.vectors.view(f"V{4 * items.dim}").ravel()
