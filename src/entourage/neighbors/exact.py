"""Exact search by tiles of the similarity matrix: memory O(N k + tile), every tie decided by id.

Equal vectors are found first and searched as one. A matrix product may round equal rows differently depending
on where they lie in memory; searched as one they tie by construction, and their ids decide.
"""

from collections.abc import Iterator

import numpy as np

__all__ = ["top_k"]

_TILE_VALUES = 2**26  # similarities held at once: 256 MiB
_LEAST_ROWS = 16


def top_k(queries, gallery, gallery_ids, k, own_rows) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """The k most similar gallery rows of each query and their similarities, both (n, k), n queries at a time.

    queries (N, d) and gallery (M, d) float32 unit vectors; gallery_ids (M,) decide ties; own_rows (N,) is the
    gallery row each query must not find, or -1.
    """
    import torch

    members, starts = _groups_of_equal_vectors(gallery, gallery_ids)
    sizes = np.diff(starts)
    group_of_row = np.empty(len(gallery), np.int64)
    group_of_row[members] = np.repeat(np.arange(len(sizes)), sizes)
    all_distinct = len(sizes) == len(gallery)
    in_order = all_distinct and bool((members == np.arange(len(members))).all())
    distinct = torch.from_dlpack(gallery if in_order else gallery[members[starts[:-1]]])

    id_rank = np.argsort(np.argsort(gallery_ids, kind="stable"))

    tile = int(np.clip(_TILE_VALUES // len(sizes), 1, 1024))
    for start in range(0, len(queries), tile):
        block = slice(start, min(start + tile, len(queries)))
        scores = _products(torch.from_dlpack(queries[block]), distinct)  # (n, groups)
        own = own_rows[block]
        alone = np.flatnonzero((own >= 0) & (sizes[group_of_row[own]] == 1))
        scores[alone, group_of_row[own[alone]]] = -torch.inf
        # One group more than items asked for, as the first member of a group may be the query itself.
        values, groups = _top_groups(scores, k if all_distinct else min(k + 1, len(sizes)))
        if all_distinct:
            yield block, members[groups], values
        else:
            yield block, *_expand(groups, values, members, starts, own, id_rank, k)


def _products(queries, gallery):
    """Dot products (n, m); a handful of rows would be multiplied by other code, which rounds differently."""
    import torch

    missing = max(0, _LEAST_ROWS - len(queries))
    padded = torch.nn.functional.pad(queries, (0, 0, 0, missing)) if missing else queries
    return (padded @ gallery.T)[: len(queries)]


def _top_groups(scores, k) -> tuple[np.ndarray, np.ndarray]:
    """The k largest of each row of scores (n, m), largest first, equal ones by position: values, positions."""
    import torch

    reach = min(k + 1, scores.shape[1])
    values, positions = scores.topk(reach, dim=1)
    # topk chooses freely among equals: put positions in order first, then sort by value, stably.
    if reach > k:
        cut_through_a_tie = values[:, k] == values[:, k - 1]
        values, positions = values[:, :k], positions[:, :k]
    positions = positions.sort(dim=1).values
    values, order = scores.gather(1, positions).sort(dim=1, descending=True, stable=True)
    positions = positions.gather(1, order)
    if reach > k and cut_through_a_tie.any():
        torn = cut_through_a_tie.nonzero().squeeze(1)
        full = torch.sort(scores[torn], dim=1, descending=True, stable=True)
        values[torn], positions[torn] = full.values[:, :k], full.indices[:, :k]
    return values.numpy(), positions.numpy()


def _expand(groups, values, members, starts, own, id_rank, k) -> tuple[np.ndarray, np.ndarray]:
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


def _groups_of_equal_vectors(vectors, ids) -> tuple[np.ndarray, np.ndarray]:
    """All rows, equal vectors side by side: members (M,) and starts (G + 1,) such that group g holds
    members[starts[g]:starts[g + 1]] in order of id; groups are ordered by their first id."""
    by_id = np.argsort(ids, kind="stable")
    # The first values tell almost all vectors apart; only rows that agree there are compared whole.
    head = np.ascontiguousarray(vectors[:, :4]).view(f"V{4 * min(4, vectors.shape[1])}").ravel()
    _, bucket, bucket_size = np.unique(head, return_inverse=True, return_counts=True)
    first_of: dict[bytes, int] = {}
    group = np.arange(len(vectors))  # for each position in by_id, that of its group's first member
    suspicious = (bucket_size[bucket] > 1)[by_id]
    for position in np.flatnonzero(suspicious):
        group[position] = first_of.setdefault(vectors[by_id[position]].tobytes(), position)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0, True])
    return by_id[order], starts
