"""What a user would try instead of learning a refiner."""

import numpy as np

from entourage.values import Embeddings, Neighbors

__all__ = ["expand_queries"]


def expand_queries(items: Embeddings, gallery: Embeddings, neighbors: Neighbors, alpha: float = 3.0) -> Embeddings:
    """alpha query expansion: normalise(e_q + sum_j max(s_qj, 0)^alpha e_j) over the neighbours j; alpha = 0 averages.

    items (N, d), neighbors (N, k) with rows of the gallery. Applied to queries and gallery alike it needs no
    training and no labels.
    """
    weights = np.maximum(neighbors.similarities, 0) ** alpha  # (N, k)
    expanded = items.vectors.copy()
    for start in range(0, len(items), 1024):
        block = slice(start, start + 1024)
        expanded[block] += np.einsum("nk,nkd->nd", weights[block], gallery.vectors[neighbors.rows[block]])
    return Embeddings.from_vectors(expanded, items.ids if items.named else None, items.labels)
