"""Exact search by tiles of the similarity matrix: memory O(N k + tile), every tie decided by id (see index.py)."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.index import SearchIndex
from entourage.neighbors.quantised import Codes
from entourage.runtime.devices import graphics_card
from entourage.runtime.progress import Progress
from entourage.runtime.threads import blocks, thread_count
from entourage.values import IntArray

__all__ = ["top_k"]

_TILE_VALUES = 2**20  # similarities held at once by a thread: 4 MiB
_TILE_SIDE = 1024
_FEW_QUERIES = 4  # so many are searched one by one where the gallery has codes
_FEW_VALUES = 2**14  # tiles of a few queries have at least so many, or calls would take longer than products
_MOST_CANDIDATES = 2**27  # of all items at once: 1 GiB
_TITLE = "searching neighbours"


def top_k(
    queries: NDArray[np.float32],
    gallery: SearchIndex,
    k: int,
    own_rows: IntArray,
    progress: Progress | None = None,
) -> Iterator[tuple[slice, IntArray, NDArray[np.float32]]]:
    """Find the k most similar gallery rows of each query, some queries at a time.

    Parameters
    ----------
    queries : array of shape (N, d)
        Unit vectors.
    gallery : SearchIndex
        M items; of equally similar ones the one with the lower id comes first.
    k : int
    own_rows : array of shape (N,)
        The gallery row that each query must not find, or -1.
    progress : Progress, optional
        Called as progress(title, done, total).

    Yields
    ------
    block : slice
        n queries, in order.
    rows : array of shape (n, k)
        Rows of the gallery, nearest first.
    similarities : array of shape (n, k)
    """
    (members, starts), group_of_row = gallery.groups, gallery.group_of_row
    own_groups = group_of_row[own_rows]
    alone = starts[own_groups + 1] - starts[own_groups] == 1
    hidden = np.where((own_rows >= 0) & alone, own_groups, -1)
    one_set = queries is gallery.items.vectors and bool((own_rows == np.arange(len(gallery))).all())
    # One group more than items asked for, as the first member of a group may be the query itself.
    n_groups = k if gallery.all_distinct else min(k + 1, len(starts) - 1)
    for block, groups, similarities in _nearest(queries, gallery, hidden, one_set, n_groups, progress):
        if gallery.all_distinct:
            yield block, members[groups], similarities
        else:
            yield block, *_expand(groups, similarities, members, starts, own_rows[block], gallery.id_rank, k)


def _nearest(
    queries: NDArray[np.float32],
    gallery: SearchIndex,
    hidden: IntArray,
    one_set: bool,
    k: int,
    progress: Progress | None,
) -> Iterator[tuple[slice, IntArray, NDArray[np.float32]]]:
    """The k vectors of the index nearest to each query and their similarities, both (n, k), ties by position.

    hidden (N,) is the vector a query must not find, or -1: it comes last. one_set: the queries are the gallery's items.
    Here it is decided which device does the work, and how: on the processor each pair of one set is compared once,
    unless the candidates of all at once would take too much memory.
    """
    n, card = len(queries), graphics_card()
    if card is not None:
        from entourage.neighbors import gpu

        found = gpu.best_of_gallery(queries, gallery.on_card, hidden, k)
    else:
        from entourage.neighbors import cpu, kernels

        kernels.compile_ahead()
        items, places = gallery.vectors, gallery.group_of_row
        rows, columns = _tile_shape(n, len(items), thread_count())
        if one_set and len(items) * kernels.room(k) <= _MOST_CANDIDATES:
            alone = np.full(len(items), -1)
            alone[places] = hidden
            candidates = cpu.best_among_each_other(items, alone, k, columns, _shares(progress, n))
            for block in blocks(n, rows):
                yield block, *candidates.best(places[block])
            return
        if gallery.codes is not None and n <= _FEW_QUERIES:
            yield from _one_by_one(queries, gallery, gallery.codes, hidden, k)
            return
        found = cpu.best_of_gallery(queries, items, hidden, k, rows, columns)
    for block, nearest, similarities in found:
        if progress:
            progress(_TITLE, block.stop, n)
        yield block, nearest, similarities


def _one_by_one(
    queries: NDArray[np.float32], gallery: SearchIndex, codes: Codes, hidden: IntArray, k: int
) -> Iterator[tuple[slice, IntArray, NDArray[np.float32]]]:
    """The same for a few queries, each of which is compared with those alone that may be near enough."""
    from entourage.neighbors import cpu

    for row in range(len(queries)):
        query, near = queries[row : row + 1], codes.candidates(queries[row], k, int(hidden[row]))
        near = np.arange(len(gallery.vectors)) if near is None else near
        items = gallery.vectors if len(near) == len(gallery.vectors) else gallery.vectors[near]
        place = np.searchsorted(near, hidden[row])
        own = place if place < len(near) and near[place] == hidden[row] else -1
        tile = _tile_shape(1, len(items), thread_count())
        for _, nearest, similarities in cpu.best_of_gallery(query, items, np.array([own]), k, *tile):
            yield slice(row, row + 1), near[nearest], similarities


def _shares(progress: Progress | None, n: int) -> Callable[[float], None] | None:
    """What is called with the share of the work that is done, 0 to 1, of a search for n queries."""
    return None if progress is None else lambda share: progress(_TITLE, int(share * n), n)


def _tile_shape(n_queries: int, n_items: int, n_threads: int) -> tuple[int, int]:
    """Rows and columns of a tile, of neither so many that some threads would have nothing to do."""

    def fair(n: int) -> int:
        return min(max(256, -(-n // (4 * n_threads))), n, _TILE_SIDE)

    columns = max(fair(n_items), min(_FEW_VALUES // n_queries, n_items))
    return max(1, min(fair(n_queries), _TILE_VALUES // columns)), columns


def _expand(
    groups: IntArray,
    values: NDArray[np.float32],
    members: IntArray,
    starts: IntArray,
    own: IntArray,
    id_rank: IntArray,
    k: int,
) -> tuple[IntArray, NDArray[np.float32]]:
    """Rows (n, k) for groups (n, m): their members, ties by id_rank (M,), the query itself left out, cut at k."""
    sizes = np.diff(starts)[groups]
    nearer = np.cumsum(sizes, axis=1) - sizes  # members of the groups before each that do not tie with it
    nearer[:, 1:][values[:, 1:] == values[:, :-1]] = 0
    nearer = np.maximum.accumulate(nearer, axis=1)
    counts = np.clip(k + 1 - nearer, 0, sizes).ravel()  # k + 1, as one of them may be the query itself
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found = members[np.repeat(starts[groups].ravel(), counts) + within]
    similarity = np.repeat(values.ravel(), counts)
    query = np.repeat(np.repeat(np.arange(len(groups)), groups.shape[1]), counts)
    tie = np.cumsum(np.r_[True, (np.diff(similarity) != 0) | (np.diff(query) != 0)])
    found = found[np.argsort(tie * len(id_rank) + id_rank[found], kind="stable")]

    others = found != own[query]
    found, similarity, query = found[others], similarity[others], query[others]
    rank = np.arange(len(query)) - np.searchsorted(query, query)
    kept = rank < k
    return found[kept].reshape(-1, k), similarity[kept].reshape(-1, k)
