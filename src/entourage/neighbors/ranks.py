"""At which rank each match of a query stands, without making the ranking.

A rank is a count: how many items are nearer. Each tile of the similarity matrix is read once and most of it passes
with one comparison, so that ranks cost little more than the matrix product, however deep they lie; a search to that
depth would have to sort. Memory is O(tile), and of the ranks as many as there are matches.

N queries, M gallery items, n queries at a time, R matches of a query.
"""

import functools
import threading
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors import check_same_encoder, own_gallery_rows
from entourage.neighbors.index import groups_of_equal_vectors
from entourage.neighbors.kernels import precise_product, rounding_margin
from entourage.runtime.devices import graphics_card
from entourage.runtime.jit import compiled, inlined
from entourage.runtime.threads import blocks, in_threads, share_out
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["match_ranks"]

_TILE_VALUES = 2**23  # similarities that a thread holds: 32 MiB


def match_ranks(
    queries: Embeddings,
    gallery: Embeddings,
    query_codes: IntArray,
    gallery_codes: IntArray,
    left_out: tuple[IntArray, IntArray] | None = None,
) -> Iterator[tuple[slice, IntArray, IntArray]]:
    """Find the ranks of all matches of each query, some queries at a time.

    Rankings are those of `search`: ties by id, and a query is not in its own ranking.

    Parameters
    ----------
    queries : Embeddings
        N items.
    gallery : Embeddings
        M items to search in; may be the queries themselves.
    query_codes : array of shape (N,)
    gallery_codes : array of shape (M,)
        Gallery items of the query's code are its matches.
    left_out : pair of arrays of shape (N, G) and (M, G), optional
        Groups of the queries and of the gallery. Items that share a group with the query, in any of the G columns, are
        not in its ranking.

    Yields
    ------
    block : slice
        n queries, in order.
    query : array of shape (H,)
        The query of each match, counted from the start of the block, ascending.
    rank : array of shape (H,)
        How many items are nearer than the match, ascending within a query.

    Examples
    --------
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0]])
    >>> codes = np.array([0, 1, 0, 1])
    >>> [(query.tolist(), rank.tolist()) for _, query, rank in match_ranks(items, items, codes, codes)]
    [([0, 1, 2, 3], [1, 2, 1, 1])]
    """
    check_same_encoder(queries, gallery)
    by_id = np.argsort(gallery.ids, kind="stable")
    in_order = bool((by_id == np.arange(len(by_id))).all())
    # With the gallery in order of id, ties are decided by position.
    vectors = gallery.vectors if in_order else gallery.vectors[by_id]
    members, starts = _members(gallery_codes[by_id], max(query_codes.max(), gallery_codes.max()) + 1)
    own_rows = _positions_of(own_gallery_rows(queries, gallery), by_id)
    query_groups, gallery_groups = left_out or (np.empty((len(queries), 0), int), np.empty((len(gallery), 0), int))
    gallery_groups = gallery_groups[by_id]
    first = _first_equal(vectors)
    copies = np.flatnonzero(first != np.arange(len(first)))

    margin = rounding_margin(queries.dim)
    similarities_of = _products(queries.vectors, vectors)

    def ranked(block: slice) -> tuple[slice, IntArray, IntArray]:
        similarities = similarities_of(block)
        similarities[:, copies] = similarities[:, first[copies]]  # so that equal vectors need no second look
        query, matches = _matches(query_codes[block], own_rows[block], members, starts)
        wanted = ~(query_groups[block][query] == gallery_groups[matches]).any(axis=1)
        query, matches = query[wanted], matches[wanted]
        bounds = np.searchsorted(query, np.arange(block.stop - block.start + 1))
        ranks = np.empty(len(matches), np.int64)
        of_block = similarities, own_rows[block], matches, bounds, ranks, queries.vectors[block], vectors, margin
        groups = query_groups[block], gallery_groups
        share_out(functools.partial(_count_nearer, *of_block, *groups), len(similarities))
        return block, query, ranks

    size = int(np.clip(_TILE_VALUES // len(gallery), 1, 512))
    yield from in_threads(ranked, blocks(len(queries), size))


def _products(rows: NDArray[np.float32], columns: NDArray[np.float32]) -> Callable[[slice], NDArray[np.float32]]:
    """The similarities (n, M) of some rows to all columns; on the processor in memory that each thread uses again."""
    card = graphics_card()
    if card is not None:
        from torch import from_dlpack

        left, right = (from_dlpack(table).to(card) for table in (rows, columns))
        return lambda block: (left[block] @ right.T).numpy(force=True)
    kept = threading.local()

    def product(block: slice) -> NDArray[np.float32]:
        n = block.stop - block.start
        if len(kept.__dict__.get("room", ())) < n:
            kept.room = np.empty((n, len(columns)), np.float32)
        tile: NDArray[np.float32] = np.matmul(rows[block], columns.T, out=kept.room[:n])
        return tile

    return product


def _positions_of(own_rows: IntArray, by_id: IntArray) -> IntArray:
    """Gallery rows (N,), or -1, as positions in order of id."""
    position = np.empty(len(by_id), np.int64)
    position[by_id] = np.arange(len(by_id))
    return np.where(own_rows >= 0, position[own_rows], -1)


def _members(codes: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """members[starts[c]:starts[c + 1]] are the positions that have code c, in order."""
    return np.argsort(codes, kind="stable"), np.searchsorted(np.sort(codes), np.arange(count + 1))


def _matches(codes: IntArray, own_rows: IntArray, members: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """The query (H,) and the gallery position (H,) of each pair of one code, a query with itself left out."""
    counts = starts[codes + 1] - starts[codes]
    query = np.repeat(np.arange(len(codes)), counts)
    within = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
    matches = members[starts[codes][query] + within]
    others = matches != own_rows[query]
    return query[others], matches[others]


def _first_equal(vectors: FloatArray) -> IntArray:
    """The first row that holds the same vector, (M,)."""
    members, starts = groups_of_equal_vectors(vectors, by_id=np.arange(len(vectors)))
    first = np.empty(len(vectors), np.int64)
    first[members] = np.repeat(members[starts[:-1]], np.diff(starts))
    return first


@inlined
def _place(similarity: float, item: int, similar: NDArray[np.float32], positions: IntArray) -> int:
    """The first match that the item stands before; similar and positions (R,), nearest first."""
    low, high = 0, len(similar)
    while low < high:
        middle = (low + high) // 2
        if similarity > similar[middle] or (similarity == similar[middle] and item < positions[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _share_a_group(query_groups: IntArray, q: int, item_groups: IntArray, j: int) -> bool:
    """Whether a query and an item are in one group, in any column of (n, G) and (M, G)."""
    for g in range(query_groups.shape[1]):  # noqa: SIM110, which numba would not know
        if query_groups[q, g] == item_groups[j, g]:
            return True
    return False


@compiled
def _count_nearer(
    similarities: NDArray[np.float32],
    own_rows: IntArray,
    matches: IntArray,
    bounds: IntArray,
    ranks: NDArray[np.int64],
    queries: NDArray[np.float32],
    items: NDArray[np.float32],
    margin: float,
    query_groups: IntArray,
    item_groups: IntArray,
    start: int,
    stop: int,
) -> None:
    """ranks[bounds[q]:bounds[q + 1]] = how many others stand before each of matches[bounds[q]:bounds[q + 1]].

    Of equal similarities the lower position stands first; the matches of a query come in order of position and
    their ranks leave in order of rank. Items as near as a match, within the rounding of the similarities (n, M), are
    compared with it once more, in double precision, as `search` does.
    """
    for q in range(start, stop):
        row, positions = similarities[q], matches[bounds[q] : bounds[q + 1]]
        count = len(positions)
        if count == 0:
            continue
        similar = np.empty(count, np.float32)
        for p in range(count):
            similar[p] = precise_product(queries[q], items[positions[p]])
        order = np.argsort(-similar, kind="mergesort")  # stable: nearest first, ties by position
        positions, similar = positions[order], similar[order]
        least = similar[count - 1] - margin
        between = np.zeros(count + 1, np.int64)  # items that stand before match p and after match p - 1
        for j in range(len(row)):
            if row[j] < least or j == own_rows[q] or _share_a_group(query_groups, q, item_groups, j):
                continue
            place = _place(row[j], j, similar, positions)
            near_next = place < count and row[j] - similar[place] <= margin
            near_last = place > 0 and similar[place - 1] - row[j] <= margin
            if near_next or near_last:
                place = _place(precise_product(queries[q], items[j]), j, similar, positions)
            between[place] += 1
        ranks[bounds[q] : bounds[q + 1]] = np.cumsum(between[:count])
