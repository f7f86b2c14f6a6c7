"""How two items sit in the neighbourhood graph: features of an edge that mean the same for any encoder.

Coordinates tell classes apart that were seen in training; relations tell a good neighbour from a bad one in classes
that were not. N items with k neighbours each in a gallery of M items that has its own neighbour lists; with one set,
the items are the gallery. Everything takes O(N k²) time and O(N k) memory.
"""

import numba
import numpy as np

from entourage.values import Neighbors

__all__ = ["RELATIONS", "relation_features"]

RELATIONS = (
    "similarity",
    "similarity to the item's first",
    "similarity to the item's last",
    "similarity to the neighbour's first",
    "similarity to the neighbour's last",
    "rank",
    "rank from the neighbour",
    "mutual",
    "overlap of all k",
    "overlap of k / 2",
    "overlap of k / 4",
    "overlap weighted by rank",
    "votes of the nearest",
    "overlap above the item's mean",
    "mean overlap of the item",
    "mean overlap of the neighbour",
    "density of the item",
    "density of the neighbour",
    "mutual share of the item",
    "popularity of the neighbour",
    "size of the gallery",
    "length of the lists",
)
_VOTERS = 8
# Similarities of a pair computed from both sides may differ by rounding; they are the same pair.
_ROUNDING = 1e-6
_ABSENT = -1


def relation_features(found: Neighbors, gallery: Neighbors | None = None, own_rows=None) -> np.ndarray:
    """Features (N, k, 22) float32 of the edges from each item to each of its neighbours, named by RELATIONS.

    found (N, k): the items' neighbours in the gallery; gallery (M, k): the gallery's own neighbours, by default
    `found` itself, for one set. own_rows (N,): where an item stands in the gallery, -1 if it does not. Only
    similarities depend on the encoder; they are measured in standard deviations of the gallery's own.
    """
    one_set = gallery is None
    gallery = found if one_set else gallery
    own_rows = np.arange(len(found)) if one_set else own_rows
    centre, spread = gallery.similarities.mean(), gallery.similarities.std() + 1e-6
    z, of_gallery = (found.similarities - centre) / spread, (gallery.similarities - centre) / spread
    counts = _counts(found, gallery, own_rows)
    counts_of_gallery = counts if one_set else _counts(gallery, gallery, np.arange(len(gallery)))
    rows, k = found.rows, found.k
    overlap, mean_overlap = counts[..., 1], counts[..., 1].mean(axis=1, keepdims=True)
    mutual = counts[..., 0] < k
    popularity = np.log1p(np.bincount(gallery.rows.ravel(), minlength=len(gallery)) / k)
    columns = (
        z,
        z - z[:, :1],
        z - z[:, -1:],
        z - of_gallery[rows, 0],
        z - of_gallery[rows, -1],
        np.log1p(np.arange(k))[None],
        np.log1p(counts[..., 0]),
        mutual,
        overlap,
        counts[..., 2],
        counts[..., 3],
        counts[..., 4],
        counts[..., 5],
        overlap - mean_overlap,
        mean_overlap,
        counts_of_gallery[..., 1].mean(axis=1)[rows],
        z.mean(axis=1, keepdims=True),
        of_gallery.mean(axis=1)[rows],
        mutual.mean(axis=1, keepdims=True),
        popularity[rows],
        np.log(len(gallery) / k),  # in a small gallery neighbourhoods overlap by chance
        np.log(k),
    )
    features = np.empty((*rows.shape, len(columns)), np.float32)
    for number, column in enumerate(columns):
        features[..., number] = column
    return features


def _counts(found: Neighbors, gallery: Neighbors, own_rows) -> np.ndarray:
    counts = np.empty((*found.rows.shape, 6), np.float32)
    own_rows = np.ascontiguousarray(own_rows, np.int64)
    _count_edges(found.rows, found.similarities, gallery.rows, gallery.similarities, own_rows, counts)
    return counts


@numba.njit(parallel=True, cache=True)
def _count_edges(rows, similarities, gallery_rows, gallery_similarities, own_rows, counts):
    """Of each edge i -> j: the rank of i in j's list, their overlap at three depths and weighted by rank, and how
    many of i's nearest list j.

    Each item belongs to its own neighbourhood, so mutual neighbours share at least each other.
    """
    n, k = rows.shape
    half, quarter = max(k // 2, 1), max(k // 4, 1)
    voters = min(_VOTERS, k)
    parts = min(n, 64)
    for part in numba.prange(parts):
        rank_of = np.full(len(gallery_rows), _ABSENT)  # of each gallery item in i's list; undone after each i
        votes = np.zeros(len(gallery_rows))
        for i in range(part * n // parts, (part + 1) * n // parts):
            for r in range(k):
                rank_of[rows[i, r]] = r
            for r in range(voters):
                for t in range(k):
                    votes[gallery_rows[rows[i, r], t]] += 1
            for r in range(k):
                j = rows[i, r]
                reverse_rank = 0
                while reverse_rank < k and gallery_similarities[j, reverse_rank] > similarities[i, r] + _ROUNDING:
                    reverse_rank += 1
                whole, shallow, shallowest, weighted = 0, 0, 0, 0.0
                for t in range(k):
                    rank = rank_of[gallery_rows[j, t]]
                    if rank == _ABSENT or gallery_rows[j, t] == own_rows[i]:
                        continue
                    whole += 1
                    shallow += t < half and rank < half
                    shallowest += t < quarter and rank < quarter
                    weighted += np.exp(-(rank + t) / (k / 4))
                if reverse_rank < k:  # i itself: in j's list, or where it would stand in it
                    whole += 1
                    shallow += reverse_rank < half
                    shallowest += reverse_rank < quarter
                    weighted += np.exp(-reverse_rank / (k / 4))
                counts[i, r, 0] = reverse_rank
                counts[i, r, 1] = whole / k
                counts[i, r, 2] = shallow / half
                counts[i, r, 3] = shallowest / quarter
                counts[i, r, 4] = weighted / (k / 16)
                counts[i, r, 5] = votes[j] / voters
            for r in range(k):
                rank_of[rows[i, r]] = _ABSENT
            for r in range(voters):
                for t in range(k):
                    votes[gallery_rows[rows[i, r], t]] = 0
