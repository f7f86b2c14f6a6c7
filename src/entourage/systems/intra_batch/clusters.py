"""Clusters of items whose classes are not known: k-means, and further algorithms of scikit-learn.

The paper asks the first four for 900 clusters of some 6,000 and 8,000 items, the last two for eps = 0.9 and min_samples
= 5 (Table 7). N items.
"""

import warnings
from collections.abc import Callable

import numpy as np

from entourage.evaluation.clustering import kmeans

__all__ = ["CLUSTERINGS", "NUMBERED", "cluster", "number_of_clusters"]

_EPS, _MIN_SAMPLES = 0.9, 5
_ITEMS_PER_CLUSTER = 8  # of the paper's 900: 6.6 and 9.0


def cluster(vectors: np.ndarray, by: str, n_clusters: int | None = None, *, seed: int = 0) -> np.ndarray:
    """Cluster unit vectors.

    Parameters
    ----------
    vectors : ndarray of float32, shape (N, d)
        Unit vectors.
    by : str
        A name in `CLUSTERINGS`.
    n_clusters : int, optional
        How many, for the algorithms that take a number; default: an eighth of the items.
    seed : int
        Seed of the algorithms that draw at random.

    Returns
    -------
    ndarray of int64, shape (N,)
        The cluster of each item, from 0; what an algorithm calls noise is a cluster by itself.
    """
    n_clusters = number_of_clusters(len(vectors), n_clusters)
    with warnings.catch_warnings():
        # An unconnected graph, or fewer clusters than asked for, is as good a context as any.
        warnings.simplefilter("ignore", UserWarning)
        codes = np.asarray(CLUSTERINGS[by](vectors, n_clusters, seed), np.int64)
    noise = codes < 0
    codes[noise] = codes.max(initial=-1) + 1 + np.arange(noise.sum())
    return codes


def number_of_clusters(count: int, n_clusters: int | None = None) -> int:
    """How many clusters so many items are asked for: at most one each.

    >>> number_of_clusters(80), number_of_clusters(80, 90)
    (10, 80)
    """
    return min(max(2, round(count / _ITEMS_PER_CLUSTER)) if n_clusters is None else n_clusters, count)


def _kmeans(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    return kmeans(vectors, n_clusters, seed)


def _ward(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(n_clusters).fit_predict(vectors)


def _spectral(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import SpectralClustering

    if n_clusters >= len(vectors):  # as many eigenvectors as items, which its solver does not give
        return np.arange(len(vectors))
    neighbors = min(10, len(vectors))
    spectral = SpectralClustering(
        n_clusters, affinity="nearest_neighbors", n_neighbors=neighbors, assign_labels="cluster_qr", random_state=seed
    )
    return spectral.fit_predict(vectors)


def _birch(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import Birch

    return Birch(n_clusters=n_clusters, threshold=0.1).fit_predict(vectors)  # small: many clusters of few items


def _dbscan(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import DBSCAN

    return DBSCAN(eps=_EPS, min_samples=_MIN_SAMPLES).fit_predict(vectors)


def _optics(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import OPTICS

    return OPTICS(max_eps=_EPS, min_samples=min(_MIN_SAMPLES, len(vectors))).fit_predict(vectors)


CLUSTERINGS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "birch": _birch,
    "dbscan": _dbscan,
    "kmeans": _kmeans,
    "optics": _optics,
    "spectral": _spectral,
    "ward": _ward,
}
NUMBERED = ("birch", "kmeans", "spectral", "ward")
"""The algorithms that take a number of clusters; the others find it."""
