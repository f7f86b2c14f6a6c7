"""Clusters of embeddings."""

import numpy as np

__all__ = ["kmeans"]


def kmeans(vectors, n_clusters: int, seed: int = 0) -> np.ndarray:
    """Cluster of each vector, (N,): Lloyd's k-means, one k-means++ start, at most 100 iterations."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(n_clusters, init="k-means++", n_init=1, max_iter=100, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct vectors than clusters is no error here
        return model.fit_predict(np.asarray(vectors, np.float32))
