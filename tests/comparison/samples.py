"""Items to compare methods on."""

import numpy as np

from entourage.values import Embeddings


def clusters(n_classes=10, per_class=8, dim=12, spread=1.0, seed=0) -> Embeddings:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    vectors = rng.normal(size=(n_classes, dim))[labels] + spread * rng.normal(size=(len(labels), dim))
    return Embeddings.from_vectors(vectors, 1000 + rng.permutation(len(labels)), labels)
