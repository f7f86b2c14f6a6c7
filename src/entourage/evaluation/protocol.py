"""Scores of a set of embeddings: one pass over the similarities, and the protocol they were measured under.

Every metric follows from the ranks at which a query's matches stand, which are counted tile by tile: no ranking is
made, so that any depth can be scored, and memory does not grow with N x N.

Items that are too easy to find, and junk, are left out where they are known (see exclusions.py): they count neither as
right nor as wrong, and R does not count them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.evaluation import metrics
from entourage.evaluation.clustering import MOST_ITERATIONS, kmeans
from entourage.evaluation.exclusions import described_rules, groups_left_out, without_junk
from entourage.evaluation.hits import count_matches, find_hits
from entourage.evaluation.names import MAP_AT, check_cutoffs, check_depth, measured, usual_names
from entourage.neighbors import check_same_encoder, own_gallery_rows
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller
from entourage.values import Embeddings, IntArray, as_embeddings, labels_of, shared_codes

__all__ = ["Scores", "evaluate", "evaluate_embeddings"]


@dataclass(frozen=True)
class Scores:
    """Retrieval scores, the protocol they were measured under, and the score of each query.

    Parameters
    ----------
    metrics : dict of float
        Scores by name, as fractions between 0 and 1.
    protocol : dict
        How they were measured.
    per_query : dict of arrays of shape (N,)
        The score of each query, by name.
    warnings : tuple of str
        Why these scores may mean less than they seem to.
    """

    metrics: dict[str, float]
    """Scores by name, as fractions between 0 and 1."""
    protocol: dict[str, Any]
    """How they were measured."""
    per_query: dict[str, NDArray[np.float64]]
    """(N,) the score of each query, by name: of every metric but NMI, which is no mean over queries."""
    warnings: tuple[str, ...] = ()
    """Why these scores may mean less than they seem to; each is also issued as an EntourageWarning."""

    def __repr__(self) -> str:
        shown = {"R@1": "recall@1", "MAP@R": "map@r"}
        numbers = [f"{title} {100 * self.metrics[name]:.2f} %" for title, name in shown.items() if name in self.metrics]
        queries = f"{self.protocol.get('queries', 0):,} queries"
        return f"Scores({', '.join([*numbers, queries])})"

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """Lay out a line per metric, in percent, and one that says what was searched in what.

        Returns
        -------
        str
            What `print(scores)` prints.
        """
        width = max(map(len, self.metrics), default=0)
        lines = [f"{name:{width}}  {100 * value:6.2f} %" for name, value in self.metrics.items()]
        queries, searched, classes = (self.protocol.get(name, 0) for name in ("queries", "gallery", "classes"))
        among = f"among {searched:,} items; {classes:,} classes, neighbors {self.protocol.get('neighbors')}"
        return "\n".join([*lines, f"of {queries:,} queries {among}"])

    @property
    def recall_at_1(self) -> NDArray[np.float64]:
        """(N,) 1 where the nearest item has the query's label, else 0."""
        return self.per_query["recall@1"]

    @property
    def average_precision(self) -> NDArray[np.float64]:
        """(N,) average precision at R of each query."""
        return self.per_query["map@r"]

    def document(self) -> dict[str, Any]:
        """Return protocol, metrics and warnings as one dict for JSON, as `--json` prints it.

        Returns
        -------
        dict
            "protocol", "metrics" and "warnings".
        """
        return {"protocol": self.protocol, "metrics": self.metrics, "warnings": list(self.warnings)}


@shows_progress
def evaluate(
    vectors: Any,
    labels: Any = None,
    *,
    gallery: Any = None,
    gallery_labels: Any = None,
    at: int | Iterable[int] | None = None,
    recall_at: int | Iterable[int] | None = None,
    no_match: str = "zero",
    nmi: bool = True,
    seed: int = 0,
    progress: ShowProgress = None,
) -> Scores:
    """Score vectors by retrieval: recall@k, nDCG@10, MRR, R-precision, MAP@R, mAP@1000 and NMI, as fractions.

    Parameters
    ----------
    vectors : Embeddings, array, DataFrame, column of lists or tensor of shape (N, d)
        The queries, of any length.
    labels : array-like of shape (N,)
        Their labels, integers or texts; not needed for Embeddings that carry their own.
    gallery : as vectors, of shape (M, d), optional
        What to search in. By default each query is searched among the other queries.
    gallery_labels : array-like of shape (M,), optional
        The labels of the gallery; needed if there is one.
    at : int or iterable of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k, instead of the usual ones, such as (1, 5, 10).
    recall_at : int or iterable of int, optional
        At which k to measure recall@k alone, as tables of papers have it, such as (1, 10, 20, 40); not with `at`.
    no_match : {"zero", "drop"}
        Whether queries without a match in the gallery count as 0, as in the papers, or are left out, as in
        pytorch-metric-learning.
    nmi : bool, default True
        Whether to cluster the queries for NMI, which is slow for many classes.
    seed : int, default 0
        Where k-means starts, for NMI.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    Scores

    Examples
    --------
    >>> scores = evaluate([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "a", "b"], nmi=False)
    >>> scores.metrics["recall@1"]
    0.6666666666666666
    >>> scores
    Scores(R@1 66.67 %, MAP@R 66.67 %, 3 queries)
    >>> evaluate([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "a", "b"], at=2, nmi=False).metrics["precision@2"]
    0.3333333333333333
    """
    queries = as_embeddings(vectors, labels)
    if queries.labels is None:
        raise InputError("the vectors were given without labels; wanted one per vector: evaluate(vectors, labels)")
    target = None if gallery is None else as_embeddings(gallery, gallery_labels, name="the gallery")
    if target is not None and target.labels is None:
        raise InputError("a gallery was given without gallery_labels; wanted one label per gallery item: add them")
    return evaluate_embeddings(
        queries, target, at=at, recall_at=recall_at, no_match=no_match, nmi=nmi, seed=seed, progress=progress
    )


@shows_progress
def evaluate_embeddings(
    queries: Embeddings,
    gallery: Embeddings | None = None,
    *,
    at: int | Iterable[int] | None = None,
    recall_at: int | Iterable[int] | None = None,
    no_match: str = "zero",
    junk: str | int | None = None,
    nmi: bool = True,
    seed: int = 0,
    progress: ShowProgress = None,
) -> Scores:
    """Score Embeddings by retrieval, as `evaluate` scores raw vectors.

    Where cameras or sequences are known, map and map-trapezoid are added (the average precision of the whole ranking,
    divided by R, and by trapezoids) and, unless `at` says otherwise, recall@5; recall@k is what person
    re-identification calls CMC.

    Parameters
    ----------
    queries : Embeddings
        N items with labels.
    gallery : Embeddings, optional
        M items with labels to search in. By default each query is searched among the other queries.
    at : int or iterable of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k, instead of the usual ones; recall@1 is always
        among them.
    recall_at : int or iterable of int, optional
        At which k to measure recall@k alone, instead of the usual ones; not with `at`.
    no_match : {"zero", "drop"}
        Whether queries without a match in the gallery count as 0 or are left out.
    junk : str or int, optional
        The label of gallery items that are neither right nor wrong, and are left out.
    nmi : bool, default True
        Whether to cluster the queries for NMI, which is slow for many classes.
    seed : int, default 0
        Where k-means starts, for NMI.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    Scores
    """
    metrics.check_no_match(no_match)
    if at is not None and recall_at is not None:
        raise InputError(f"at is {at} and recall_at is {recall_at}; wanted one of them: leave one out")
    cutoffs = None if at is None else check_cutoffs(at)
    recalls = None if recall_at is None else check_cutoffs(recall_at, "recall_at")
    target = queries if gallery is None else gallery
    searched = target
    target = without_junk(queries, target, junk)
    query_codes, gallery_codes = shared_codes(labels_of(queries), labels_of(target))
    own_rows = own_gallery_rows(queries, target)
    if len(target) == bool((own_rows >= 0).any()):
        raise InputError("the query is the only item to search in; wanted at least one other: add more items")
    check_same_encoder(queries, target)
    _check_matches(count_matches(query_codes, gallery_codes, own_rows))
    check_depth(cutoffs or recalls or (), len(target) - bool((own_rows >= 0).all()))
    left_out = groups_left_out(queries, target)
    names = usual_names(cutoffs, recalls=recalls, exclusions=left_out is not None)
    per_query = _rank_and_score(queries, target, query_codes, gallery_codes, left_out, names, progress)
    matches = per_query.pop("matches").astype(np.int64)
    _check_matches(matches)
    values = {name: metrics.mean(column, matches, no_match) for name, column in per_query.items()}
    if nmi:
        by_id = np.argsort(queries.ids, kind="stable")  # so that the order of the rows does not matter
        clusters = kmeans(queries.vectors[by_id], len(np.unique(query_codes)), seed, progress=progress)
        values["nmi"] = metrics.normalized_mutual_information(query_codes[by_id], clusters)
    messages = ("the gallery has one class: whatever is found there is right",) * (len(np.unique(gallery_codes)) == 1)
    for message in messages:
        warn_caller(message)
    protocol = _protocol(queries, target, searched is queries, own_rows, matches, no_match, nmi, seed)
    protocol |= {} if cutoffs is None else {"precision@k": "divided by k", "mrr@k": "0 beyond k"}
    protocol |= described_rules(target, len(searched) - len(target), junk)
    return Scores(values, protocol, per_query, messages)


def _check_matches(matches: IntArray) -> None:
    if not matches.any():
        raise InputError(
            "no query has a match, so that every score would be 0; wanted labels that occur twice, or in queries and "
            "gallery: check that both are labelled alike"
        )


def _rank_and_score(
    queries: Embeddings,
    gallery: Embeddings,
    query_codes: IntArray,
    gallery_codes: IntArray,
    left_out: tuple[IntArray, IntArray] | None,
    names: list[str],
    progress: Progress | None,
) -> dict[str, NDArray[np.float64]]:
    """The named metrics of each query, (N,) by name, and R under the name "matches"."""
    blocks = []
    for block, hits in find_hits(queries, gallery, query_codes, gallery_codes, left_out):
        found = hits.counted()  # R, as all matches are ranked
        matches = found.astype(np.int64)
        blocks.append({"matches": found} | {name: measured(name, hits, matches) for name in names})
        if progress:
            progress("ranking", block.stop, len(queries))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _protocol(
    queries: Embeddings,
    gallery: Embeddings,
    same_set: bool,
    own_rows: IntArray,
    matches: IntArray,
    no_match: str,
    nmi: bool,
    seed: int,
) -> dict[str, Any]:
    n_classes = len(np.unique(labels_of(queries)))
    return {
        "queries": len(queries),
        "gallery": len(gallery),
        "gallery_is": "the queries themselves" if same_set else "a separate set",
        "self_matches_removed_by_id": int((own_rows >= 0).sum()),
        "classes": n_classes,
        "queries_without_match": int((matches == 0).sum()),
        "without_match": "counted as 0" if no_match == "zero" else "left out",
        "similarity": "cosine",
        "neighbors": "exact, ties by id",
        "ndcg@k": "binary relevance, log2 discount, relative to the best min(k, R) places",
        "mrr": "first match in the whole ranking",
        "map@r": "divided by R",
        f"map@{MAP_AT}": f"divided by min({MAP_AT}, R)",
        "nmi": _nmi_protocol(n_classes, seed) if nmi else "skipped",
    }


def _nmi_protocol(n_classes: int, seed: int) -> str:
    start = f"one greedy k-means++ start, at most {MOST_ITERATIONS} iterations"
    return f"k-means on the queries, {n_classes} clusters, {start}, arithmetic mean, seed {seed}"
