"""Clusters of embeddings: k-means for many clusters, at the speed of matrix products, and for few by a library.

With thousands of clusters of a few items each, as NMI asks for, the start decides the result and costs the most:
greedy k-means++ (several candidates for each centre, the best is taken; Arthur and Vassilvitskii 2007), as in
scikit-learn, whose form of it is made for few clusters. N vectors, d dimensions, C clusters.
"""

import math
import warnings

import numpy as np

from entourage.runtime.randomness import generator

__all__ = ["MOST_ITERATIONS", "few_clusters", "kmeans"]

MOST_ITERATIONS = 20
_ROWS_AT_ONCE = 1024
_CENTRES_AT_ONCE = 32


def kmeans(vectors, n_clusters: int, seed: int = 0, *, progress=None) -> np.ndarray:
    """Cluster of each unit vector (N, d), (N,): Lloyd's k-means from one greedy k-means++ start.

    It ends when no vector changes its cluster, or after 20 iterations; a cluster left by all keeps its centre.
    progress: called as progress(title, done, total) while centres are chosen and after each iteration.
    """
    import torch

    from entourage.runtime.devices import device_named

    report = progress or (lambda title, done, total: None)
    vectors = torch.from_numpy(np.array(vectors, np.float32)).to(device_named("auto"))
    centres = vectors[_start(vectors, n_clusters, generator(seed), report)]
    clusters = None
    for iteration in range(MOST_ITERATIONS):
        before, clusters = clusters, _nearest(vectors, centres)
        if before is not None and torch.equal(before, clusters):
            break
        centres = _means(vectors, clusters, centres)
        report("clustering (iterations)", iteration + 1, MOST_ITERATIONS)
    report("clustering (iterations)", MOST_ITERATIONS, MOST_ITERATIONS)  # also where fewer sufficed
    return clusters.numpy(force=True)


def few_clusters(vectors, n_clusters: int, seed: int = 0) -> np.ndarray:
    """Cluster vectors into a handful of clusters with scikit-learn's k-means, from one k-means++ start.

    Parameters
    ----------
    vectors : array of float, shape (N, d)
        What is clustered, by Euclidean distance.
    n_clusters : int
        How many clusters there may be; as many as vectors at most.
    seed : int
        Decides the start.

    Returns
    -------
    ndarray of int64, shape (N,)
        The cluster of each vector, from 0. A cluster may stay empty where vectors are copies of each other.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    vectors = np.ascontiguousarray(vectors, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct vectors than clusters
        clustering = KMeans(min(n_clusters, len(vectors)), n_init=1, random_state=seed)
        return clustering.fit_predict(vectors).astype(np.int64)


def _start(vectors, n_clusters: int, draw: np.random.Generator, report):
    """Rows (C,) of the first centres: each the best of some candidates, drawn by their squared distance to the nearest.

    Best is the candidate that leaves the least sum of squared distances. Candidates for several centres are drawn,
    and multiplied with all vectors, at once, though for never more than a sixteenth of the centres there are.
    """
    import torch

    candidates = 2 + int(math.log(n_clusters))
    rows = [int(draw.integers(len(vectors)))]
    distances = _squared_distances(vectors, vectors[rows])[0]
    while len(rows) < n_clusters:
        centres_at_once = min(1 + len(rows) // 16, _CENTRES_AT_ONCE, n_clusters - len(rows))
        drawn = _draw_by(distances, centres_at_once * candidates, draw)
        to_drawn = _squared_distances(vectors, vectors[drawn])
        for group, to_group in zip(drawn.split(candidates), to_drawn.split(candidates), strict=True):
            with_each = torch.minimum(to_group, distances)  # (candidates, N)
            best = int(with_each.sum(dim=1).argmin())
            rows.append(int(group[best]))
            distances = with_each[best]
        report("choosing first centres", len(rows), n_clusters)
    return torch.tensor(rows, device=vectors.device)


def _draw_by(weights, count: int, draw: np.random.Generator):
    """Positions (count,) drawn in proportion to weights (N,)."""
    import torch

    cumulative = torch.cumsum(weights.double(), 0)
    drawn = torch.searchsorted(cumulative, torch.from_numpy(draw.random(count)).to(weights.device) * cumulative[-1])
    return drawn.clamp_(max=len(weights) - 1)


def _squared_distances(vectors, centres):
    """(C, N) between unit vectors: 2 - 2 c x."""
    return (centres @ vectors.T).mul_(-2).add_(2).clamp_(min=0)


def _nearest(vectors, centres):
    """The centre nearest to each vector, (N,): the one with the largest c x - |c|² / 2."""
    import torch

    half = centres.square().sum(dim=1) / 2
    parts = [torch.addmm(half, part, centres.T, beta=-1).argmax(dim=1) for part in vectors.split(_ROWS_AT_ONCE)]
    return torch.cat(parts)


def _means(vectors, clusters, centres):
    """The mean of each cluster, (C, d)."""
    import torch

    sizes = torch.bincount(clusters, minlength=len(centres))[:, None]
    sums = torch.zeros_like(centres).index_add_(0, clusters, vectors)
    return torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
