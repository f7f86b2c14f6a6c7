"""Results of an index re-ranked from file to file: queries and gallery in, a reordered list for each query out.

N queries, M gallery items, C candidates of a query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from entourage.errors import InputError
from entourage.neighbors import SearchIndex, own_gallery_rows, search
from entourage.refiner import ContextRefiner, load_refiner
from entourage.refiner.encoder_profile import warn_of_another_encoder
from entourage.refiner.rerank import MOST_CANDIDATES, Reranked, Reranker
from entourage.runtime.checks import check_whole
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.stores import check_kept, read_vectors, warn_if_one_is_refined
from entourage.stores.columns import FORMATS, columns_where_present
from entourage.stores.rankings import RankedLists, check_rankings_file, read_rankings, write_rankings
from entourage.stores.reading import existing, named, same_file
from entourage.stores.replacing import check_file
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, check_unique

__all__ = ["CANDIDATES", "RerankRequest", "RerankResult", "rerank"]

CANDIDATES = 100
_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class RerankRequest:
    """Files and options of a re-ranking."""

    queries: Path
    """Vectors of the queries."""
    gallery: Path
    """Vectors of what is searched; the queries' own file for a set searched in itself."""
    out: Path
    """Where the lists go: .npz, .parquet or .csv."""
    results: Path | None = None
    """What an index returned for each query; None: the gallery is searched here."""
    candidates: int | None = None
    """Where the gallery is searched here: how many to find and re-rank, 100 by default."""
    model: Path | None = None
    """A fitted ContextRefiner; None: the universal scorer."""
    id_column: str | None = None
    """The column of the ids, if it has no usual name."""
    overwrite: bool = False
    """Whether an output that exists is replaced."""

    def check(self) -> None:
        """Refuse what cannot be done before anything is read."""
        for path in (self.queries, self.gallery):
            existing(path, FORMATS, "vectors")
        check_rankings_file(self.out)
        check_kept((self.out,), (self.queries, self.gallery, self.results, self.model))
        check_file(self.out, overwrite=self.overwrite)
        check_whole("--candidates", self.candidates, 1, MOST_CANDIDATES, none=True)
        if self.results is not None and self.candidates is not None:
            raise InputError(
                f"--candidates is {self.candidates}, but all results of {self.results} are re-ranked; leave out one of "
                "--candidates and --results"
            )


@dataclass(frozen=True)
class RerankResult:
    """What was re-ranked, and what has changed."""

    protocol: dict
    """Queries, gallery, candidates, scorer: how it was done."""
    metrics: dict
    """How much the lists have changed, as shares; no labels are needed."""
    written: Path
    """The file of the lists."""

    def document(self) -> dict:
        """Return what `entourage rerank --json` prints."""
        return {"protocol": self.protocol, "metrics": self.metrics, "out": str(self.written)}


@shows_progress
def rerank(request: RerankRequest, *, progress: ShowProgress = None) -> RerankResult:
    """Re-rank a list for each query of a file, and write the lists.

    Parameters
    ----------
    request : RerankRequest
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    RerankResult
    """
    request.check()
    refiner = None if request.model is None else _refiner(request.model)
    reranker = Reranker(refiner)
    queries = read_vectors(request.queries, labels=False, id_column=request.id_column)
    gallery = queries
    if not same_file(request.gallery, request.queries):
        columns = columns_where_present(request.gallery, None, id_column=request.id_column, label_column=None)
        gallery = read_vectors(request.gallery, labels=False, id_column=columns["id_column"])
        warn_if_one_is_refined(request.queries, request.gallery)
    if refiner is not None:
        warn_of_another_encoder(gallery, refiner.encoder_profile_, "the gallery's vectors")
    index = SearchIndex(gallery)
    if request.results is None:
        found = _searched(request, queries, index, progress)
    else:
        found = _given(request.results, queries, index)
    own = own_gallery_rows(queries, index)
    before = [rows[rows != own_row] for rows, own_row in zip(found.rows, own, strict=True)]
    after = []
    for row, rows in enumerate(found.rows):
        scores = None if found.scores is None else found.scores[row]
        after.append(_reranked(reranker, queries.vectors[row], gallery, rows, scores, own[row]))
        if progress:
            progress("re-ranking", row + 1, len(queries))
    write_rankings(request.out, _lists(queries, gallery, after), overwrite=request.overwrite)
    return RerankResult(_protocol(request, queries, gallery, before), _metrics(before, after), request.out)


class _Found(NamedTuple):
    """What each query found: N arrays of gallery rows, best first, and of as many scores, if there are any."""

    rows: Sequence[IntArray]
    scores: Sequence[FloatArray] | None


def _searched(request: RerankRequest, queries: Embeddings, index: SearchIndex, progress: Progress | None) -> _Found:
    most = len(index) - bool((own_gallery_rows(queries, index) >= 0).any())
    if not most:
        raise InputError(f"{request.gallery} has no item but the query; wanted a gallery to search in: add items")
    found = search(queries, index, min(request.candidates or CANDIDATES, most), progress=progress)
    return _Found(list(found.rows), list(found.similarities))


def _given(results: Path, queries: Embeddings, index: SearchIndex) -> _Found:
    """What the file of results has for each query, in the order of the queries; nothing where it names none."""
    lists = read_rankings(results)
    with named(results):
        place = lists.places_of(queries.ids)
        ids = [lists.ids[row] if row >= 0 else _NOTHING for row in place]
        rows = [_gallery_rows(each, index) for each in ids]
        if lists.scores is None:
            return _Found(rows, None)
        return _Found(rows, [lists.scores[row] if row >= 0 else _NOTHING.astype(float) for row in place])


def _gallery_rows(ids: LabelArray, index: SearchIndex) -> IntArray:
    if not len(ids):
        return _NOTHING
    rows = index.rows_of(ids)
    if (rows < 0).any():
        unknown = ids[rows < 0][0].item()
        wanted = "its ids" if index.items.named else f"its rows, 0 to {len(index) - 1}"
        raise InputError(f"the id {unknown!r} is not in the gallery; wanted {wanted}, such as {index.items.ids[0]}")
    check_unique(ids)
    return rows


def _reranked(
    reranker: Reranker,
    query: FloatArray,
    gallery: Embeddings,
    rows: IntArray,
    scores: FloatArray | None,
    own_row: int,
) -> Reranked:
    """One list in its new order; its ids are rows of the gallery."""
    order = np.argsort(gallery.ids[rows], kind="stable")  # rows stand for ids: ties go to the lower id
    rows, scores = rows[order], None if scores is None else scores[order]
    vectors, others = gallery.vectors[rows], rows != own_row
    done = reranker.rerank(query, vectors[others], scores=None if scores is None else scores[others])
    return Reranked(done.rows, done.scores, rows[others][done.rows], done.given_scores)


def _lists(queries: Embeddings, gallery: Embeddings, after: Sequence[Reranked]) -> RankedLists:
    given = [done.given_scores for done in after if done.given_scores is not None]
    return RankedLists(
        tuple(gallery.ids[done.ids] for done in after),
        tuple(done.scores for done in after),
        queries.ids,
        tuple(given) if len(given) == len(after) else None,
    )


def _protocol(request: RerankRequest, queries: Embeddings, gallery: Embeddings, before: Sequence[IntArray]) -> dict:
    return {
        "queries": len(queries),
        "gallery": len(gallery),
        "candidates": max(map(len, before)),
        "found_by": "exact search, cosine" if request.results is None else str(request.results),
        "scorer": "universal" if request.model is None else str(request.model),
    }


def _metrics(before: Sequence[IntArray], after: Sequence[Reranked]) -> dict:
    """How many queries have another first result, and how many of the first ten were not among them before."""
    pairs = [(rows, done.ids) for rows, done in zip(before, after, strict=True) if len(rows)]
    first = [rows[0] != new[0] for rows, new in pairs]
    ten = [len(np.setdiff1d(new[:10], rows[:10])) / len(rows[:10]) for rows, new in pairs]
    return {"another_first": float(np.mean(first or [0])), "new_among_first_10": float(np.mean(ten or [0]))}


def _refiner(folder: Path) -> ContextRefiner:
    refiner = load_refiner(folder)
    if not isinstance(refiner, ContextRefiner):
        raise InputError(f"the model in {folder} is a {type(refiner).__name__}; wanted one of the relational recipe")
    return refiner
