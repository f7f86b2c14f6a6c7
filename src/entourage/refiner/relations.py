"""How two items sit in the neighbourhood graph: features of an edge that mean the same for any encoder.

Coordinates tell classes apart that were seen in training; relations tell a good neighbour from a bad one in classes
that were not. N items with k neighbours each in a gallery of M items that has its own neighbour lists; with one set,
the items are the gallery. Everything takes O(N k²) time and O(N k) memory.
"""

from dataclasses import dataclass

import numpy as np

from entourage.runtime.jit import compiled
from entourage.runtime.threads import share_out
from entourage.values import FloatArray, IntArray, Neighbors

__all__ = ["RELATIONS", "Surroundings", "relation_features", "returned"]

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


@dataclass(frozen=True)
class Surroundings:
    """What the features of an edge need to know of a gallery; gathered once, however many queries come."""

    lists: Neighbors
    """(M, k): the gallery's own neighbours."""
    centre: float
    """Mean of all similarities in these lists."""
    spread: float
    """Their standard deviation; similarities are measured in it, from the centre on."""
    first: FloatArray
    """(M,): similarity of each item to its first neighbour, as measured."""
    last: FloatArray
    """(M,): the same to its last neighbour."""
    density: FloatArray
    """(M,): the mean over its neighbours."""
    mean_overlap: FloatArray
    """(M,): mean overlap of each item's neighbourhood with those of its neighbours."""
    popularity: FloatArray
    """(M,): log(1 + in how many lists an item stands, out of k)."""

    @classmethod
    def of(cls, lists: Neighbors, counts: FloatArray | None = None) -> "Surroundings":
        """Gather them from a gallery's own neighbours.

        Parameters
        ----------
        lists : Neighbors
            (M, k), the neighbours of each gallery item in the gallery.
        counts : ndarray of shape (M, k, 6), optional
            What is counted of each of these edges, if it is known already.

        Returns
        -------
        Surroundings
        """
        counts = _counts(lists, lists, np.arange(len(lists))) if counts is None else counts
        centre, spread = lists.similarities.mean(), lists.similarities.std() + 1e-6
        z = (lists.similarities - centre) / spread
        popularity = np.log1p(np.bincount(lists.rows.ravel(), minlength=len(lists)) / lists.k)
        return cls(lists, centre, spread, z[:, 0], z[:, -1], z.mean(axis=1), counts[..., 1].mean(axis=1), popularity)


def relation_features(
    found: Neighbors, gallery: Surroundings | None = None, own_rows: IntArray | None = None
) -> FloatArray:
    """Features of the edges from each item to each of its neighbours.

    Only similarities depend on the encoder; they are measured in standard deviations of the gallery's own.

    Parameters
    ----------
    found : Neighbors
        (N, k), the items' neighbours in the gallery.
    gallery : Surroundings, optional
        The gallery they stand in; by default the items are the gallery.
    own_rows : ndarray of shape (N,), optional
        The row of each item in the gallery, -1 if it is not in it; by default none is. Without a gallery it is not
        used.

    Returns
    -------
    ndarray of shape (N, k, 22)
        float32, the last axis as RELATIONS names it.
    """
    if gallery is None:
        counts = _counts(found, found, np.arange(len(found)))
        gallery = Surroundings.of(found, counts)
    else:
        own_rows = np.full(len(found), _ABSENT) if own_rows is None else own_rows
        counts = _counts(found, gallery.lists, own_rows)
    z = (found.similarities - gallery.centre) / gallery.spread
    rows, k = found.rows, found.k
    overlap, mean_overlap = counts[..., 1], counts[..., 1].mean(axis=1, keepdims=True)
    mutual = counts[..., 0] < k
    columns = (
        z,
        z - z[:, :1],
        z - z[:, -1:],
        z - gallery.first[rows],
        z - gallery.last[rows],
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
        gallery.mean_overlap[rows],
        z.mean(axis=1, keepdims=True),
        gallery.density[rows],
        mutual.mean(axis=1, keepdims=True),
        gallery.popularity[rows],
        np.log(len(gallery.lists) / k),  # in a small gallery neighbourhoods overlap by chance
        np.log(k),
    )
    features = np.empty((*rows.shape, len(columns)), np.float32)
    for number, column in enumerate(columns):
        features[..., number] = column
    return features


def _counts(found: Neighbors, gallery: Neighbors, own_rows: IntArray) -> FloatArray:
    """(N, k, 6) float32, what `_count_edges` counts of each edge."""
    counts = np.empty((*found.rows.shape, 6), np.float32)
    lists = found.rows, found.similarities, gallery.rows, gallery.similarities
    own_rows = np.ascontiguousarray(own_rows, np.int64)
    share_out(lambda *part: _count_edges(*lists, own_rows, counts, *part), len(found))
    return counts


@compiled
def _count_edges(
    rows: IntArray,
    similarities: FloatArray,
    gallery_rows: IntArray,
    gallery_similarities: FloatArray,
    own_rows: IntArray,
    counts: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Of each edge i -> j: the rank of i in j's list, their overlap at three depths and weighted by rank, and how
    many of i's nearest list j.

    Each item belongs to its own neighbourhood, so mutual neighbours share at least each other.
    """
    k = rows.shape[1]
    half, quarter = max(k // 2, 1), max(k // 4, 1)
    voters = min(_VOTERS, k)
    fading = np.exp(-np.arange(2 * k) / (k / 4))
    rank_of = np.full(len(gallery_rows), _ABSENT)  # of each gallery item in i's list; undone after each i
    votes = np.zeros(len(gallery_rows))
    for i in range(start, stop):
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
                weighted += fading[rank + t]
            if reverse_rank < k:  # i itself: in j's list, or where it would stand in it
                whole += 1
                shallow += reverse_rank < half
                shallowest += reverse_rank < quarter
                weighted += fading[reverse_rank]
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


def returned(values: FloatArray, rows: IntArray) -> FloatArray:
    """For each edge i -> j the value of j -> i.

    Parameters
    ----------
    values : ndarray of shape (N, k)
        A value of each edge.
    rows : ndarray of shape (N, k)
        The neighbours of each item, among the same N items.

    Returns
    -------
    ndarray of shape (N, k)
        0 where i is not in j's list.

    Examples
    --------
    >>> returned(np.array([[0.9], [0.5], [0.7]]), np.array([[1], [0], [0]])).tolist()
    [[0.5], [0.9], [0.0]]
    """
    result = np.zeros_like(values)
    values, rows = np.ascontiguousarray(values), np.ascontiguousarray(rows)
    share_out(lambda *part: _return_values(values, rows, result, *part), len(rows))
    return result


@compiled
def _return_values(values: FloatArray, rows: IntArray, result: FloatArray, start: int, stop: int) -> None:
    for i in range(start, stop):
        for r in range(rows.shape[1]):
            j = rows[i, r]
            for t in range(rows.shape[1]):
                if rows[j, t] == i:
                    result[i, r] = values[j, t]
