"""Retrieval metrics: pure functions of rankings and labels, one value per query.

A ranking is given by its `Hits`: the ranks at which items of the query's label stand. They are few, so nothing here is
as large as the ranking. R is the number of items that a query could find: gallery items of its label, without itself.
`mean` takes the mean over queries, and decides what becomes of those for which R is 0.

N queries, M gallery items, K retrieved items, H hits of all queries together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.runtime.config import check_known
from entourage.values import BoolArray, FloatArray, IntArray

__all__ = [
    "Hits",
    "average_precision",
    "average_precision_at",
    "average_precision_at_r",
    "check_no_match",
    "count_matches",
    "mean",
    "normalized_mutual_information",
    "r_precision",
    "recall_at",
    "trapezoid_average_precision",
]


@dataclass(frozen=True, eq=False)
class Hits:
    """The retrieved items that have the label of their query: query by query, nearest first."""

    query: IntArray
    """(H,) the row of the query that each hit belongs to, never decreasing."""
    rank: IntArray
    """(H,) how many items were retrieved before each hit: 0 for the nearest."""
    n_queries: int
    """N, including queries without a hit."""

    @classmethod
    def from_ranking(cls, same_label: BoolArray) -> "Hits":
        """Find the hits of a ranking.

        Parameters
        ----------
        same_label : bool array of shape (N, K)
            Whether the 1st, 2nd, ... retrieved item of each query has the query's label.

        Returns
        -------
        Hits

        Examples
        --------
        >>> Hits.from_ranking(np.array([[True, False, True]])).rank.tolist()
        [0, 2]
        """
        query, rank = np.nonzero(same_label)
        return cls(query, rank, len(same_label))

    def counted(self, kept: NDArray[Any], weights: FloatArray | None = None) -> NDArray[np.float64]:
        """Count the hits of each query.

        Parameters
        ----------
        kept : array of shape (H,)
            1 or True for hits that count, 0 or False for those that do not.
        weights : array of shape (H,), optional
            What each hit counts; 1 by default.

        Returns
        -------
        array of shape (N,)
            The number of hits that count, or the sum of their weights.
        """
        values = kept if weights is None else kept * weights
        return np.bincount(self.query, values, minlength=self.n_queries).astype(np.float64)

    @property
    def before(self) -> IntArray:
        """(H,) how many hits of the same query stand before each hit."""
        return np.arange(len(self.query)) - np.searchsorted(self.query, self.query)

    @property
    def precision(self) -> NDArray[np.float64]:
        """(H,) the share of hits among the items retrieved up to each hit, including it."""
        return (self.before + 1) / (self.rank + 1)

    @property
    def precision_before(self) -> NDArray[np.float64]:
        """(H,) the share of hits among the items retrieved before each hit; 1 where it comes first."""
        return np.where(self.rank > 0, self.before / np.maximum(self.rank, 1), 1.0)


def count_matches(query_codes: IntArray, gallery_codes: IntArray, own_rows: IntArray) -> IntArray:
    """Count how many items each query could find.

    Parameters
    ----------
    query_codes : array of shape (N,)
        The labels of the queries as codes from 0, see `values.shared_codes`.
    gallery_codes : array of shape (M,)
        The labels of the gallery in the same codes.
    own_rows : array of shape (N,)
        The gallery row that is the query itself, or -1.

    Returns
    -------
    array of shape (N,)
        R of each query.
    """
    counts = np.bincount(gallery_codes, minlength=int(query_codes.max()) + 1)
    own_label = (own_rows >= 0) & (gallery_codes[own_rows] == query_codes)
    return np.asarray(counts[query_codes] - own_label)


def recall_at(hits: Hits, k: int) -> NDArray[np.float64]:
    """Recall@k: 1 if any of the first k retrieved items has the query's label, else 0.

    Parameters
    ----------
    hits : Hits
        The hits of N queries.
    k : int

    Returns
    -------
    array of shape (N,)

    Examples
    --------
    >>> recall_at(Hits.from_ranking(np.array([[False, True, False], [False, False, True]])), 2).tolist()
    [1.0, 0.0]
    """
    return (hits.counted(hits.rank < k) > 0).astype(np.float64)


def r_precision(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """R-precision: the share of the first R retrieved items that have the query's label.

    Parameters
    ----------
    hits : Hits
        The hits of N queries.
    matches : array of shape (N,)
        R of each query.

    Returns
    -------
    array of shape (N,)
        0 where R is 0.
    """
    return hits.counted(hits.rank < matches[hits.query]) / np.maximum(matches, 1)


def average_precision_at_r(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """Average precision at R: the precision at each hit among the first R items, summed and divided by R.

    Its mean over queries is MAP@R (Musgrave et al. 2020).

    Parameters
    ----------
    hits : Hits
        The hits of N queries.
    matches : array of shape (N,)
        R of each query.

    Returns
    -------
    array of shape (N,)
        0 where R is 0.

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[True, False, True, True]]))
    >>> average_precision_at_r(hits, np.array([3])).round(4).tolist()
    [0.5556]
    """
    return hits.counted(hits.rank < matches[hits.query], hits.precision) / np.maximum(matches, 1)


def average_precision_at(hits: Hits, matches: IntArray, k: int) -> NDArray[np.float64]:
    """Average precision at k: the precision at each hit among the first k items, summed and divided by min(k, R).

    Parameters
    ----------
    hits : Hits
        The hits of N queries.
    matches : array of shape (N,)
        R of each query.
    k : int

    Returns
    -------
    array of shape (N,)
        0 where R is 0.
    """
    return hits.counted(hits.rank < k, hits.precision) / np.clip(matches, 1, k)


def average_precision(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """Average precision: the precision at each hit of the whole ranking, summed and divided by R.

    Parameters
    ----------
    hits : Hits
        The hits of N queries.
    matches : array of shape (N,)
        R of each query.

    Returns
    -------
    array of shape (N,)
        0 where R is 0.

    Examples
    --------
    >>> average_precision(Hits.from_ranking(np.array([[True, False, True]])), np.array([2])).round(4).tolist()
    [0.8333]
    """
    return hits.counted(np.ones(len(hits.rank)), hits.precision) / np.maximum(matches, 1)


def trapezoid_average_precision(hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """The area under the precision-recall curve by trapezoids, as person re-identification first measured it.

    Each hit adds the mean of the precision just before it (1 at the first rank) and the precision at it, divided by R.

    Parameters
    ----------
    hits : Hits
        The hits of N queries.
    matches : array of shape (N,)
        R of each query.

    Returns
    -------
    array of shape (N,)
        0 where R is 0.

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[True, False, True]]))
    >>> trapezoid_average_precision(hits, np.array([2])).round(4).tolist()  # (1 + 1) / 2 and (1/2 + 2/3) / 2
    [0.7917]
    """
    heights = (hits.precision_before + hits.precision) / 2
    return hits.counted(np.ones(len(hits.rank)), heights) / np.maximum(matches, 1)


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
