"""Re-ranking as message passing on the graph of nearest neighbours. Nothing is learned.

"Understanding Image Retrieval Re-Ranking: A Graph Neural Network Perspective" (Zhang et al. 2020). N items, n queries
at a time.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, dia_array

from entourage.baselines.method import Method, best_scored, cosine_blocks
from entourage.neighbors import search
from entourage.neighbors.reciprocal import neighbor_sets
from entourage.runtime.checks import check_not_negative, check_whole
from entourage.values import Embeddings, Neighbors

__all__ = ["GraphNetwork", "propagated_features"]


def propagated_features(items: Embeddings, k1: int, k2: int, alpha: float, layers: int) -> csr_array:
    """Compute the features h (N, N) by which items are compared, sparse and of length 1.

    Features begin as the adjacency of the graph, h_ij = 1 for j among the k1 nearest of i, itself included. Each layer
    makes them symmetric, h <- h + h^T, and passes messages along the edges to the k2 nearest, itself included:
    h_i <- normalise(h_i + sum_j max(s_ij, 0)^alpha h_j).
    """
    most = len(items) - 1
    found = search(items, k=min(max(k1, k2) - 1, most) or 1)
    near = found.rows[:, : min(k2 - 1, most)]
    weights = np.maximum(found.similarities[:, : near.shape[1]].astype(np.float64), 0) ** alpha
    messages = csr_array((weights.ravel(), near.ravel(), np.arange(len(near) + 1) * near.shape[1]), (len(near),) * 2)
    features = neighbor_sets(found.rows[:, : min(k1 - 1, most)])
    for _ in range(layers):
        features = features + features.T
        features = _normalised((features + messages @ features).tocsr())
    return features


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
        by_feature = features.T.tocsr()
        for block, cosines in cosine_blocks(items):
            scores = (features[block] @ by_feature).toarray()
            yield block, best_scored(items, block, np.where(scores > 0, scores, cosines - 2), k)


def _normalised(features: csr_array) -> csr_array:
    lengths = np.sqrt(features.multiply(features).sum(axis=1))
    return (dia_array((1 / lengths[None], 0), shape=features.shape) @ features).tocsr()
