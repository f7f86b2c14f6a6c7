"""Scores of every class."""

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["means_by_class"]


def means_by_class(labels: ArrayLike, *columns: np.ndarray) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    """Average values of items over each class.

    Parameters
    ----------
    labels : (N,)
        Class of each item.
    *columns : (N,)
        Values of the items.

    Returns
    -------
    names : list of C texts
        The classes, sorted.
    sizes : (C,)
        Items of each class.
    means : list of (C,)
        For each column, its mean over each class.

    >>> names, sizes, (means,) = means_by_class(["a", "b", "a"], np.array([0.0, 0.5, 1.0]))
    >>> names, sizes.tolist(), means.tolist()
    (['a', 'b'], [2, 1], [0.5, 0.5])
    """
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = [np.bincount(codes, weights=values, minlength=len(names)) / sizes for values in columns]
    return names.astype(str).tolist(), sizes, means
