"""What became of every class."""

import numpy as np

__all__ = ["means_by_class"]


def means_by_class(labels, *columns) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    """Names (C,), sizes (C,) and, of each column (N,), the means (C,) of the classes of labels (N,).

    >>> names, sizes, (means,) = means_by_class(["a", "b", "a"], np.array([0.0, 0.5, 1.0]))
    >>> names, sizes.tolist(), means.tolist()
    (['a', 'b'], [2, 1], [0.5, 0.5])
    """
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = [np.bincount(codes, weights=values, minlength=len(names)) / sizes for values in columns]
    return names.astype(str).tolist(), sizes, means
