"""Clusters to refine, and how well they are found."""

import numpy as np

from entourage.evaluation import evaluate
from entourage.values import Embeddings


def clusters(seed: int, n_classes=30, per_class=12, noise=1.2, dim=32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    return rng.normal(size=(n_classes, dim))[labels] + noise * rng.normal(size=(len(labels), dim)), labels


def unit(vectors) -> np.ndarray:
    return Embeddings.from_vectors(vectors).vectors


def scores(vectors, labels, gallery=None, gallery_labels=None) -> tuple[float, float]:
    """R@1 and MAP@R."""
    metrics = evaluate(vectors, labels, gallery=gallery, gallery_labels=gallery_labels, nmi=False).metrics
    return metrics["recall@1"], metrics["map@r"]
