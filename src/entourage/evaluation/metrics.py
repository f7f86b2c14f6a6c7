"""Retrieval metrics: pure functions of rankings and labels, one value per query.

A ranking is known by its `Hits`: at which ranks items of the query's label stand. They are few, and nothing here is of
the size of the ranking. `matches` (N,) is R, the number of gallery items that could be found (the query itself
excluded). Means are taken by `mean`, which names what happens to queries without a possible match.
"""

from dataclasses import dataclass

import numpy as np

from entourage.errors import InputError
from entourage.runtime.config import check_known

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
    """The retrieved items that have the label of their query, those of one query side by side, nearest first."""

    query: np.ndarray
    """(H,) the query of each, never decreasing."""
    rank: np.ndarray
    """(H,) how many items were retrieved before each: 0 for the nearest."""
    n_queries: int
    """N, those without a hit included."""

    @classmethod
    def from_ranking(cls, same_label) -> "Hits":
        """Of a ranking (N, K) bool: whether the query's 1st, 2nd, ... retrieved item has its label.

        >>> Hits.from_ranking(np.array([[True, False, True]])).rank.tolist()
        [0, 2]
        """
        return cls(*np.nonzero(same_label), len(same_label))

    def counted(self, kept, weights=None) -> np.ndarray:
        """How many hits of each query are kept (H,), or the sum of their weights (H,); (N,)."""
        return np.bincount(self.query, kept if weights is None else kept * weights, minlength=self.n_queries)

    @property
    def before(self) -> np.ndarray:
        """How many hits of its query stand before each, (H,)."""
        return np.arange(len(self.query)) - np.searchsorted(self.query, self.query)

    @property
    def precision(self) -> np.ndarray:
        """The share of hits among the items retrieved up to and with each hit, (H,)."""
        return (self.before + 1) / (self.rank + 1)

    @property
    def precision_before(self) -> np.ndarray:
        """The share of hits among the items retrieved before each hit, 1 where there is none, (H,)."""
        return np.where(self.rank > 0, self.before / np.maximum(self.rank, 1), 1.0)


def count_matches(query_codes, gallery_codes, own_rows) -> np.ndarray:
    """R of each query, (N,): gallery items of its label, less itself where own_rows (N,) finds it there (≥ 0)."""
    counts = np.bincount(gallery_codes, minlength=int(query_codes.max()) + 1)
    own_label = (own_rows >= 0) & (gallery_codes[own_rows] == query_codes)
    return counts[query_codes] - own_label


def recall_at(hits: Hits, k: int) -> np.ndarray:
    """1 if any of the first k retrieved items has the query's label, else 0; (N,).

    >>> recall_at(Hits.from_ranking(np.array([[False, True, False], [False, False, True]])), 2).tolist()
    [1.0, 0.0]
    """
    return (hits.counted(hits.rank < k) > 0).astype(np.float64)


def r_precision(hits: Hits, matches) -> np.ndarray:
    """Share of the first R retrieved items that match; 0 where R = 0; (N,)."""
    return hits.counted(hits.rank < matches[hits.query]) / np.maximum(matches, 1)


def average_precision_at_r(hits: Hits, matches) -> np.ndarray:
    """Mean over ranks 1..R of (precision at that rank if it is a hit, else 0): MAP@R divides by R; (N,).

    >>> hits = Hits.from_ranking(np.array([[True, False, True, True]]))
    >>> average_precision_at_r(hits, np.array([3])).round(4).tolist()
    [0.5556]
    """
    return hits.counted(hits.rank < matches[hits.query], hits.precision) / np.maximum(matches, 1)


def average_precision_at(hits: Hits, matches, k: int) -> np.ndarray:
    """Precision summed over the hits among the first k, divided by min(k, R); (N,)."""
    return hits.counted(hits.rank < k, hits.precision) / np.clip(matches, 1, k)


def average_precision(hits: Hits, matches) -> np.ndarray:
    """Precision summed over the hits of the whole ranking, divided by R; (N,).

    >>> average_precision(Hits.from_ranking(np.array([[True, False, True]])), np.array([2])).round(4).tolist()
    [0.8333]
    """
    return hits.counted(np.ones(len(hits.rank)), hits.precision) / np.maximum(matches, 1)


def trapezoid_average_precision(hits: Hits, matches) -> np.ndarray:
    """The area under the precision-recall curve by trapezoids, as person re-identification first measured it; (N,).

    Each hit adds the mean of the precision before it (1 at the very start) and with it, divided by R.

    >>> hits = Hits.from_ranking(np.array([[True, False, True]]))
    >>> trapezoid_average_precision(hits, np.array([2])).round(4).tolist()  # (1 + 1) / 2 and (1/2 + 2/3) / 2
    [0.7917]
    """
    heights = (hits.precision_before + hits.precision) / 2
    return hits.counted(np.ones(len(hits.rank)), heights) / np.maximum(matches, 1)


def mean(values, matches, no_match: str = "zero") -> float:
    """Mean over queries; those with R = 0 count as 0 ("zero", as in the papers) or are left out ("drop")."""
    check_no_match(no_match)
    kept = values if no_match == "zero" else values[matches > 0]
    if not len(kept):
        raise InputError(
            "no query has a match in the gallery and all are left out; wanted one at least: check the labels"
        )
    return float(kept.mean())


def check_no_match(no_match: str) -> None:
    check_known(no_match, ("zero", "drop"), "no_match")


def normalized_mutual_information(labels, clusters) -> float:
    """NMI with arithmetic normalisation: 2 I(labels; clusters) / (H(labels) + H(clusters))."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels, clusters, average_method="arithmetic"))
