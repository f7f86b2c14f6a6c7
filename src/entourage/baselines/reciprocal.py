"""Re-ranking by k-reciprocal encodings: two items are near if they are mutual neighbours of the same items.

"Re-ranking Person Re-identification with k-reciprocal Encoding" (Zhong et al. 2017). An encoding has some hundred
values that are not 0, so all of them are one sparse matrix. N items, n queries at a time.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, vstack

from entourage.baselines.method import Method
from entourage.baselines.ranking import best_of_gallery, best_scored, cosine_blocks
from entourage.neighbors import search
from entourage.neighbors.reciprocal import expanded_sets, mutual_sets, neighbor_sets, reciprocal_sets
from entourage.neighbors.sharing import nearest_others
from entourage.runtime.checks import check_share, check_whole
from entourage.runtime.jit import compiled
from entourage.runtime.sharing import shared
from entourage.values import BoolArray, Embeddings, IntArray, Neighbors

__all__ = ["KReciprocal", "jaccard_distances", "query_encodings", "reciprocal_encodings"]


def reciprocal_encodings(items: Embeddings, k1: int, k2: int) -> csr_array:
    """Compute the encodings V (N, N), sparse; each row sums to 1.

    V_ij ~ exp(-d_ij) for j in R*(i), then averaged over i and its k2 - 1 nearest. R*(i) is the expanded reciprocal set
    of i; see neighbors/reciprocal.py.
    """
    nearest = nearest_others(items, min(max(k1, k2 - 1), len(items) - 1)).rows
    return _averaged(_own_encodings(items, nearest, k1), nearest, k2)


def _own_encodings(items: Embeddings, nearest: IntArray, k1: int) -> csr_array:
    """Encodings V (N, N) before they are averaged."""
    return shared(("encodings", k1), (items.vectors, items.ids), lambda: _encoded(items, nearest, k1))


def _encoded(items: Embeddings, nearest: IntArray, k1: int) -> csr_array:
    expanded = vstack([members for _, members in reciprocal_sets(nearest, k1)], format="csr")
    weights = np.concatenate([_near(cosines, expanded[block]) for block, cosines in cosine_blocks(items)])
    totals = np.add.reduceat(weights, expanded.indptr[:-1])
    weights /= np.repeat(totals, np.diff(expanded.indptr))
    return csr_array((weights, expanded.indices, expanded.indptr), expanded.shape)


def _averaged(encodings: csr_array, nearest: IntArray, k2: int) -> csr_array:
    group = neighbor_sets(nearest[:, : k2 - 1])
    return (group @ encodings / group.indptr[1]).tocsr()  # every group has as many members as the first


def query_encodings(queries: Embeddings, gallery: Embeddings, k1: int, k2: int) -> tuple[csr_array, csr_array]:
    """Compute the encodings of queries (N, M), each alone, and of a gallery (M, M) that stands without them.

    A query and an item are mutual neighbours if the query would be among the item's k1 nearest. Encodings are over the
    gallery: nobody else can share the query itself. One without a mutual neighbour has its k2 - 1 nearest alone, or
    nothing.
    """
    most = len(gallery)
    inside = nearest_others(gallery, min(max(k1, k2 - 1), most - 1))
    found = search(queries, gallery, min(max(k1, k2 - 1), most))
    encodings = _own_encodings(gallery, inside.rows, k1)
    reach = np.full(most, -np.inf) if k1 > inside.k else inside.similarities[:, k1 - 1]
    mutual = found.similarities[:, :k1] >= reach[found.rows[:, :k1]]
    half = mutual_sets(inside.rows[:, : round(k1 / 2)])
    members = expanded_sets(_sets(found.rows[:, :k1], mutual, most), half, half.sum(axis=1))
    blocks = cosine_blocks(gallery, queries=queries)
    weights = np.concatenate([_near(cosines, members[block]) for block, cosines in blocks])
    own = _summing_to_one(csr_array((weights, members.indices, members.indptr), members.shape))
    near = _sets(found.rows[:, : k2 - 1], np.ones_like(found.rows[:, : k2 - 1], bool), most)
    return _summing_to_one((own + near @ encodings).tocsr()), _averaged(encodings, inside.rows, k2)


def _sets(rows: IntArray, kept: BoolArray, count: int) -> csr_array:
    """The kept ones of rows (N, k) as sets (N, count)."""
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return csr_array((np.ones(int(starts[-1]), np.int32), rows[kept], starts), (len(rows), count))


def _summing_to_one(encodings: csr_array) -> csr_array:
    totals = np.maximum(encodings.sum(axis=1), 1e-30)  # an empty one stays empty
    scaled = encodings.data / np.repeat(totals, np.diff(encodings.indptr))
    return csr_array((scaled, encodings.indices, encodings.indptr), encodings.shape)


def jaccard_distances(encodings: csr_array, by_item: csr_array, block: slice) -> np.ndarray:
    """Compute the Jaccard distances of the block's queries q to all items p, of shape (n, N).

    They are 1 - sum_l min(V_ql, V_pl) / sum_l max(V_ql, V_pl). `by_item` is the transpose of the encodings, as rows. As
    encodings sum to 1, the denominator is 2 - the numerator.
    """
    queries = encodings[block]
    overlap = np.zeros(queries.shape)
    add_overlap(overlap, *(part for each in (queries, by_item) for part in (each.indptr, each.indices, each.data)))
    return 1 - overlap / (2 - overlap)


@compiled
def add_overlap(
    overlap: np.ndarray,
    starts: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    item_starts: np.ndarray,
    owners: np.ndarray,
    parts: np.ndarray,
) -> None:
    """Add sum_l min(V_ql, V_pl) to overlap (n, N), of n sparse encodings and all N by item."""
    for query in range(len(starts) - 1):
        for own in range(starts[query], starts[query + 1]):
            for other in range(item_starts[indices[own]], item_starts[indices[own] + 1]):
                overlap[query, owners[other]] += min(values[own], parts[other])


class KReciprocal(Method):
    """Rank by (1 - weight) * Jaccard distance of the encodings + weight * d; the similarity returned is 1 minus that.

    d_ij = (2 - 2 s_ij) / max_l (2 - 2 s_il), as in the authors' code: squared distances, scaled row by row to at
    most 1. A set is added when at least 2/3 of it lies inside, as in the paper (the authors' code asks for more). Where
    there are fewer items than k1 or k2, all of them are used. Nothing is learned.

    Parameters
    ----------
    k1 : int
        Number of neighbours among which mutual ones are found.
    k2 : int
        Number of nearest items, itself included, whose encodings are averaged; 1 leaves each as it is.
    weight : float
        Weight of the original distance.
    """

    def __init__(self, k1: int = 20, k2: int = 6, weight: float = 0.3) -> None:
        self.k1 = k1
        self.k2 = k2
        self.weight = weight

    def _check_settings(self) -> None:
        check_whole("k1", self.k1, 1)
        check_whole("k2", self.k2, 1)
        check_share("weight", self.weight)

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        encodings = reciprocal_encodings(items, self.k1, self.k2)
        by_item = encodings.T.tocsr()
        for block, cosines in cosine_blocks(items):
            jaccard = jaccard_distances(encodings, by_item, block)
            distances = (1 - self.weight) * jaccard + self.weight * _distances(cosines)
            yield block, best_scored(items, block, 1 - distances, k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        own, encodings = query_encodings(queries, gallery, self.k1, self.k2)
        by_item = encodings.T.tocsr()
        for block, cosines in cosine_blocks(gallery, queries=queries):
            jaccard = jaccard_distances(own, by_item, block)
            distances = (1 - self.weight) * jaccard + self.weight * _distances(cosines)
            yield block, best_of_gallery(gallery, 1 - distances, k)


def _distances(cosines: np.ndarray) -> np.ndarray:
    """Squared distances of unit vectors divided by the largest of each row, (n, N)."""
    distances = np.maximum(2 - 2 * cosines, 0)
    return distances / np.maximum(distances.max(axis=1, keepdims=True), 1e-6)  # the bound: where all are copies


def _near(cosines: np.ndarray, members: csr_array) -> np.ndarray:
    """exp(-d) of the members (n, N) of each query of a block, in the order of members.data."""
    queries = np.repeat(np.arange(len(cosines)), np.diff(members.indptr))
    return np.exp(-_distances(cosines)[queries, members.indices])
