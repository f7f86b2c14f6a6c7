"""How two items sit in the neighbourhood graph: features of an edge that mean the same for any encoder.

Coordinates tell classes apart that were seen in training; relations tell a good neighbour from a bad one in classes
that were not. N items with k neighbours each in a gallery of M items that has its own neighbour lists; with one set,
the items are the gallery. Everything takes O(N k²) time and O(N k) memory.
"""

from dataclasses import dataclass

import numpy as np

from entourage.runtime.jit import compiled
from entourage.runtime.threads import share_out
from entourage.values import BoolArray, FloatArray, IntArray, Neighbors

__all__ = [
    "PARTS",
    "RELATIONS",
    "SAME_PAIR",
    "VOTERS",
    "Surroundings",
    "mean_overlaps",
    "relation_features",
    "returned",
    "usual",
]

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
VOTERS = 8
# Similarities of a pair computed from both sides may differ by rounding; they are the same pair.
SAME_PAIR = 1e-6
_ABSENT = -1
# What depends on the whole gallery is rounded, so that it stays put while a few items come and go: a scorer hardly
# notices a hundredth of a standard deviation, but a gallery that changes would have to be refined anew as a whole.
PARTS = 64


@dataclass(frozen=True)
class Surroundings:
    """What the features of an edge need to know of a gallery; gathered once, however many queries come."""

    lists: Neighbors
    """(M, k): the gallery's own neighbours."""
    centre: float
    """Mean of all similarities in these lists, rounded."""
    spread: float
    """Their standard deviation, rounded; similarities are measured in it, from the centre on."""
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
    count: int | None = None
    """How many items the gallery has, where the lists are those of a part of it; None: as many as lists."""

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
        return cls._with(lists, counts[..., 1].mean(axis=1))

    @classmethod
    def _with(cls, lists: Neighbors, mean_overlap: FloatArray) -> "Surroundings":
        """Gather all that takes little time."""
        centre, spread = usual(lists.similarities.mean(dtype=np.float64), lists.similarities.std(dtype=np.float64))
        z = (lists.similarities - centre) / spread
        popularity = np.log1p(np.bincount(lists.rows.ravel(), minlength=len(lists)) / lists.k)
        return cls(lists, centre, spread, z[:, 0], z[:, -1], z.mean(axis=1), mean_overlap, popularity)

    @property
    def size(self) -> float:
        """How many items there are beside the length of a list; in a small gallery lists overlap by chance."""
        return _rounded(np.log((self.count or len(self.lists)) / self.lists.k))

    def after(self, lists: Neighbors, came_from: IntArray) -> "tuple[Surroundings, BoolArray]":
        """Gather them again where items have come and gone.

        Parameters
        ----------
        lists : Neighbors
            (M', k), the neighbours of each item of the gallery as it is now.
        came_from : ndarray of shape (M',)
            The row that each item had here, or -1 if it is new.

        Returns
        -------
        surroundings : Surroundings
            What `Surroundings.of(lists)` gives.
        reached : ndarray of shape (M',)
            Whose edges may have other features than here.
        """
        rows, new = lists.rows, came_from < 0
        now = np.full(len(self.lists), _ABSENT)
        now[came_from[~new]] = np.flatnonzero(~new)
        changed = new | (now[self.lists.rows[came_from]] != rows).any(axis=1)
        changed |= (self.lists.similarities[came_from] != lists.similarities).any(axis=1)
        around = changed | changed[rows].any(axis=1)  # whose overlaps with their neighbours are others
        some = np.flatnonzero(around)
        mean_overlap = self.mean_overlap[came_from]
        counts = _counts(Neighbors(rows[some], lists.similarities[some]), lists, some)
        mean_overlap[some] = counts[..., 1].mean(axis=1)
        surroundings = Surroundings._with(lists, mean_overlap)
        if any(getattr(surroundings, each) != getattr(self, each) for each in ("centre", "spread", "size")):
            return surroundings, np.ones(len(lists), bool)
        others = around | (surroundings.popularity != self.popularity[came_from])
        return surroundings, around | others[rows].any(axis=1)


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
        gallery.size,
        np.log(k),
    )
    features = np.empty((*rows.shape, len(columns)), np.float32)
    for number, column in enumerate(columns):
        features[..., number] = column
    return features


def usual(mean: float, deviation: float) -> tuple[float, float]:
    """Mean, to a 64th of the deviation, and standard deviation, to one of 64 values between a number and its double."""
    spread = 2 ** _rounded(np.log2(deviation + 1e-6))
    return spread * _rounded(mean / spread), spread


def mean_overlaps(found: Neighbors, gallery: Neighbors, own_rows: IntArray) -> FloatArray:
    """The mean overlap (N,) of each item's neighbourhood with those of its neighbours; see `relation_features`."""
    overlaps: FloatArray = _counts(found, gallery, own_rows)[..., 1].mean(axis=1)
    return overlaps


def _rounded(value: float) -> float:
    return round(PARTS * float(value)) / PARTS


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
    voters = min(VOTERS, k)
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
            while reverse_rank < k and gallery_similarities[j, reverse_rank] > similarities[i, r] + SAME_PAIR:
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


def returned(values: FloatArray, rows: IntArray, nodes: IntArray | None = None) -> FloatArray:
    """For each edge i -> j the value of j -> i.

    Parameters
    ----------
    values : ndarray of shape (N, k)
        A value of each edge.
    rows : ndarray of shape (N, k)
        The neighbours of each item, among the same N items.
    nodes : ndarray of shape (n,), optional
        The items i; all of them by default.

    Returns
    -------
    ndarray of shape (n, k)
        0 where i is not in j's list.

    Examples
    --------
    >>> returned(np.array([[0.9], [0.5], [0.7]]), np.array([[1], [0], [0]])).tolist()
    [[0.5], [0.9], [0.0]]
    """
    nodes = np.arange(len(rows)) if nodes is None else np.ascontiguousarray(nodes, np.int64)
    result = np.zeros((len(nodes), rows.shape[1]), values.dtype)
    values, rows = np.ascontiguousarray(values), np.ascontiguousarray(rows)
    share_out(lambda *part: _return_values(values, rows, nodes, result, *part), len(nodes))
    return result


@compiled
def _return_values(
    values: FloatArray, rows: IntArray, nodes: IntArray, result: FloatArray, start: int, stop: int
) -> None:
    for n in range(start, stop):
        i = nodes[n]
        for r in range(rows.shape[1]):
            j = rows[i, r]
            for t in range(rows.shape[1]):
                if rows[j, t] == i:
                    result[n, r] = values[j, t]
