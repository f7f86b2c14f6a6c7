"""Clusters of embeddings: k-means for many clusters, at the speed of matrix products, and for few by a library.

With thousands of clusters of a few items each, as NMI asks for, the start decides the result and costs the most:
greedy k-means++ (several candidates for each centre, the best is taken; Arthur and Vassilvitskii 2007), as in
scikit-learn, whose form of it is made for few clusters. N vectors, d dimensions, C clusters.
"""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from entourage.runtime.devices import graphics_card
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.runtime.threads import blocks, in_threads

__all__ = ["MOST_ITERATIONS", "few_clusters", "kmeans"]

MOST_ITERATIONS = 20
_ROWS_AT_ONCE = 1024
_CENTRES_AT_ONCE = 32


def kmeans(vectors: Any, n_clusters: int, seed: int = 0, *, progress: Progress | None = None) -> np.ndarray:
    """Lloyd's k-means from one greedy k-means++ start, by numpy; where there is a graphics card, by torch on it.

    It ends when no vector changes its cluster, or after 20 iterations; a cluster left by all keeps its centre.

    Parameters
    ----------
    vectors : array of shape (N, d)
        Unit vectors.
    n_clusters
        C. Where there are fewer distinct vectors, some clusters stay empty.
    seed
        Decides the start.
    progress
        Called as progress(title, done, total) while centres are chosen and after each iteration.

    Returns
    -------
    array of shape (N,)
        The cluster of each vector, from 0 to C - 1.
    """
    report = progress or (lambda title, done, total: None)
    vectors, card = np.ascontiguousarray(vectors, np.float32), graphics_card()
    xp: Any = np
    if card is not None:
        import torch

        xp, vectors = torch, torch.from_numpy(vectors.copy()).to(card)
    centres = vectors[_start(xp, vectors, n_clusters, generator(seed), report)]
    clusters: Any = None  # an array of xp
    for iteration in range(MOST_ITERATIONS):
        before, clusters = clusters, _nearest(xp, vectors, centres)
        if before is not None and bool((before == clusters).all()):
            break
        centres = _means(xp, vectors, clusters, centres)
        report("clustering (iterations)", iteration + 1, MOST_ITERATIONS)
    report("clustering (iterations)", MOST_ITERATIONS, MOST_ITERATIONS)  # also where fewer sufficed
    return clusters if xp is np else clusters.numpy(force=True)


def few_clusters(
    vectors: ArrayLike, n_clusters: int, seed: int = 0, *, starts: int = 1, iterations: int = 300
) -> np.ndarray:
    """Cluster vectors into a handful of clusters with scikit-learn's k-means, from k-means++ starts.

    Parameters
    ----------
    vectors : array of float, shape (N, d)
        What is clustered, by Euclidean distance.
    n_clusters : int
        How many clusters there may be; as many as vectors at most.
    seed : int
        Decides the starts.
    starts : int
        How many times it begins anew; the clustering with the least sum of squared distances is kept.
    iterations : int
        Of each start, at most.

    Returns
    -------
    ndarray of int64, shape (N,)
        The cluster of each vector, from 0. A cluster may stay empty where vectors are copies of each other.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = np.ascontiguousarray(vectors, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct vectors than clusters
        clustering = KMeans(min(n_clusters, len(rows)), n_init=starts, max_iter=iterations, random_state=seed)
        return clustering.fit_predict(rows).astype(np.int64)


# The steps of k-means, for numpy and torch alike: xp is the one or the other, vectors are an array of its kind.


def _start(xp: Any, vectors: Any, n_clusters: int, draw: np.random.Generator, report: Progress) -> list[int]:
    """Rows (C,) of the first centres: each the best of some candidates, drawn by their squared distance to the nearest.

    Best is the candidate that leaves the least sum of squared distances. Candidates for several centres are drawn,
    and multiplied with all vectors, at once, though for never more than a sixteenth of the centres there are.
    """
    candidates = 2 + int(math.log(n_clusters))
    rows = [int(draw.integers(len(vectors)))]
    distances = _squared_distances(xp, vectors, vectors[rows])[0]
    while len(rows) < n_clusters:
        centres_at_once = min(1 + len(rows) // 16, _CENTRES_AT_ONCE, n_clusters - len(rows))
        drawn = _draw_by(xp, distances, centres_at_once * candidates, draw)
        to_drawn = _squared_distances(xp, vectors, vectors[drawn])
        for group in blocks(len(drawn), candidates):
            with_each = xp.minimum(to_drawn[group], distances)  # (candidates, N)
            best = int(with_each.sum(axis=1).argmin())
            rows.append(int(drawn[group][best]))
            distances = with_each[best]
        report("choosing first centres", len(rows), n_clusters)
    return rows


def _draw_by(xp: Any, weights: Any, count: int, draw: np.random.Generator) -> Any:
    """Positions (count,) drawn in proportion to weights (N,)."""
    cumulative = xp.cumsum(weights, axis=0, dtype=xp.float64)
    marks = xp.asarray(draw.random(count), device=weights.device) * cumulative[-1]
    return xp.clip(xp.searchsorted(cumulative, marks), 0, len(weights) - 1)


def _squared_distances(xp: Any, vectors: Any, centres: Any) -> Any:
    """(C, N) between unit vectors: 2 - 2 c x."""
    distances = centres @ vectors.T
    distances *= -2
    distances += 2
    return xp.clip(distances, 0, None, out=distances)


def _nearest(xp: Any, vectors: Any, centres: Any) -> Any:
    """The centre nearest to each vector, (N,): the one with the largest c x - |c|² / 2."""
    half = (centres * centres).sum(axis=1) / 2

    def nearest(block: slice) -> Any:
        nearness = vectors[block] @ centres.T
        nearness -= half
        return nearness.argmax(axis=1)

    parts = blocks(len(vectors), _ROWS_AT_ONCE)
    return xp.concatenate(list(in_threads(nearest, parts) if xp is np else map(nearest, parts)))


def _means(xp: Any, vectors: Any, clusters: Any, centres: Any) -> Any:
    """The mean of each cluster, (C, d)."""
    sizes = xp.bincount(clusters, minlength=len(centres))[:, None]
    if xp is np:
        everyone = np.ones(len(vectors), np.float32), (clusters, np.arange(len(vectors)))
        sums = sparse.csr_array(everyone, shape=(len(centres), len(vectors))) @ vectors
    else:
        sums = xp.zeros_like(centres).index_add_(0, clusters, vectors)
    return xp.where(sizes > 0, sums / xp.asarray(xp.clip(sizes, 1, None), dtype=centres.dtype), centres)
