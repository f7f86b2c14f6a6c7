"""Re-ranking of the candidates of a query by vectors that were refined among them. Nothing is learned.

The second stage of SuperGlobal: "Global Features are All You Need for Image Retrieval and Reranking" (Shao et al.
2023). N items, M candidates of a query, d dimensions.
"""

from collections.abc import Iterator

import numpy as np

from entourage.baselines.method import Method, best_of_gallery, best_scored, candidates_first, cosine_blocks
from entourage.neighbors import search
from entourage.runtime.checks import check_not_negative, check_whole
from entourage.values import Embeddings, Neighbors

__all__ = ["SuperGlobal", "refined_candidates", "rescored"]


def refined_candidates(candidates: np.ndarray, k: int, beta: float) -> np.ndarray:
    """Move each candidate (M, d) towards its k nearest others j among them:

        g_i' = (g_i + beta sum_j s_ij g_j) / (1 + beta sum_j s_ij)

    with s_ij = g_i . g_j, negative ones counted as 0.
    """
    similarities = candidates @ candidates.T
    np.fill_diagonal(similarities, -np.inf)
    weights = np.zeros_like(similarities)
    k = min(k, len(candidates) - 1)
    if k > 0:
        near = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
        np.put_along_axis(weights, near, beta * np.maximum(np.take_along_axis(similarities, near, 1), 0), axis=1)
    return (candidates + weights @ candidates) / (1 + weights.sum(axis=1, keepdims=True))


def rescored(query: np.ndarray, refined: np.ndarray, k: int) -> np.ndarray:
    """Score refined candidates g' (M, d) for a query (d,): the mean of q . g' and q_e . g', of shape (M,).

    q_e is the expanded query: in every dimension the largest value among the k + 1 candidates that score highest by
    q . g'.
    """
    first = refined @ query
    best = np.argsort(-first, kind="stable")[: k + 1]
    expanded = refined[best].max(axis=0)
    return (first + refined @ expanded) / 2


class SuperGlobal(Method):
    """Refine the first candidates of each query among themselves, expand the query by them and score them again.

    See `refined_candidates` and `rescored`. The other items follow in their first order. Nothing is learned.

    Parameters
    ----------
    candidates : int
        M, how many of a query's nearest items are scored again; all where there are fewer.
    k : int
        By how many candidates each one is refined, and by how many and one more the query is expanded.
    beta : float
        Weight of the others.
    """

    def __init__(self, candidates: int = 400, k: int = 9, beta: float = 0.15) -> None:
        self.candidates = candidates
        self.k = k
        self.beta = beta

    def _check_settings(self) -> None:
        check_whole("candidates", self.candidates, 1)
        check_whole("k", self.k, 1)
        check_not_negative("beta", self.beta)

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        found = search(items, k=min(self.candidates, len(items) - 1)).rows
        vectors = items.vectors.astype(np.float64)
        for block, cosines in cosine_blocks(items):
            scores = self._scores(vectors[block], vectors, found[block])
            yield block, best_scored(items, block, candidates_first(cosines, found[block], scores), k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        found = search(queries, gallery, min(self.candidates, len(gallery))).rows
        own, vectors = queries.vectors.astype(np.float64), gallery.vectors.astype(np.float64)
        for block, cosines in cosine_blocks(gallery, queries=queries):
            scores = self._scores(own[block], vectors, found[block])
            yield block, best_of_gallery(gallery, candidates_first(cosines, found[block], scores), k)

    def _scores(self, queries: np.ndarray, vectors: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Scores (n, M) of the candidates `found` of queries (n, d) among vectors (N, d)."""
        pairs = zip(queries, found, strict=True)
        return np.stack(
            [rescored(q, refined_candidates(vectors[rows], self.k, self.beta), self.k) for q, rows in pairs]
        )
