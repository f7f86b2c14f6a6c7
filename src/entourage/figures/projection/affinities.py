"""Affinities of items to landmarks: p_ij of t-SNE (see the docstring of the package)."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors import search
from entourage.runtime.threads import blocks, in_threads
from entourage.values import Embeddings, FloatArray, IntArray, Neighbors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["OTHERS_NEIGHBORS", "affinities_of", "perplexity_of", "places_in"]

OTHERS_NEIGHBORS = 30  # of items that are no landmarks: 30 landmarks, few among many, reach as far as 90 items
_ROWS_AT_ONCE = 1024  # few enough for their distances to stay in the cache


def affinities_of(
    vectors: FloatArray, fixed: IntArray, moving: IntArray, k: int
) -> "tuple[csr_array, NDArray[np.int64]]":
    """Compute the affinities p_ij of moving items to landmarks.

    Parameters
    ----------
    vectors : array of shape (N, d)
    fixed : array of shape (A,)
        The rows of the landmarks, ascending.
    moving : array of shape (M,)
        The rows of the moving items, which may be landmarks too.
    k : int
        How many neighbours count.

    Returns
    -------
    affinities : sparse array of shape (M, A)
    nearest : array of shape (M,)
        The position in `fixed` of the nearest landmark of each.
    """
    from scipy.sparse import vstack

    landmarks = Embeddings.from_vectors(vectors[fixed], ids=fixed)
    own = places_in(fixed, moving)
    among, others = own[own >= 0], moving[own < 0]
    parts, nearest, count = [], np.empty(len(moving), np.int64), len(fixed)
    if len(among):
        found = search(landmarks, k=min(k, count - 1))
        conditional = _conditional(found, count)
        parts.append((conditional + conditional.T)[among] / (2 * count))
        nearest[own >= 0] = found.rows[among, 0]
    if len(others):
        queries = Embeddings.from_vectors(vectors[others], ids=others)
        found = search(queries, landmarks, min(k, count, OTHERS_NEIGHBORS))
        parts.append(_conditional(found, count) / count)
        nearest[own < 0] = found.rows[:, 0]
    order = np.argsort(np.argsort(own < 0, kind="stable"))  # where the rows of the two parts belong
    return vstack(parts, format="csr")[order], nearest


def _conditional(found: Neighbors, count: int) -> "csr_array":
    """p_j|i over the neighbours found, a sparse array (M, A) whose rows sum to 1."""
    from scipy.sparse import csr_array

    distances, perplexity = 2 - 2 * found.similarities, perplexity_of(found.k)
    pieces = in_threads(lambda rows: _calibrated(distances[rows], perplexity), blocks(len(found), _ROWS_AT_ONCE))
    weights = np.concatenate(list(pieces))
    starts = np.arange(len(found) + 1) * found.k
    return csr_array((weights.ravel(), found.rows.ravel(), starts), shape=(len(found), count))


def _calibrated(distances: FloatArray, perplexity: float) -> NDArray[np.float64]:
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
    return np.asarray(weights / sums)


def perplexity_of(k: int) -> float:
    """The perplexity for k neighbours: how many of them count, in effect."""
    return max(k / 3, 1.0)


def places_in(fixed: IntArray, rows: IntArray) -> IntArray:
    """The position of each of rows (M,) among the landmarks (A,), ascending; -1 for a row that is none. Shape (M,)."""
    place = np.searchsorted(fixed, rows)
    place[place == len(fixed)] = 0
    return np.asarray(np.where(fixed[place] == rows, place, -1))
