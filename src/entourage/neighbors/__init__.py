"""Nearest neighbours: one search for the context before refinement and for the ranking after it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from entourage.errors import InputError
from entourage.neighbors.choice import AUTO, EXACT, NN_DESCENT, check_by, chosen
from entourage.neighbors.given import GivenNeighbors, given_neighbors
from entourage.neighbors.index import SearchIndex
from entourage.runtime.checks import check_whole
from entourage.runtime.memory import free_memory
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.values import Embeddings, IntArray, Neighbors, as_embeddings

__all__ = ["SearchIndex", "automatic_method", "check_same_encoder", "own_gallery_rows", "search", "search_blocks"]

_LONGEST_LIST = 128  # of neighbours: for longer ones an index has to look at too much


@shows_progress
def search(
    queries: Any, gallery: Any = None, k: int = 8, *, by: Any = AUTO, progress: ShowProgress = None
) -> Neighbors:
    """Find the k gallery items most similar to each query: exactly, unless there are too many to compare.

    An item is never its own neighbour: it is left out by id, wherever it stands in the ranking.

    Parameters
    ----------
    queries : Embeddings, array, DataFrame, column of lists or tensor of shape (N, d)
        N items; vectors may be of any length.
    gallery : as queries, of shape (M, d), or SearchIndex, optional
        M items to search in; by default the queries are searched among themselves. Ids of two sets are the same items
        only if both sets are `named`. A SearchIndex spares what depends on the gallery alone, where it is searched
        more than once.
    k : int, default 8
        How many neighbours to find of each query.
    by : str or neighbours, default "auto"
        "exact"; "nn-descent", where the queries are searched among themselves; or an index of faiss, by the text that
        `faiss.index_factory` takes, such as "HNSW16" or "IVF1024,SQ8". "auto" is exact up to 8 billion pairs, which a
        set of 130,000 items has, and for more than 128 neighbours; else it is an index, if faiss is installed. Or what
        an index of yours has found: (ids, scores), ids alone or Neighbors, of which exact similarities choose.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    Neighbors
        (N, k) rows of the gallery, nearest first; of equally similar items the one with the lower id comes first. Its
        `method` says how they were found and, of an approximate search, with what recall on a sample.

    Examples
    --------
    >>> search([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0]], k=1).rows.tolist()
    [[1], [0], [0]]
    """
    if gallery is queries:
        gallery = None
    elif gallery is not None and not isinstance(gallery, SearchIndex):
        gallery = as_embeddings(gallery, name="the gallery")
    queries = as_embeddings(queries, name="the queries")
    if not isinstance(check_by(by), str):
        among = gallery.items if isinstance(gallery, SearchIndex) else queries if gallery is None else gallery
        by = given_neighbors(by, queries, among, "by")
    method, blocks = _search(queries, gallery, k, progress, by)  # checks k before room is made for it
    rows = np.empty((len(queries), k), np.int64)
    similarities = np.empty((len(queries), k), np.float32)
    for block, found in blocks:
        rows[block], similarities[block] = found.rows, found.similarities
    return Neighbors(rows, similarities, method)


def search_blocks(
    queries: Embeddings, gallery: Embeddings | SearchIndex | None = None, k: int = 8
) -> Iterator[tuple[slice, Neighbors]]:
    """Search exactly, some queries at a time, for rankings too long to hold for all queries at once.

    Parameters
    ----------
    queries, gallery, k
        As in `search`.

    Yields
    ------
    block : slice
        The queries, in order.
    found : Neighbors
        (n, k) neighbours of the n queries of the block.
    """
    return _search(queries, gallery, k)[1]


def _search(
    queries: Embeddings,
    gallery: Embeddings | SearchIndex | None,
    k: int,
    progress: Progress | None = None,
    by: str | GivenNeighbors = EXACT,
) -> tuple[str, Iterator[tuple[slice, Neighbors]]]:
    """How the neighbours are found, and the neighbours."""
    check_whole("k", k, least=1)
    gallery = queries if gallery is None else gallery
    index = gallery if isinstance(gallery, SearchIndex) else SearchIndex(gallery)
    check_same_encoder(queries, index.items)
    own_rows = own_gallery_rows(queries, index)
    available = len(index) - bool((own_rows >= 0).any())
    if k > available:
        raise InputError(
            f"k is {k}, but a query can have at most {available} neighbours among {len(index)} items; "
            f"wanted 1 ≤ k ≤ {available}: lower k or add items"
        )
    one_set = index.items is queries
    if by == AUTO:
        long = k > _LONGEST_LIST
        by = EXACT if long else automatic_method(len(queries), len(index), index.items.dim, one_set=one_set, k=k)
    if by == EXACT:
        from entourage.neighbors import exact

        method, blocks = EXACT, exact.top_k(queries.vectors, index, k, own_rows, progress)
    else:
        from entourage.neighbors.approximate import approximate_top_k, prepared

        if isinstance(by, GivenNeighbors) and k > by.usable(own_rows):
            raise InputError(
                f"k is {k}, but most lists name {by.usable(own_rows)} neighbours; ask your index for more, or lower k"
            )
        if by == NN_DESCENT and not one_set:
            raise InputError(f"by is {by} for a gallery; it searches a set within itself: leave the gallery out")
        gallery_vectors = index.items.vectors
        candidates = by if isinstance(by, GivenNeighbors) else prepared(by, gallery_vectors, k, progress=progress)
        method, blocks = approximate_top_k(
            candidates, queries.vectors, gallery_vectors, k, own_rows, index.id_rank, progress=progress
        )
    return method, ((block, Neighbors(rows, similarities)) for block, rows, similarities in blocks)


def automatic_method(n_queries: int, n_items: int, dim: int, *, one_set: bool, k: int = 16) -> str:
    """What `search` does by itself: "exact", or an index that takes half of the free memory at most.

    Parameters
    ----------
    n_queries, n_items, dim : int
        N queries among M items of d dimensions.
    one_set : bool
        Whether the queries are the items.
    k : int
        How many neighbours will be asked for.

    Returns
    -------
    str
    """
    return chosen(n_queries, n_items, dim, one_set=one_set, memory=free_memory() / 2, k=k, in_memory=True)


def check_same_encoder(queries: Embeddings, gallery: Embeddings) -> None:
    """Raise InputError if queries and gallery differ in their number of dimensions.

    Parameters
    ----------
    queries, gallery : Embeddings
        Items of one encoder.
    """
    if queries.dim != gallery.dim:
        raise InputError(
            f"the queries have {queries.dim} dimensions and the gallery {gallery.dim}; "
            "both must come from the same encoder: encode one of them again"
        )


def own_gallery_rows(queries: Embeddings, gallery: Embeddings | SearchIndex) -> IntArray:
    """Find each query in the gallery: by position if they are the same set, by id if both are `named`.

    Parameters
    ----------
    queries : Embeddings
        N items.
    gallery : Embeddings or SearchIndex

    Returns
    -------
    array of shape (N,)
        The gallery row that is the query itself, or -1.
    """
    index = gallery if isinstance(gallery, SearchIndex) else SearchIndex(gallery)
    if index.items is queries:
        return np.arange(len(queries))
    if not (queries.named and index.items.named):
        return np.full(len(queries), -1)
    return index.rows_of(queries.ids)
