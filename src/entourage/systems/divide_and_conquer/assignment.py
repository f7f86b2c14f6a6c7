"""Which learner takes over which cluster when the data are clustered again.

Every clustering numbers its clusters afresh; learners keep their numbers. N items, K clusters and as many learners.
"""

import numpy as np

__all__ = ["as_learners", "overlaps"]


def overlaps(before: np.ndarray, after: np.ndarray, count: int) -> np.ndarray:
    """How much the clusters of two clusterings overlap.

    Parameters
    ----------
    before, after : ndarray of int, shape (N,)
        The cluster of each item, from 0 to K - 1.
    count : int
        K, the number of clusters.

    Returns
    -------
    ndarray of float, shape (K, K)
        Intersection over union of cluster i before and cluster j after, at [i, j]; 0 where both are empty.

    Examples
    --------
    >>> overlaps(np.array([0, 0, 1]), np.array([1, 1, 1]), 2).round(2).tolist()
    [[0.0, 0.67], [0.0, 0.33]]
    """
    common = np.zeros((count, count), np.int64)
    np.add.at(common, (before, after), 1)
    union = common.sum(axis=1)[:, None] + common.sum(axis=0) - common
    return common / np.maximum(union, 1)


def as_learners(before: np.ndarray, after: np.ndarray, count: int) -> np.ndarray:
    """Name new clusters by the learners that take them over.

    Learners and clusters are paired one to one such that the sum of intersections over unions of the pairs is largest.

    Parameters
    ----------
    before : ndarray of int, shape (N,)
        The learner of each item so far.
    after : ndarray of int, shape (N,)
        Its new cluster.
    count : int
        K, the number of clusters.

    Returns
    -------
    ndarray of int64, shape (N,)
        The new learner of each item; a learner may be left without items.

    Examples
    --------
    >>> as_learners(np.array([0, 0, 1, 1, 2]), np.array([1, 1, 2, 2, 0]), 3).tolist()  # the same under other names
    [0, 0, 1, 1, 2]
    """
    from scipy.optimize import linear_sum_assignment

    learners, clusters = linear_sum_assignment(overlaps(before, after, count), maximize=True)
    learner_of = np.empty(count, np.int64)
    learner_of[clusters] = learners  # from new cluster to learner, not the other way round
    return learner_of[after]
