"""Rankings by the scores of all items: cosines, some queries at a time, and the best of what is scored.

N items, or M of a gallery; n queries at a time.
"""

from collections.abc import Iterator

import numpy as np

from entourage.runtime.sharing import shared
from entourage.values import Embeddings, Neighbors

__all__ = ["best_of_gallery", "best_scored", "blocks_of", "candidates_first", "cosine_blocks"]

_VALUES_AT_ONCE = 2**22  # similarities held at once: 32 MiB


def cosine_blocks(
    items: Embeddings, at_most: int = 512, queries: Embeddings | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield similarities (n, N) float64 of n queries at a time to all items, for methods that need every one.

    The queries are the items themselves unless others are given.
    """
    asking = items if queries is None else queries
    size = _block_size(items, at_most)
    if len(items) * len(asking) > _VALUES_AT_ONCE:  # too many to be kept
        vectors = items.vectors.astype(np.float64)
        own = vectors if asking is items else asking.vectors.astype(np.float64)
        yield from ((block, own[block] @ vectors.T) for block in _slices(len(own), size))
        return
    cosines = shared(("cosines", size), (asking.vectors, items.vectors), lambda: _cosines(asking, items, size))
    yield from ((block, cosines[block]) for block in _slices(len(asking), size))


def _cosines(queries: Embeddings, items: Embeddings, size: int) -> np.ndarray:
    """All similarities (n, N), block by block, as a product of another shape may be rounded otherwise."""
    vectors = items.vectors.astype(np.float64)
    own = vectors if queries is items else queries.vectors.astype(np.float64)
    return np.concatenate([own[block] @ vectors.T for block in _slices(len(own), size)])


def blocks_of(items: Embeddings, at_most: int = 512, queries: Embeddings | None = None) -> Iterator[slice]:
    """Yield the blocks of queries that `cosine_blocks` goes through."""
    return _slices(len(items if queries is None else queries), _block_size(items, at_most))


def _block_size(items: Embeddings, at_most: int) -> int:
    return int(np.clip(_VALUES_AT_ONCE // len(items), 1, at_most))


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def best_scored(items: Embeddings, block: slice, scores: np.ndarray, k: int) -> Neighbors:
    """Find the k best by scores (n, N) of each query of the block, never itself; ties go to the lower id.

    Scores are compared as float32, so that ties do not depend on the order of summation.
    """
    scores = scores.astype(np.float32)
    scores[np.arange(len(scores)), np.arange(block.start, block.stop)] = -np.inf
    return best_of_gallery(items, scores, k)


def best_of_gallery(gallery: Embeddings, scores: np.ndarray, k: int) -> Neighbors:
    """Find the k best by scores (n, M) of each of n queries from outside; see `best_scored`."""
    by_id = np.argsort(gallery.ids, kind="stable")
    scores = scores.astype(np.float32)[:, by_id]
    least = np.partition(scores, -k, axis=1)[:, -k]  # the k-th best
    rows = np.empty((len(scores), k), np.int64)
    for query, (row, bound) in enumerate(zip(scores, least, strict=True)):
        candidates = np.flatnonzero(row >= bound)  # in order of id, which the stable sort keeps
        rows[query] = candidates[np.argsort(-row[candidates], kind="stable")[:k]]
    return Neighbors(by_id[rows], np.take_along_axis(scores, rows, axis=1))


def candidates_first(cosines: np.ndarray, candidates: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Give candidates (n, M) of n queries their scores (n, M), and all other items lower ones in the order of cosines.

    cosines (n, N) to all items; what is returned has the same shape.
    """
    lowest = scores.min(axis=1, keepdims=True)
    combined = cosines + (lowest - 1.001)  # below every candidate, as no cosine is above 1
    np.put_along_axis(combined, candidates, scores, axis=1)
    return combined
