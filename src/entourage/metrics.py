"""Retrieval metrics: pure functions of rankings and labels, one value per query.

A ranking is `hits` (N, K) bool: whether the query's 1st, 2nd, ... retrieved item has its label. `matches` (N,) is
R, the number of gallery items that could be found (the query itself excluded). Means are taken by `mean`, which
names what happens to queries without a possible match.
"""

import numpy as np

from entourage.errors import InputError

__all__ = [
    "average_precision_at",
    "average_precision_at_r",
    "check_no_match",
    "count_matches",
    "mean",
    "normalized_mutual_information",
    "r_precision",
    "recall_at",
]


def count_matches(query_codes, gallery_codes, own_rows) -> np.ndarray:
    """R of each query, (N,): gallery items of its label, less itself where own_rows (N,) finds it there (≥ 0)."""
    counts = np.bincount(gallery_codes, minlength=int(query_codes.max()) + 1)
    own_label = (own_rows >= 0) & (gallery_codes[own_rows] == query_codes)
    return counts[query_codes] - own_label


def recall_at(hits, k: int) -> np.ndarray:
    """1 if any of the first k retrieved items has the query's label, else 0; (N,).

    >>> recall_at(np.array([[False, True, False], [False, False, True]]), 2).tolist()
    [1.0, 0.0]
    """
    return hits[:, :k].any(axis=1).astype(np.float64)


def r_precision(hits, matches) -> np.ndarray:
    """Share of the first R retrieved items that match; 0 where R = 0; (N,)."""
    return _within_r(hits, matches).sum(axis=1) / np.maximum(matches, 1)


def average_precision_at_r(hits, matches) -> np.ndarray:
    """Mean over ranks 1..R of (precision at that rank if it is a hit, else 0): MAP@R divides by R; (N,).

    >>> average_precision_at_r(np.array([[True, False, True, True]]), np.array([3])).round(4).tolist()
    [0.5556]
    """
    return _precision_sum(_within_r(hits, matches)) / np.maximum(matches, 1)


def average_precision_at(hits, matches, k: int) -> np.ndarray:
    """Precision summed over the hits among the first k, divided by min(k, R); (N,)."""
    return _precision_sum(hits[:, :k]) / np.clip(matches, 1, k)


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
    if no_match not in ("zero", "drop"):
        raise InputError(f'no_match is {no_match!r}; wanted "zero" or "drop"')


def normalized_mutual_information(labels, clusters) -> float:
    """NMI with arithmetic normalisation: 2 I(labels; clusters) / (H(labels) + H(clusters))."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels, clusters, average_method="arithmetic"))


def _within_r(hits, matches) -> np.ndarray:
    return hits & (np.arange(hits.shape[1]) < np.asarray(matches)[:, None])


def _precision_sum(hits) -> np.ndarray:
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return np.where(hits, precision, 0.0).sum(axis=1)
