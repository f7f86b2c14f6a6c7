"""How near items are to landmarks, by their similarities: p_ij of t-SNE (see the package's docstring)."""

import numpy as np

from entourage.neighbors import search
from entourage.runtime.threads import blocks, in_threads
from entourage.values import Embeddings

__all__ = ["STRANGERS_NEIGHBORS", "nearness_of", "perplexity_of", "places_in"]

STRANGERS_NEIGHBORS = 30  # landmarks are few among many: 30 of them reach as far as 90 items did
_ROWS_AT_ONCE = 1024  # few enough for their distances to stay in the cache


def nearness_of(vectors: np.ndarray, fixed: np.ndarray, moving: np.ndarray, k: int):
    """p_ij of the moving items to the landmarks, a sparse matrix (M, A), and the nearest landmark of each, (M,)."""
    from scipy.sparse import vstack

    landmarks = Embeddings.from_vectors(vectors[fixed], ids=fixed)
    own = places_in(fixed, moving)
    among, strangers = own[own >= 0], moving[own < 0]
    parts, nearest, count = [], np.empty(len(moving), int), len(fixed)
    if len(among):
        found = search(landmarks, k=min(k, count - 1))
        conditional = _conditional(found, count)
        parts.append((conditional + conditional.T)[among] / (2 * count))
        nearest[own >= 0] = found.rows[among, 0]
    if len(strangers):
        asked = Embeddings.from_vectors(vectors[strangers], ids=strangers)
        found = search(asked, landmarks, min(k, count, STRANGERS_NEIGHBORS))
        parts.append(_conditional(found, count) / count)
        nearest[own < 0] = found.rows[:, 0]
    order = np.argsort(np.argsort(own < 0, kind="stable"))  # where the rows of the two parts belong
    return vstack(parts, format="csr")[order], nearest


def _conditional(found, count: int):
    """p_j|i over the neighbours found, a sparse matrix (M, A) whose rows sum to 1."""
    from scipy.sparse import csr_array

    distances, perplexity = 2 - 2 * found.similarities, perplexity_of(found.k)
    pieces = in_threads(lambda rows: _calibrated(distances[rows], perplexity), blocks(len(found), _ROWS_AT_ONCE))
    weights = np.concatenate(list(pieces))
    starts = np.arange(len(found) + 1) * found.k
    return csr_array((weights.ravel(), found.rows.ravel(), starts), shape=(len(found), count))


def _calibrated(distances: np.ndarray, perplexity: float) -> np.ndarray:
    """exp(-b d) of squared distances (M, k), scaled to sum 1, with b such that a row's entropy is log(perplexity).

    b is found by bisection of its logarithm; where all distances are equal any will do.
    """
    distances = (distances - distances[:, :1]).astype(np.float64)  # the nearest comes first; none underflows
    low, high = np.full((len(distances), 1), -10.0), np.full((len(distances), 1), 25.0)
    for _ in range(20):
        middle = (low + high) / 2
        weights = np.exp(-np.exp(middle) * distances)
        sums = weights.sum(axis=1, keepdims=True)
        entropy = np.log(sums) + np.exp(middle) * (weights * distances).sum(axis=1, keepdims=True) / sums
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return weights / sums


def perplexity_of(k: int) -> float:
    """How many neighbours count, in effect, of the k that are looked at."""
    return max(k / 3, 1.0)


def places_in(fixed: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Where each row stands among the landmarks, -1 if it is none, (M,)."""
    place = np.searchsorted(fixed, rows)
    place[place == len(fixed)] = 0
    return np.where(fixed[place] == rows, place, -1)
