"""Re-ranking as message passing on the graph of nearest neighbours. Nothing is learned.

"Understanding Image Retrieval Re-Ranking: A Graph Neural Network Perspective" (Zhang et al. 2020). N items, n queries
at a time.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, dia_array, vstack

from entourage.baselines.method import Method
from entourage.baselines.ranking import best_of_gallery, best_scored, blocks_of, cosine_blocks
from entourage.neighbors import search
from entourage.neighbors.reciprocal import neighbor_sets
from entourage.neighbors.sharing import nearest_others
from entourage.runtime.checks import check_not_negative, check_whole
from entourage.values import Embeddings, Neighbors

__all__ = ["GraphNetwork", "propagated_features"]

_FULL = 0.15  # the share of features that are not 0
_MOST_VALUES = 2**25  # of a full matrix: 256 MiB


def propagated_features(items: Embeddings, k1: int, k2: int, alpha: float, layers: int) -> csr_array:
    """Compute the features h (N, N) by which items are compared, sparse and of length 1.

    Features begin as the adjacency of the graph, h_ij = 1 for j among the k1 nearest of i, itself included. Each layer
    makes them symmetric, h <- h + h^T, and passes messages along the edges to the k2 nearest, itself included:
    h_i <- normalise(h_i + sum_j max(s_ij, 0)^alpha h_j).
    """
    *_, (_, features) = _layers(items, _nearest(items, k1, k2), k1, k2, alpha, layers)
    return features


def _nearest(items: Embeddings, k1: int, k2: int) -> Neighbors:
    return nearest_others(items, min(max(k1, k2) - 1, len(items) - 1) or 1)


def _layers(
    items: Embeddings, found: Neighbors, k1: int, k2: int, alpha: float, layers: int
) -> Iterator[tuple[csr_array, csr_array]]:
    """Yield the features (N, N) of each layer, made symmetric, and after messages were passed."""
    most = len(items) - 1
    messages = _messages(found, min(k2 - 1, most), alpha, len(items))
    features = neighbor_sets(found.rows[:, : min(k1 - 1, most)])
    for _ in range(layers):
        symmetric = (features + features.T).tocsr()
        features = _normalised((symmetric + messages @ symmetric).tocsr())
        yield symmetric, features


def _messages(found: Neighbors, k: int, alpha: float, count: int) -> csr_array:
    """The weights max(s, 0)^alpha of the k nearest, sparse and of shape (N, count)."""
    near = found.rows[:, :k]
    weights = np.maximum(found.similarities[:, :k].astype(np.float64), 0) ** alpha
    return csr_array((weights.ravel(), near.ravel(), np.arange(len(near) + 1) * k), (len(near), count))


def query_features(
    queries: Embeddings, gallery: Embeddings, k1: int, k2: int, alpha: float, layers: int
) -> tuple[csr_array, csr_array]:
    """Compute the features of queries (N, M), each alone, and of a gallery (M, M) that stands without them.

    A query's first features are its nearest items, and those whose k1 nearest it would be among. What a later layer
    would add by symmetry, which is what the gallery holds of the query, is taken to be what the query holds of it.
    """
    inside, found = _nearest(gallery, k1, k2), search(queries, gallery, min(max(k1, k2) - 1, len(gallery)) or 1)
    messages = _messages(found, min(k2 - 1, len(gallery)), alpha, len(gallery))
    own = _first_features(queries, gallery, inside, found, k1)
    passed = list(_layers(gallery, inside, k1, k2, alpha, layers))
    for layer, (symmetric, _) in enumerate(passed):
        own = _normalised(((own if layer == 0 else 2 * own) + messages @ symmetric).tocsr())
    return own, passed[-1][1]


def _first_features(
    queries: Embeddings, gallery: Embeddings, inside: Neighbors, found: Neighbors, k1: int
) -> csr_array:
    """The nearest items of each query, and the items that it is near to, (N, M)."""
    if k1 == 1:  # each has its own company alone
        return csr_array((len(queries), len(gallery)))
    reach = np.full(len(gallery), -np.inf) if k1 - 1 > inside.k else inside.similarities[:, k1 - 2]
    parts = []
    for block, cosines in cosine_blocks(gallery, queries=queries):
        features = (cosines.astype(np.float32) >= reach).astype(np.float64)
        rows = found.rows[block, : k1 - 1]
        np.put_along_axis(features, rows, np.take_along_axis(features, rows, axis=1) + 1, axis=1)
        parts.append(csr_array(features))
    return vstack(parts, format="csr")


def _products(
    own: csr_array, features: csr_array, items: Embeddings, queries: Embeddings | None = None
) -> Iterator[np.ndarray]:
    """Products (n, N) of the queries' features with those of all items, in the blocks of `cosine_blocks`.

    Many layers, or few items, leave little that is 0: then full matrices are multiplied sooner than sparse ones.
    """
    count = features.shape[0]
    full = count**2 <= _MOST_VALUES and features.nnz > _FULL * count**2
    by_feature = features.toarray().T if full else features.T.tocsr()
    for block in blocks_of(items, queries=queries):
        part = own[block]
        yield part.toarray() @ by_feature if full else (part @ by_feature).toarray()


class GraphNetwork(Method):
    """Rank by the cosine of features that were passed along the graph of nearest neighbours; the others follow.

    See `propagated_features`; both normalisation and symmetry in every layer are as in the authors' code. The
    similarity given is that of the features, or cosine - 2 where they share nothing. Nothing is learned.

    Parameters
    ----------
    k1 : int
        Number of nearest items, itself included, that make an item's first features; all where there are fewer.
    k2 : int
        Number of nearest items, itself included, that pass messages to it.
    alpha : float
        How fast the weight of a message falls with the similarity.
    layers : int
        How often messages are passed.
    """

    def __init__(self, k1: int = 26, k2: int = 7, alpha: float = 2.0, layers: int = 2) -> None:
        self.k1 = k1
        self.k2 = k2
        self.alpha = alpha
        self.layers = layers

    def _check_settings(self) -> None:
        check_whole("k1", self.k1, 1)
        check_whole("k2", self.k2, 1)
        check_not_negative("alpha", self.alpha)
        check_whole("layers", self.layers, 1)

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        features = propagated_features(items, self.k1, self.k2, self.alpha, self.layers)
        for (block, cosines), scores in zip(cosine_blocks(items), _products(features, features, items), strict=True):
            yield block, best_scored(items, block, np.where(scores > 0, scores, cosines - 2), k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        own, features = query_features(queries, gallery, self.k1, self.k2, self.alpha, self.layers)
        blocks = cosine_blocks(gallery, queries=queries)
        for (block, cosines), scores in zip(blocks, _products(own, features, gallery, queries), strict=True):
            yield block, best_of_gallery(gallery, np.where(scores > 0, scores, cosines - 2), k)


def _normalised(features: csr_array) -> csr_array:
    lengths = np.sqrt(features.multiply(features).sum(axis=1))
    scales = 1 / np.maximum(lengths, 1e-30)  # a query may have no features
    return (dia_array((scales[None], 0), shape=(len(scales),) * 2) @ features).tocsr()
