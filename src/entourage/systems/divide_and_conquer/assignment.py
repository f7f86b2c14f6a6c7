"""Which learner goes on with which cluster, when the data are clustered anew.

Clusters are numbered anew by every clustering; learners are not. N items, K clusters and as many learners.
"""

import numpy as np

__all__ = ["as_learners", "overlaps"]


def overlaps(before, after, count: int) -> np.ndarray:
    """(K, K) intersection over union of cluster i before and cluster j after: 0 where both are empty.

    >>> overlaps(np.array([0, 0, 1]), np.array([1, 1, 1]), 2).round(2).tolist()
    [[0.0, 0.67], [0.0, 0.33]]
    """
    common = np.zeros((count, count), np.int64)
    np.add.at(common, (before, after), 1)
    union = common.sum(axis=1)[:, None] + common.sum(axis=0) - common
    return common / np.maximum(union, 1)


def as_learners(before, after, count: int) -> np.ndarray:
    """The new clusters (N,), each called by the learner that goes on with it.

    before (N,): the learner of each item so far; after (N,): its new cluster. Learners and clusters are paired one to
    one such that the sum of intersections over unions of the pairs is largest. A learner may be left without items.

    >>> as_learners(np.array([0, 0, 1, 1, 2]), np.array([1, 1, 2, 2, 0]), 3).tolist()  # the same under other names
    [0, 0, 1, 1, 2]
    """
    from scipy.optimize import linear_sum_assignment

    learners, clusters = linear_sum_assignment(overlaps(before, after, count), maximize=True)
    learner_of = np.empty(count, np.int64)
    learner_of[clusters] = learners  # from new cluster to learner, not the other way round
    return learner_of[after]
