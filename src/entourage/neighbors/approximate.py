"""Approximate search: an index proposes candidates, exact similarities put them in order.

Which index is chosen by how much there is to search, or named: NN-descent, or what `faiss.index_factory` makes of a
text such as "HNSW16,SQ8". Its recall is measured on a sample against exact search, and goes with what was found; how
widely a faiss index is searched is raised until the sample is found well enough.

Vectors may be in memory or not: all that is asked of them are rows. N queries, M gallery items, k neighbours,
d dimensions.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.candidates import Candidates, Vectors
from entourage.neighbors.choice import NN_DESCENT, SPARE
from entourage.neighbors.reference import nearest_exactly, recall_of
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.runtime.threads import blocks, in_threads
from entourage.values import IntArray

__all__ = ["approximate_top_k", "prepared"]

WANTED = 0.95
"""The recall from which on a search is not widened."""
_SAMPLE = 256
_BLOCK = 2**10  # queries at a time
_TITLE = "searching neighbours"


def prepared(
    method: str, gallery: Vectors, k: int, *, kept: Path | None = None, progress: Progress | None = None
) -> Candidates:
    """Build an index of a gallery.

    Parameters
    ----------
    method : str
        "nn-descent", for queries that are the gallery alone, or a text for `faiss.index_factory`.
    gallery : Vectors
        M items.
    k : int
        How many neighbours will be asked for.
    kept : Path, optional
        A file of a faiss index, from which a build that was interrupted is resumed.
    progress : Progress, optional

    Returns
    -------
    Candidates
    """
    if method == NN_DESCENT:
        from entourage.neighbors.nn_descent import NNDescentGraph

        return NNDescentGraph(gallery[:], k)
    from entourage.neighbors.faiss_search import FaissIndex

    return FaissIndex(method, gallery, kept, progress)


def approximate_top_k(
    candidates: Candidates,
    queries: Vectors,
    gallery: Vectors,
    k: int,
    own_rows: IntArray,
    id_rank: IntArray,
    *,
    start: int = 0,
    progress: Progress | None = None,
) -> tuple[str, Iterator[tuple[slice, IntArray, NDArray[np.float32]]]]:
    """Find about the k most similar gallery rows of each query.

    Parameters
    ----------
    candidates : Candidates
        The index of the gallery.
    queries, gallery : Vectors
        N and M items.
    k : int
    own_rows : array of shape (N,)
        The gallery row that each query must not find, or -1.
    id_rank : array of shape (M,)
        The place of each gallery item in order of id, which decides ties.
    start : int
        The first query that is wanted.
    progress : Progress, optional

    Returns
    -------
    method : str
        How they are found, with the recall of a sample.
    blocks : iterator of (block, rows, similarities)
        Some queries at a time, as exact search yields them.
    """
    recall, count = _measured(candidates, queries, gallery, k, own_rows, id_rank)
    method = f"approximate ({candidates.name}), recall {recall:.3f} of the exact neighbours of {count} sampled items"

    def found() -> Iterator[tuple[slice, IntArray, NDArray[np.float32]]]:
        for block in blocks(len(queries), _BLOCK):
            if block.start >= start:
                yield block, *_best(candidates, queries[block], block, gallery, k, own_rows[block], id_rank)
            if progress:
                progress(_TITLE, block.stop, len(queries))

    return method, found()


def _measured(
    candidates: Candidates, queries: Vectors, gallery: Vectors, k: int, own_rows: IntArray, id_rank: IntArray
) -> tuple[float, int]:
    """The recall on a sample, after the search has been widened as far as it takes; and the size of the sample."""
    count = min(_SAMPLE, len(queries))
    rows = np.sort(generator(0).choice(len(queries), count, replace=False))
    sample = queries[rows]
    wanted, _ = nearest_exactly(sample, gallery, k, own_rows[rows], id_rank)
    while True:
        found, _ = _best(candidates, sample, rows, gallery, k, own_rows[rows], id_rank)
        recall = recall_of(wanted, found)
        if recall >= WANTED or not candidates.widen():
            return recall, count


def _best(
    candidates: Candidates,
    queries: NDArray[np.float32],
    rows: slice | IntArray,
    gallery: Vectors,
    k: int,
    own_rows: IntArray,
    id_rank: IntArray,
) -> tuple[IntArray, NDArray[np.float32]]:
    """The k best of the candidates of queries (n, d), by exact similarities; ties by id."""
    proposed = candidates.of(queries, rows, min(k + SPARE, len(gallery)))
    found = np.maximum(proposed, 0)
    nobody = (proposed < 0) | (proposed == own_rows[:, None])
    similarities = np.empty(found.shape, np.float32)

    def score(block: slice) -> None:
        vectors = gallery[found[block].ravel()].reshape(*found[block].shape, -1)  # (n, k + spare, d)
        similarities[block] = np.einsum("nd,nkd->nk", queries[block], vectors)

    for _ in in_threads(score, blocks(len(found), 128)):
        pass
    similarities[nobody] = -np.inf
    order = np.lexsort((id_rank[found], -similarities), axis=-1)[:, :k]
    best, values = np.take_along_axis(found, order, axis=1), np.take_along_axis(similarities, order, axis=1)
    short = np.flatnonzero(np.isinf(values[:, -1]))  # an index may lose some items altogether
    if len(short):
        best[short], values[short] = nearest_exactly(queries[short], gallery, k, own_rows[short], id_rank)
    return best, values
