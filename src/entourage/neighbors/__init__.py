"""Who stands near whom: one search for the context before refinement and the ranking after it."""

from collections.abc import Iterator

import numpy as np

from entourage.errors import InputError
from entourage.values import Embeddings, Neighbors, shared_codes

__all__ = ["check_same_encoder", "own_gallery_rows", "search", "search_blocks"]


def search(queries: Embeddings, gallery: Embeddings | None = None, k: int = 8, *, progress=None) -> Neighbors:
    """The k gallery items most similar to each query, nearest first; equal similarities by id, lower first.

    Without a gallery the queries are searched among themselves. An item is never its own neighbour: it is
    left out by id, wherever it stands in the ranking. Two different sets share ids only if both name theirs.

    >>> items = Embeddings.from_vectors([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> search(items, k=1).rows.tolist()
    [[1], [0], [0]]
    """
    blocks = _search(queries, gallery, k, progress)  # checks k before room is made for it
    rows = np.empty((len(queries), k), np.int64)
    similarities = np.empty((len(queries), k), np.float32)
    for block, found in blocks:
        rows[block], similarities[block] = found.rows, found.similarities
    return Neighbors(rows, similarities)


def search_blocks(
    queries: Embeddings, gallery: Embeddings | None = None, k: int = 8
) -> Iterator[tuple[slice, Neighbors]]:
    """The same search, some queries at a time, for rankings too long to hold for all of them."""
    return _search(queries, gallery, k)


def _search(queries, gallery, k, progress=None) -> Iterator[tuple[slice, Neighbors]]:
    from entourage.neighbors import exact

    gallery = queries if gallery is None else gallery
    check_same_encoder(queries, gallery)
    own_rows = own_gallery_rows(queries, gallery)
    available = len(gallery) - bool((own_rows >= 0).any())
    if not 1 <= k <= available:
        raise InputError(
            f"k = {k} neighbours asked of {len(gallery)} items, which offer {available}; "
            f"wanted 1 ≤ k ≤ {available}: lower k or bring more items"
        )
    blocks = exact.top_k(queries.vectors, gallery.vectors, gallery.ids, k, own_rows, progress)
    return ((block, Neighbors(rows, similarities)) for block, rows, similarities in blocks)


def check_same_encoder(queries: Embeddings, gallery: Embeddings) -> None:
    if queries.dim != gallery.dim:
        raise InputError(
            f"the queries have {queries.dim} dimensions and the gallery {gallery.dim}; "
            "both must come from the same encoder"
        )


def own_gallery_rows(queries: Embeddings, gallery: Embeddings) -> np.ndarray:
    """The gallery row that is the query itself, or -1, (N,): by position in one set, by id between two."""
    if gallery is queries:
        return np.arange(len(queries))
    if not (queries.named and gallery.named):
        return np.full(len(queries), -1)
    query_codes, gallery_codes = shared_codes(queries.ids, gallery.ids)
    row_of_code = np.full(max(query_codes.max(), gallery_codes.max()) + 1, -1)
    row_of_code[gallery_codes] = np.arange(len(gallery))
    return row_of_code[query_codes]
