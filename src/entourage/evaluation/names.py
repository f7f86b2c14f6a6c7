"""Metrics by name, as they are asked for and reported: "recall@10" is recall@k among the first k = 10 items.

N queries, H hits of all queries together.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.evaluation import metrics
from entourage.evaluation.hits import Hits
from entourage.values import IntArray

__all__ = [
    "MAP_AT",
    "RECALL_AT",
    "check_cutoffs",
    "check_depth",
    "check_metric",
    "cutoff_of",
    "depth_for",
    "measured",
    "names_at",
    "usual_names",
]

RECALL_AT = (1, 2, 4, 8, 10, 100)  # of the papers
RECALL_AT_WITH_EXCLUSIONS = (5,)  # person re-identification reports it too
NDCG_AT = 10
MAP_AT = 1000

_AT_K: dict[str, Callable[[Hits, IntArray, int], NDArray[np.float64]]] = {
    "recall": lambda hits, matches, k: metrics.recall_at(hits, k),
    "precision": lambda hits, matches, k: metrics.precision_at(hits, k),
    "ndcg": metrics.ndcg_at,
    "mrr": lambda hits, matches, k: metrics.reciprocal_rank(hits, k),
    "map": metrics.average_precision_at,
}
_OF_THE_RANKING: dict[str, Callable[[Hits, IntArray], NDArray[np.float64]]] = {
    "mrr": lambda hits, matches: metrics.reciprocal_rank(hits),
    "r-precision": metrics.r_precision,
    "map@r": metrics.average_precision_at_r,
    "map": metrics.average_precision,
    "map-trapezoid": metrics.trapezoid_average_precision,
}
_MOST_DIGITS = 18  # no set has so many items
_CHOSEN_BY_K = ("recall", "precision", "ndcg", "mrr")


def measured(name: str, hits: Hits, matches: IntArray) -> NDArray[np.float64]:
    """Measure one metric of each query.

    Parameters
    ----------
    name : str
        As `check_metric` accepts it.
    hits : Hits
        The hits of N queries: all of them, or those among the first k items for a metric that looks at no more.
    matches : array of shape (N,)
        R of each query.

    Returns
    -------
    array of shape (N,)

    Examples
    --------
    >>> hits = Hits.from_ranking(np.array([[False, True, True]]))
    >>> [measured(name, hits, np.array([2])).tolist() for name in ("recall@1", "precision@2", "mrr", "map@r")]
    [[0.0], [0.5], [0.5], [0.25]]
    """
    if name in _OF_THE_RANKING:
        return _OF_THE_RANKING[name](hits, matches)
    kind, _, k = name.partition("@")
    return _AT_K[kind](hits, matches, int(k))


def cutoff_of(name: str) -> int | None:
    """Return the k of a metric that looks at the first k items; None for one that looks at more.

    Examples
    --------
    >>> cutoff_of("recall@10"), cutoff_of("map@r")
    (10, None)
    """
    return None if name in _OF_THE_RANKING else int(name.partition("@")[2])


def depth_for(names: Iterable[str], *, most_matches: int, longest: int) -> int:
    """How many items must be retrieved to measure some metrics.

    Parameters
    ----------
    names : iterable of str
    most_matches : int
        The largest R of all queries.
    longest : int
        How many items there are to retrieve.

    Returns
    -------
    int

    Examples
    --------
    >>> [depth_for([name], most_matches=4, longest=99) for name in ("recall@10", "map@r", "mrr")]
    [10, 4, 99]
    """
    within_r = dict.fromkeys(("map@r", "r-precision"), most_matches)
    depths = [cutoff_of(name) or within_r.get(name, longest) for name in names]
    return min(max(1, *depths), longest)


def check_metric(name: Any, what: str) -> str:
    """Refuse what is not the name of a metric of rankings.

    Parameters
    ----------
    name : str
        "recall@10", "map@r", ...
    what : str
        What is being named, as the subject of the message.

    Returns
    -------
    str
        The name.

    Examples
    --------
    >>> check_metric("recall@10", "the metric")
    'recall@10'
    >>> check_metric("recall", "the metric")
    Traceback (most recent call last):
    entourage.errors.InputError: the metric is 'recall'; wanted recall@k, precision@k, ndcg@k, mrr@k or map@k with a \
whole number k from 1 on, or one of mrr, r-precision, map@r, map, map-trapezoid
    """
    kind, _, k = name.partition("@") if isinstance(name, str) else ("", "", "")
    if len(k) > _MOST_DIGITS:
        raise InputError(f"{what} is {kind[:20]}@k with a k of {len(k):,} digits; wanted a k up to the number of items")
    if (kind in _AT_K and k.isdecimal() and k.isascii() and k[0] != "0") or (kind and name in _OF_THE_RANKING):
        return str(name)
    *first, last = (f"{each}@k" for each in _AT_K)
    raise InputError(
        f"{what} is {name!r}; wanted {', '.join(first)} or {last} with a whole number k from 1 on, "
        f"or one of {', '.join(_OF_THE_RANKING)}"
    )


def check_cutoffs(at: int | Iterable[int], what: str = "at") -> tuple[int, ...]:
    """Refuse cutoffs k that are no whole numbers from 1 on, or are given twice.

    Parameters
    ----------
    at : int or iterable of int
        One k or several.
    what : str
        What they were given as, for the message.

    Returns
    -------
    tuple of int
        Ascending.

    Examples
    --------
    >>> check_cutoffs([10, 1, 5])
    (1, 5, 10)
    """
    given: list[Any] = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    wrong = [k for k in given if not isinstance(k, Integral) or isinstance(k, bool) or k < 1]
    if wrong or not given:
        raise InputError(f"{what} is {(wrong or [at])[0]!r}; wanted whole numbers from 1 on, such as 1, 5, 10")
    cutoffs = sorted(map(int, given))
    twice = [k for k, following in pairwise(cutoffs) if k == following]
    if twice:
        raise InputError(f"{what} names {twice[0]} more than once; wanted each number once: leave one out")
    return tuple(cutoffs)


def check_depth(cutoffs: Sequence[int], longest: int) -> None:
    """Refuse cutoffs, ascending, that go beyond the longest ranking."""
    if cutoffs and cutoffs[-1] > longest:
        raise InputError(
            f"recall@{cutoffs[-1]} was asked for, but a query has only {longest} items to retrieve; "
            f"wanted @k with a k from 1 to {longest}"
        )


def names_at(cutoffs: Iterable[int]) -> list[str]:
    """Name the metrics at some cutoffs, metric by metric.

    Examples
    --------
    >>> names_at([1, 5])
    ['recall@1', 'recall@5', 'precision@1', 'precision@5', 'ndcg@1', 'ndcg@5', 'mrr@1', 'mrr@5']
    """
    cutoffs = list(cutoffs)
    return [f"{kind}@{k}" for kind in _CHOSEN_BY_K for k in cutoffs]


def usual_names(
    cutoffs: tuple[int, ...] | None = None, *, recalls: tuple[int, ...] | None = None, exclusions: bool = False
) -> list[str]:
    """Name the metrics that are reported.

    Parameters
    ----------
    cutoffs : tuple of int, optional
        Which k to measure recall, precision, nDCG and MRR at; by default recall at those of the papers. Recall@1 is
        always among them.
    recalls : tuple of int, optional
        Which k to measure recall alone at, where there are no cutoffs.
    exclusions : bool
        Whether cameras or sequences are known, for which more is reported.

    Returns
    -------
    list of str

    Examples
    --------
    >>> usual_names(recalls=(10, 20, 40))[:5]
    ['recall@1', 'recall@10', 'recall@20', 'recall@40', 'ndcg@10']
    """
    if cutoffs is None:
        recalls = recalls or (*RECALL_AT, *RECALL_AT_WITH_EXCLUSIONS * exclusions)
        names = [*(f"recall@{k}" for k in sorted({1, *recalls})), f"ndcg@{NDCG_AT}"]
    else:
        names = list(dict.fromkeys(["recall@1", *names_at(cutoffs)]))
    names += ["mrr", "r-precision", "map@r", f"map@{MAP_AT}"]
    return names + ["map", "map-trapezoid"] * exclusions
