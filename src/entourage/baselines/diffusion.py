"""Diffusion: similarity spreads from a query along the graph of mutual neighbours.

"Efficient Diffusion on Region Manifolds" (Iscen et al. 2017). N items, n queries at a time.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, dia_array

from entourage.baselines.method import Method
from entourage.baselines.ranking import best_of_gallery, best_scored, cosine_blocks
from entourage.neighbors import search
from entourage.neighbors.sharing import nearest_others
from entourage.runtime.checks import check_not_negative, check_share, check_whole
from entourage.values import Embeddings, Neighbors

__all__ = ["Diffusion", "diffuse", "mutual_graph"]

_QUERIES_AT_ONCE = 64  # few enough for the processor's cache to hold their scores


def mutual_graph(items: Embeddings, k: int, gamma: float) -> csr_array:
    """Build the graph of mutual neighbours, S = D^(-1/2) W D^(-1/2), sparse and of shape (N, N).

    W_ij = max(s_ij, 0)^gamma where i and j are among each other's k nearest, and D holds the row sums of W. An item
    without a mutual neighbour has an empty row.
    """
    rows = nearest_others(items, k).rows
    weights = np.maximum(_similarities(items.vectors, rows), 0) ** gamma
    edges = (rows.ravel(), np.arange(len(items) + 1) * k)
    shape = (len(items), len(items))
    near = csr_array((np.ones(rows.size), *edges), shape)
    weighted = csr_array((weights.ravel(), *edges), shape).multiply(near.T).tocsr()
    degrees = weighted.sum(axis=1)
    roots = np.zeros(len(items))
    np.divide(1, np.sqrt(degrees), out=roots, where=degrees > 0)
    scale = dia_array((roots[None], 0), shape=shape)
    return (scale @ weighted @ scale).tocsr()


def diffuse(graph: csr_array, block: slice, alpha: float, iterations: int) -> np.ndarray:
    """Diffuse from the queries q of a block: f_q = sum_{t <= iterations} (alpha S)^t e_q, of shape (n, N).

    These are the first terms of the solution of (I - alpha S) f = e_q. f is never negative, and 0 where no path of that
    length leads.
    """
    queries = np.arange(block.start, block.stop)
    source = np.zeros((graph.shape[0], len(queries)))
    source[queries, np.arange(len(queries))] = 1
    return _spread(graph, source, alpha, iterations)


def _spread(graph: csr_array, source: np.ndarray, alpha: float, iterations: int) -> np.ndarray:
    """Add up (alpha S)^t y for t <= iterations; y (N, n) is the source, the result (n, N)."""
    scores = source
    for _ in range(iterations):
        scores = alpha * (graph @ scores) + source
    return scores.T


class Diffusion(Method):
    """Rank by what a query diffuses to each item; items it does not reach follow, by cosine.

    The similarity given is f (see `diffuse`), or cosine - 2 where nothing arrives. Nothing is learned.

    Parameters
    ----------
    k : int
        Number of neighbours of each item, of which the mutual ones are linked; all items where there are fewer.
    alpha : float
        How far similarity spreads: each step counts alpha times the one before.
    gamma : float
        How fast the weight of a link falls with the similarity.
    iterations : int
        Number of steps; the terms they leave out are at most alpha^(iterations + 1) of the whole.
    """

    def __init__(self, k: int = 20, alpha: float = 0.9, gamma: float = 3.0, iterations: int = 20) -> None:
        self.k = k
        self.alpha = alpha
        self.gamma = gamma
        self.iterations = iterations

    def _check_settings(self) -> None:
        check_whole("k", self.k, 1)
        check_share("alpha", self.alpha, below_one=True)
        check_not_negative("gamma", self.gamma)
        check_whole("iterations", self.iterations, 1)

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        graph = mutual_graph(items, min(self.k, len(items) - 1), self.gamma)
        for block, cosines in cosine_blocks(items, at_most=_QUERIES_AT_ONCE):
            scores = diffuse(graph, block, self.alpha, self.iterations)
            yield block, best_scored(items, block, np.where(scores > 0, scores, cosines - 2), k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """As the paper has it for a query outside the graph: it starts from its nearest items, s^gamma at each."""
        graph = mutual_graph(gallery, min(self.k, len(gallery) - 1), self.gamma)
        found = search(queries, gallery, min(self.k, len(gallery)))
        weights = np.maximum(found.similarities.astype(np.float64), 0) ** self.gamma
        for block, cosines in cosine_blocks(gallery, at_most=_QUERIES_AT_ONCE, queries=queries):
            source = np.zeros((len(gallery), len(cosines)))
            np.put_along_axis(source, found.rows[block].T, weights[block].T, axis=0)
            scores = _spread(graph, source, self.alpha, self.iterations)
            yield block, best_of_gallery(gallery, np.where(scores > 0, scores, cosines - 2), k)


def _similarities(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Cosines (N, k) of each item with its neighbours in float64: the same from both ends of a link, and for copies."""
    similarities = np.empty(rows.shape)
    for start in range(0, len(rows), 256):
        block = slice(start, start + 256)
        ends = vectors[rows[block]].astype(np.float64)  # (n, k, d)
        similarities[block] = np.einsum("nd,nkd->nk", vectors[block].astype(np.float64), ends)
    return similarities
