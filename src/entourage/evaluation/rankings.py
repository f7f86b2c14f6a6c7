"""A few metrics alone, for what scores many candidates: epochs, settings, methods that give rankings and no vectors.

N items, each searched among the others.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from entourage.evaluation import metrics
from entourage.evaluation.hits import Hits, count_matches, find_hits
from entourage.evaluation.names import check_cutoffs, check_depth, depth_for, measured, names_at
from entourage.values import Embeddings, IntArray, Neighbors, label_codes, labels_of, shared_codes

__all__ = ["evaluate_in_gallery", "evaluate_ranking", "mean_average_precision_at_r", "nearest_matches"]

USUAL = ("recall@1", "recall@10", "r-precision", "map@r")


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
        "recall@1", "recall@10", "r-precision" and "map@r" of each item; 0 for items without a match.

    Examples
    --------
    >>> from entourage.neighbors import search_blocks
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], labels=["a", "a", "b"])
    >>> evaluate_ranking(items, lambda items, k: search_blocks(items, k=k))["map@r"].tolist()
    [1.0, 1.0, 0.0]
    """
    codes = label_codes(labels_of(items))
    matches = count_matches(codes, codes, np.arange(len(items)))
    names, depth = _asked_for(at, matches, len(items) - 1)
    return _scored(rank(items.without_labels(), depth), codes, codes, matches, names)


def evaluate_in_gallery(
    queries: Embeddings,
    gallery: Embeddings,
    rank: Callable[[Embeddings, Embeddings, int], Iterator[tuple[slice, Neighbors]]],
    *,
    at: int | Iterable[int] | None = None,
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Score a method that ranks a gallery for queries from outside it.

    Parameters
    ----------
    queries, gallery : Embeddings
        N and M items with labels; no query is in the gallery.
    rank : callable
        rank(queries, gallery, k) yields (slice of queries, the k best of the gallery); neither has labels.
    at : int or iterable of int, optional
        As in `evaluate_ranking`.

    Returns
    -------
    scores : dict of arrays of shape (N,)
        As `evaluate_ranking` gives them.
    best : array of shape (N,)
        The similarity of what each query finds first.

    Examples
    --------
    >>> from entourage.neighbors import search_blocks
    >>> gallery = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]], labels=["a", "b"])
    >>> queries = Embeddings.from_vectors([[0.6, 0.8]], labels=["a"])
    >>> scores, best = evaluate_in_gallery(queries, gallery, search_blocks)
    >>> scores["recall@1"].tolist(), best.round(1).tolist()
    ([0.0], [0.8])
    """
    codes, others = shared_codes(labels_of(queries), labels_of(gallery))
    matches = count_matches(codes, others, np.full(len(queries), -1))
    names, depth = _asked_for(at, matches, len(gallery))
    best = np.empty(len(queries))

    def watched() -> Iterator[tuple[slice, Neighbors]]:
        for block, found in rank(queries.without_labels(), gallery.without_labels(), depth):
            best[block] = found.similarities[:, 0]
            yield block, found

    return _scored(watched(), codes, others, matches, names), best


def _asked_for(at: int | Iterable[int] | None, matches: IntArray, longest: int) -> tuple[list[str], int]:
    """The names of the metrics, and how many items must be retrieved for them."""
    cutoffs = () if at is None else check_cutoffs(at)
    check_depth(cutoffs, longest)
    names = list(dict.fromkeys([*USUAL, *names_at(cutoffs)]))
    return names, depth_for(names, most_matches=int(matches.max()), longest=longest)


def _scored(
    rankings: Iterator[tuple[slice, Neighbors]],
    codes: IntArray,
    gallery_codes: IntArray,
    matches: IntArray,
    names: list[str],
) -> dict[str, NDArray[np.float64]]:
    """The named metrics of each query, (N,), by the labels (N,) and (M,) of queries and of what is ranked."""
    scores = {name: np.zeros(len(codes)) for name in names}
    for block, ranking in rankings:
        hits = Hits.from_ranking(gallery_codes[ranking.rows] == codes[block, None])
        for name, values in scores.items():
            values[block] = measured(name, hits, matches[block])
    return scores
