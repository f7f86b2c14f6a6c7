"""Retrieval metrics: pure functions of rankings and labels, one value per query.

A ranking is given by its `Hits` (hits.py). R is the number of items that a query could find: gallery items of its
label, without itself. A query for which R is 0 has 0 by every metric; `mean` takes the mean over queries, with or
without those.

Metrics of queries have these parameters as far as they need them, and return an array of shape (N,):

hits : Hits
    The hits of N queries.
matches : array of shape (N,)
    R of each query.
k : int
    How many of the nearest items count.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.evaluation.hits import Hits
from entourage.runtime.config import check_known
from entourage.values import FloatArray, IntArray

__all__ = [
    "CLUSTERING",
    "adjusted_mutual_information",
    "average_precision",
    "average_precision_at",
    "average_precision_at_r",
    "check_no_match",
    "mean",
    "ndcg_at",
    "normalized_mutual_information",
    "precision_at",
    "r_precision",
    "recall_at",
    "reciprocal_rank",
    "trapezoid_average_precision",
]


def recall_at(hits: Hits, k: int) -> NDArray[np.float64]:
    """Recall@k: 1 if any of the first k retrieved items has the query's label, else 0.

    Examples
    --------
    >>> recall_at(Hits.from_ranking(np.array([[False, True, False], [False, False, True]])), 2).tolist()
    [1.0, 0.0]
    """
    return (hits.first < k).astype(np.float64)


def precision_at(hits: Hits, k: int) -> NDArray[np.float64]:
    """Precision@k: how many of the first k retrieved items have the query's label, divided by k.

    It is always divided by k: where a query has fewer than k matches, or fewer than k items are retrieved, a perfect
    ranking has less than 1. `r_precision` is measured against what is possible.

    Examples
    --------
    >>> precision_at(Hits.from_ranking(np.array([[True, False, True], [False, True, False]])), 2).tolist()
    [0.5, 0.5]
    """
    return hits.counted(hits.rank < k) / k


def ndcg_at(hits: Hits, matches: IntArray, k: int) -> NDArray[np.float64]:
    """nDCG@k: each hit among the first k items counts 1 / log2(1 + its place), relative to the best that is possible.

    A place is 1 for the nearest item. An item is relevant or not (binary); the best ranking has the first min(k, R)
    places right.

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[True, False, True]]))
    >>> ndcg_at(hits, np.array([2]), 3).round(4).tolist()  # (1 + 1/2) / (1 + 1/log2(3))
    [0.9197]
    """
    possible = np.minimum(matches, k)
    depth = int(possible.max(initial=1))
    best: NDArray[np.float64] = np.cumsum(1 / np.log2(np.arange(depth) + 2))[np.maximum(possible, 1) - 1]  # (N,)
    kept = hits.rank < k
    gains = np.bincount(hits.query[kept], 1 / np.log2(hits.rank[kept] + 2), hits.n_queries).astype(np.float64)
    return gains / best


def reciprocal_rank(hits: Hits, k: int | None = None) -> NDArray[np.float64]:
    """Reciprocal rank: 1 / the place of the first retrieved item with the query's label; its mean over queries is MRR.

    Given k, a first hit beyond the first k items counts as 0; otherwise hits are those of the whole ranking.

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[True, False, True], [False, False, True]]))
    >>> reciprocal_rank(hits).round(4).tolist(), reciprocal_rank(hits, 2).tolist()
    ([1.0, 0.3333], [1.0, 0.0])
    """
    reciprocal: NDArray[np.float64] = 1 / (hits.first + 1)
    return reciprocal if k is None else np.where(hits.first < k, reciprocal, 0.0)


def r_precision(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """R-precision: the share of the first R retrieved items that have the query's label."""
    return hits.counted(hits.rank < matches[hits.query]) / np.maximum(matches, 1)


def average_precision_at_r(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """Average precision at R: the precision at each hit among the first R items, summed and divided by R.

    Its mean over queries is MAP@R (Musgrave et al. 2020).

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[True, False, True, True]]))
    >>> average_precision_at_r(hits, np.array([3])).round(4).tolist()
    [0.5556]
    """
    return hits.counted(hits.rank < matches[hits.query], hits.precision) / np.maximum(matches, 1)


def average_precision_at(hits: Hits, matches: IntArray, k: int) -> NDArray[np.float64]:
    """Average precision at k: the precision at each hit among the first k items, summed and divided by min(k, R)."""
    return hits.counted(hits.rank < k, hits.precision) / np.clip(matches, 1, k)


def average_precision(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """Average precision: the precision at each hit of the whole ranking, summed and divided by R.

    Examples
    --------
    >>> average_precision(Hits.from_ranking(np.array([[True, False, True]])), np.array([2])).round(4).tolist()
    [0.8333]
    """
    return hits.counted(weights=hits.precision) / np.maximum(matches, 1)


def trapezoid_average_precision(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """The area under the precision-recall curve by trapezoids, as person re-identification first measured it.

    Each hit adds the mean of the precision just before it (1 at the first rank) and the precision at it, divided by R.

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[True, False, True]]))
    >>> trapezoid_average_precision(hits, np.array([2])).round(4).tolist()  # (1 + 1) / 2 and (1/2 + 2/3) / 2
    [0.7917]
    """
    heights = (hits.precision_before + hits.precision) / 2
    return hits.counted(weights=heights) / np.maximum(matches, 1)


def mean(values: FloatArray, matches: IntArray, no_match: str = "zero") -> float:
    """Take the mean over queries.

    Parameters
    ----------
    values : array of shape (N,)
        A metric of each query.
    matches : array of shape (N,)
        R of each query.
    no_match : {"zero", "drop"}
        Whether queries for which R is 0 count as 0, as in the papers, or are left out.

    Returns
    -------
    float
    """
    check_no_match(no_match)
    kept = values if no_match == "zero" else values[matches > 0]
    if not len(kept):
        raise InputError(
            "no query has a match in the gallery, so that all are left out; wanted at least one: check the labels"
        )
    return float(kept.mean())


def check_no_match(no_match: str) -> None:
    """Raise InputError unless no_match is "zero" or "drop"."""
    check_known(no_match, ("zero", "drop"), "no_match")


def normalized_mutual_information(labels: ArrayLike, clusters: ArrayLike) -> float:
    """NMI with arithmetic normalisation: 2 I(labels; clusters) / (H(labels) + H(clusters)).

    Parameters
    ----------
    labels : array-like of shape (N,)
    clusters : array-like of shape (N,)
        The cluster of each item.

    Returns
    -------
    float
        Between 0 and 1.
    """
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels, clusters, average_method="arithmetic"))


def adjusted_mutual_information(labels: ArrayLike, clusters: ArrayLike) -> float:
    """AMI with arithmetic normalisation: NMI with what chance alone would give taken away.

    Parameters
    ----------
    labels : array-like of shape (N,)
    clusters : array-like of shape (N,)
        The cluster of each item.

    Returns
    -------
    float
        1 at most; about 0 for clusters drawn at random.
    """
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(labels, clusters, average_method="arithmetic"))


CLUSTERING = {"nmi": normalized_mutual_information, "ami": adjusted_mutual_information}
"""Scores of a clustering, by name: of labels (N,) and clusters (N,)."""
