"""Re-ranking of the candidates of a query by vectors that were refined among them. Nothing is learned.

The second stage of SuperGlobal: "Global Features are All You Need for Image Retrieval and Reranking" (Shao et al.
2023). N items, M candidates of a query, d dimensions.
"""

from collections.abc import Iterator

import numpy as np

from entourage.baselines.method import Method
from entourage.baselines.ranking import best_of_gallery, best_scored, candidates_first, cosine_blocks
from entourage.neighbors import search
from entourage.neighbors.sharing import nearest_others
from entourage.runtime.checks import check_not_negative, check_whole
from entourage.runtime.jit import compiled
from entourage.runtime.sharing import shared
from entourage.values import Embeddings, Neighbors

__all__ = ["SuperGlobal", "candidate_scores", "refined_candidates", "rescored"]

_MOST_PAIRS = 2**25  # similarities kept at once: 256 MiB


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
        found = nearest_others(items, min(self.candidates, len(items) - 1)).rows
        vectors, pairs = items.vectors.astype(np.float64), _all_pairs(items)
        for block, cosines in cosine_blocks(items):
            scores = self._scores(vectors[block], vectors, found[block], pairs)
            yield block, best_scored(items, block, candidates_first(cosines, found[block], scores), k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        found = search(queries, gallery, min(self.candidates, len(gallery))).rows
        own, vectors = queries.vectors.astype(np.float64), gallery.vectors.astype(np.float64)
        pairs = _all_pairs(gallery)
        for block, cosines in cosine_blocks(gallery, queries=queries):
            scores = self._scores(own[block], vectors, found[block], pairs)
            yield block, best_of_gallery(gallery, candidates_first(cosines, found[block], scores), k)

    def _scores(
        self, queries: np.ndarray, vectors: np.ndarray, found: np.ndarray, pairs: np.ndarray | None
    ) -> np.ndarray:
        """Scores (n, M) of the candidates `found` of queries (n, d) among vectors (N, d)."""
        scores, every, k = np.empty(found.shape), np.arange(found.shape[1]), min(self.k, found.shape[1] - 1)
        for row, (query, rows) in enumerate(zip(queries, found, strict=True)):
            candidates = vectors[rows]
            near = _nearest(candidates @ candidates.T, every, k) if pairs is None else _nearest(pairs, rows, k)
            scores[row] = candidate_scores(query, candidates, *near, self.k, self.beta)
        return scores


def candidate_scores(
    query: np.ndarray, candidates: np.ndarray, near: np.ndarray, similarities: np.ndarray, k: int, beta: float
) -> np.ndarray:
    """`rescored` of `refined_candidates`, (M,), without refining those that the query is not expanded by.

    query (d,), candidates (M, d), and of each the nearest others, which of them and their similarities (M, k).
    """
    weights = beta * np.maximum(similarities, 0)
    totals = 1 + weights.sum(axis=1)

    def products(vector: np.ndarray) -> np.ndarray:
        """Of a vector (d,) with the refined candidates, (M,)."""
        own = candidates @ vector
        return np.asarray((own + (weights * own[near]).sum(axis=1)) / totals)

    first = products(query)
    best = np.argsort(-first, kind="stable")[: k + 1]
    refined = candidates[best] + np.einsum("nk,nkd->nd", weights[best], candidates[near[best]])
    return np.asarray((first + products((refined / totals[best, None]).max(axis=0))) / 2)


def _all_pairs(items: Embeddings) -> np.ndarray | None:
    """Similarities (N, N) of all items, from which those of candidates are taken; None if they are too many."""
    if len(items) ** 2 > _MOST_PAIRS:
        return None
    vectors = items.vectors.astype(np.float64)
    return shared("all pairs", (items.vectors,), lambda: vectors @ vectors.T)


@compiled
def _nearest(pairs: np.ndarray, found: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest others of each of M items `found` among N: which of the M and how similar, (M, k); pairs (N, N)."""
    count = len(found)
    rows, values = np.zeros((count, k), np.int64), np.full((count, k), -np.inf)
    for item in range(count):
        for other in range(count):
            value = pairs[found[item], found[other]]
            if k and other != item and value > values[item, k - 1]:
                place = k - 1
                while place > 0 and values[item, place - 1] < value:
                    rows[item, place], values[item, place] = rows[item, place - 1], values[item, place - 1]
                    place -= 1
                rows[item, place], values[item, place] = other, value
    return rows, values
