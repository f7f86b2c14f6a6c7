"""A few metrics alone, for what scores many candidates: epochs, settings, methods that give rankings and no vectors.

N items, each searched among the others.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from entourage.evaluation import metrics
from entourage.evaluation.hits import Hits, count_matches, find_hits
from entourage.evaluation.names import check_cutoffs, check_depth, depth_for, measured, names_at
from entourage.values import Embeddings, IntArray, Neighbors, label_codes, labels_of

__all__ = ["evaluate_ranking", "mean_average_precision_at_r", "nearest_matches"]


def mean_average_precision_at_r(items: Embeddings) -> float:
    """MAP@R of labelled items, each searched among the others: one metric alone, cheap enough for every epoch.

    Parameters
    ----------
    items : Embeddings
        N items with labels.

    Returns
    -------
    float
        Between 0 and 1; items without a match count as 0.
    """
    codes = label_codes(labels_of(items))
    matches = count_matches(codes, codes, np.arange(len(items)))
    precision = np.zeros(len(items))
    for block, hits in find_hits(items, items, codes, codes):
        precision[block] = metrics.average_precision_at_r(hits, matches[block])
    return metrics.mean(precision, matches)


def nearest_matches(items: Embeddings) -> IntArray:
    """Find the rank of the nearest item of each item's own label; recall@k is whether it is less than k.

    Parameters
    ----------
    items : Embeddings
        N items with labels, each searched among the others.

    Returns
    -------
    array of shape (N,)
        How many items are nearer than the nearest of the same label; N where there is none.

    Examples
    --------
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0]], labels=["a", "b", "a", "c"])
    >>> nearest_matches(items).tolist()
    [1, 4, 1, 4]
    """
    codes = label_codes(labels_of(items))
    before = np.full(len(items), len(items))
    for block, hits in find_hits(items, items, codes, codes):
        np.minimum.at(before, block.start + hits.query, hits.rank)
    return before


def evaluate_ranking(
    items: Embeddings,
    rank: Callable[[Embeddings, int], Iterator[tuple[slice, Neighbors]]],
    *,
    at: int | Iterable[int] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Score a method that gives rankings and no vectors.

    Parameters
    ----------
    items : Embeddings
        N items with labels, each searched among the others.
    rank : callable
        rank(items, k) yields (slice of queries, their k nearest); it is given the items without their labels.
    at : int or iterable of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k besides.

    Returns
    -------
    dict of arrays of shape (N,)
        "recall@1", "r-precision" and "map@r" of each item; 0 for items without a match.

    Examples
    --------
    >>> from entourage.neighbors import search_blocks
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], labels=["a", "a", "b"])
    >>> evaluate_ranking(items, lambda items, k: search_blocks(items, k=k))["map@r"].tolist()
    [1.0, 1.0, 0.0]
    """
    codes = label_codes(labels_of(items))
    matches = count_matches(codes, codes, np.arange(len(items)))
    cutoffs = () if at is None else check_cutoffs(at)
    check_depth(cutoffs, len(items) - 1)
    names = dict.fromkeys(["recall@1", "r-precision", "map@r", *names_at(cutoffs)])
    scores = {name: np.zeros(len(items)) for name in names}
    depth = depth_for(names, most_matches=int(matches.max()), longest=len(items) - 1)
    for block, ranking in rank(items.without_labels(), depth):
        hits = Hits.from_ranking(codes[ranking.rows] == codes[block, None])
        for name, values in scores.items():
            values[block] = measured(name, hits, matches[block])
    return scores
