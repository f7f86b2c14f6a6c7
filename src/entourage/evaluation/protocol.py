"""Scores of a set of embeddings: one pass over the similarities, and the protocol they were measured under.

Every metric follows from the ranks at which a query's matches stand, which are counted tile by tile: no ranking is
made, none is too deep, and memory does not grow with N x N.

Items that are too easy to find, or junk, are left out where they are known (see shots.py): they are then neither right
nor wrong, and R does not count them.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import metrics
from entourage.evaluation.clustering import MOST_ITERATIONS, kmeans
from entourage.evaluation.exclusions import described_rules, groups_left_out, without_junk
from entourage.neighbors import check_same_encoder, own_gallery_rows
from entourage.values import Embeddings, Neighbors, label_codes, shared_codes

__all__ = [
    "Scores",
    "evaluate",
    "evaluate_embeddings",
    "evaluate_ranking",
    "mean_average_precision_at_r",
    "nearest_matches",
]

RECALL_AT = (1, 2, 4, 8, 10, 100)
RECALL_AT_OF_SHOTS = (5,)  # person re-identification reports it too
MAP_AT = 1000


@dataclass(frozen=True)
class Scores:
    """Metrics as fractions in [0, 1], the protocol they were measured under, and what each query adds to them."""

    metrics: dict[str, float]
    protocol: dict
    per_query: dict[str, np.ndarray]
    """(N,) of every metric that is a mean over queries: of all but NMI."""
    warnings: tuple[str, ...] = ()
    """Why these scores may mean less than they seem to; each is also given as an EntourageWarning."""

    @property
    def recall_at_1(self) -> np.ndarray:
        """(N,) 1 where the nearest item has the query's label."""
        return self.per_query["recall@1"]

    @property
    def average_precision(self) -> np.ndarray:
        """(N,) average precision at R of each query."""
        return self.per_query["map@r"]

    def document(self) -> dict:
        """What `--json` prints."""
        return {"protocol": self.protocol, "metrics": self.metrics, "warnings": list(self.warnings)}


def evaluate(
    vectors,
    labels,
    *,
    gallery=None,
    gallery_labels=None,
    no_match: str = "zero",
    nmi: bool = True,
    seed: int = 0,
    progress=None,
) -> Scores:
    """Retrieval scores of raw vectors (N, d) with labels (N,): recall@k, R-precision, MAP@R, mAP@1000, NMI.

    Each item is searched among the others, or in `gallery` (M, d) with `gallery_labels` (M,). `no_match` says
    what becomes of queries without any match: "zero" (papers) or "drop" (pytorch-metric-learning).

    >>> evaluate([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "a", "b"], nmi=False).metrics["recall@1"]
    0.6666666666666666
    """
    queries = Embeddings.from_vectors(vectors, labels=labels)
    if gallery is not None:
        if gallery_labels is None:
            raise InputError("a gallery was given without gallery_labels; wanted one label per gallery item")
        gallery = Embeddings.from_vectors(gallery, labels=gallery_labels)
    return evaluate_embeddings(queries, gallery, no_match=no_match, nmi=nmi, seed=seed, progress=progress)


def evaluate_embeddings(
    queries: Embeddings,
    gallery: Embeddings | None = None,
    *,
    no_match: str = "zero",
    junk=None,
    nmi: bool = True,
    seed: int = 0,
    progress=None,
) -> Scores:
    """`evaluate` for Embeddings that carry their labels, and perhaps cameras or sequences.

    With cameras or sequences recall@5, map and map-trapezoid (the average precision of the whole ranking, divided by
    R, and by trapezoids) are added; recall@k is then what person re-identification calls CMC, for single queries.
    junk: the label of gallery items that are neither right nor wrong, and are left out.
    """
    metrics.check_no_match(no_match)
    target = queries if gallery is None else gallery
    if queries.labels is None or target.labels is None:
        raise InputError("the embeddings have no labels; wanted one per item to tell right from wrong")
    searched = target
    target = without_junk(queries, target, junk)
    query_codes, gallery_codes = shared_codes(queries.labels, target.labels)
    own_rows = own_gallery_rows(queries, target)
    if len(target) == bool((own_rows >= 0).any()):
        raise InputError(f"{len(target)} item to search in; wanted at least one besides the query")
    check_same_encoder(queries, target)
    _check_matches(metrics.count_matches(query_codes, gallery_codes, own_rows))
    left_out = groups_left_out(queries, target)
    per_query = _rank_and_score(queries, target, query_codes, gallery_codes, left_out, progress)
    matches = per_query.pop("matches")
    _check_matches(matches)
    values = {name: metrics.mean(column, matches, no_match) for name, column in per_query.items()}
    if nmi:
        by_id = np.argsort(queries.ids, kind="stable")  # so that the order of the rows does not matter
        clusters = kmeans(queries.vectors[by_id], len(np.unique(query_codes)), seed, progress=progress)
        values["nmi"] = metrics.normalized_mutual_information(query_codes[by_id], clusters)
    doubts = ("the gallery has one class: whatever is found there is right",) * (len(np.unique(gallery_codes)) == 1)
    for doubt in doubts:
        warnings.warn(doubt, EntourageWarning, stacklevel=2)
    protocol = _protocol(queries, target, searched is queries, own_rows, matches, no_match, nmi, seed)
    protocol |= described_rules(target, len(searched) - len(target), junk)
    return Scores(values, protocol, per_query, doubts)


def _check_matches(matches: np.ndarray) -> None:
    if not matches.any():
        raise InputError(
            "no query has a match, so that every score would be 0; wanted labels that occur twice, or in the gallery: "
            "check that both are labelled alike"
        )


def _rank_and_score(queries, gallery, query_codes, gallery_codes, left_out, progress) -> dict:
    """Every per-query metric, name -> (N,), and R under the name "matches"."""
    blocks = []
    for block, hits in _hits(queries, gallery, query_codes, gallery_codes, left_out):
        blocks.append(_score(hits, more=left_out is not None))
        if progress:
            progress("ranking", block.stop, len(queries))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _hits(queries, gallery, query_codes, gallery_codes, left_out=None) -> Iterator[tuple[slice, metrics.Hits]]:
    from entourage.neighbors.ranks import match_ranks  # loads numba

    for block, query, rank in match_ranks(queries, gallery, query_codes, gallery_codes, left_out):
        yield block, metrics.Hits(query, rank, block.stop - block.start)


def _score(hits, *, more: bool) -> dict:
    matches = hits.counted(np.ones(len(hits.rank))).astype(np.int64)  # all of them are ranked
    recalls = sorted(RECALL_AT + RECALL_AT_OF_SHOTS) if more else RECALL_AT
    values = {"matches": matches} | {f"recall@{k}": metrics.recall_at(hits, k) for k in recalls}
    values["r-precision"] = metrics.r_precision(hits, matches)
    values["map@r"] = metrics.average_precision_at_r(hits, matches)
    values[f"map@{MAP_AT}"] = metrics.average_precision_at(hits, matches, MAP_AT)
    if more:
        values["map"] = metrics.average_precision(hits, matches)
        values["map-trapezoid"] = metrics.trapezoid_average_precision(hits, matches)
    return values


def _protocol(queries, gallery, same_set, own_rows, matches, no_match, nmi, seed) -> dict:
    n_classes = len(np.unique(queries.labels))
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
        "map@r": "divided by R",
        f"map@{MAP_AT}": f"divided by min({MAP_AT}, R)",
        "nmi": _nmi_protocol(n_classes, seed) if nmi else "skipped",
    }


def _nmi_protocol(n_classes: int, seed: int) -> str:
    start = f"one greedy k-means++ start, at most {MOST_ITERATIONS} iterations"
    return f"k-means on the queries, {n_classes} clusters, {start}, arithmetic mean, seed {seed}"


def mean_average_precision_at_r(items: Embeddings) -> float:
    """MAP@R of labelled items among themselves, without the other metrics: cheap enough for every epoch."""
    codes = label_codes(items.labels)
    matches = metrics.count_matches(codes, codes, np.arange(len(items)))
    precision = np.zeros(len(items))
    for block, hits in _hits(items, items, codes, codes):
        precision[block] = metrics.average_precision_at_r(hits, matches[block])
    return metrics.mean(precision, matches)


def nearest_matches(items: Embeddings) -> np.ndarray:
    """How many of the other items stand before the nearest of each item's own label, (N,); N where there is none.

    Recall@k of an item is whether this is less than k.

    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0]], labels=["a", "b", "a", "c"])
    >>> nearest_matches(items).tolist()
    [1, 4, 1, 4]
    """
    codes = label_codes(items.labels)
    before = np.full(len(items), len(items))
    for block, hits in _hits(items, items, codes, codes):
        np.minimum.at(before, block.start + hits.query, hits.rank)
    return before


def evaluate_ranking(
    items: Embeddings, rank: Callable[[Embeddings, int], Iterator[tuple[slice, Neighbors]]]
) -> dict[str, np.ndarray]:
    """recall@1, r-precision and map@r of each labelled item ranked among the others by rank(items, k), each (N,).

    For methods that give rankings and no vectors; rank does not see the labels. A query without a match counts as 0.

    >>> from entourage.neighbors import search_blocks
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], labels=["a", "a", "b"])
    >>> evaluate_ranking(items, lambda items, k: search_blocks(items, k=k))["map@r"].tolist()
    [1.0, 1.0, 0.0]
    """
    if items.labels is None:
        raise InputError("the items have no labels; wanted one per item to tell right from wrong")
    codes = label_codes(items.labels)
    matches = metrics.count_matches(codes, codes, np.arange(len(items)))
    scores = {name: np.zeros(len(items)) for name in ("recall@1", "r-precision", "map@r")}
    unlabelled = Embeddings(items.vectors, items.ids, named=items.named)
    for block, ranking in rank(unlabelled, max(1, int(matches.max()))):
        hits = metrics.Hits.from_ranking(codes[ranking.rows] == codes[block, None])
        scores["recall@1"][block] = metrics.recall_at(hits, 1)
        scores["r-precision"][block] = metrics.r_precision(hits, matches[block])
        scores["map@r"][block] = metrics.average_precision_at_r(hits, matches[block])
    return scores
