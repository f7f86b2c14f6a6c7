"""Linear maps read off the covariances of the training items: whitening and discriminants.

Every map is regularised alike: an eigenvalue w counts as (1 - shrinkage) w + shrinkage mean(w).
N training items of C classes, d dimensions.
"""

from dataclasses import dataclass

import numpy as np

from entourage.baselines.method import LinearMap, check_share, check_whole, training_codes
from entourage.errors import InputError
from entourage.training.linear_maps import (
    class_means,
    eigen,
    inverse_roots,
    within_class_covariance,
    within_class_whitening_map,
)
from entourage.values import Embeddings

__all__ = [
    "LDA",
    "PCAWhitening",
    "WithinClassWhitening",
    "between_class_covariance",
    "lda_map",
    "pca_whitening_map",
    "within_class_covariance",
    "within_class_whitening_map",
]


def between_class_covariance(vectors, codes) -> np.ndarray:
    """Covariance of the class means of vectors (N, d), each class weighted by its share of the items; (d, d)."""
    vectors = np.asarray(vectors, np.float64)
    means, counts = class_means(vectors, codes)
    around = means - vectors.mean(axis=0)
    return (around.T * counts) @ around / len(vectors)


def pca_whitening_map(vectors, shrinkage: float, n_components: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and map (d, m): the m leading principal axes of vectors (N, d), each divided by its deviation."""
    vectors = np.asarray(vectors, np.float64)
    mean = vectors.mean(axis=0)
    values, axes = eigen((vectors - mean).T @ (vectors - mean) / len(vectors))
    scales = inverse_roots(values, shrinkage, n_components)
    return mean, axes[:, : len(scales)] * scales


def lda_map(vectors, codes, shrinkage: float, n_components: int | None = None) -> np.ndarray:
    """Within-class whitening, then the m leading axes of what varies between classes there; (d, m)."""
    whitening = within_class_whitening_map(vectors, codes, shrinkage)
    most = min(int(np.max(codes)), len(whitening))
    m = most if n_components is None else n_components
    if not 1 <= m <= most:
        raise InputError(
            f"{m} discriminants asked of {np.max(codes) + 1} classes in {len(whitening)} dimensions, which have "
            f"{most}; wanted 1 ≤ n_components ≤ {most}: lower n_components or bring more classes"
        )
    _, axes = eigen(between_class_covariance(np.asarray(vectors, np.float64) @ whitening, codes))
    return whitening @ axes[:, :m]


@dataclass
class PCAWhitening(LinearMap):
    """Centre on the training mean and scale every principal axis alike; labels are not used."""

    n_components: int | None = None
    """How many leading axes are kept; all if None."""
    shrinkage: float = 0.1

    def __post_init__(self):
        check_share("shrinkage", self.shrinkage)
        if self.n_components is not None:
            check_whole("n_components", self.n_components, 1)

    def fit(self, training: Embeddings, *, seed: int = 0) -> "PCAWhitening":
        self.mean_, self.map_ = pca_whitening_map(training.vectors, self.shrinkage, self.n_components)
        return self


@dataclass
class WithinClassWhitening(LinearMap):
    """Within-class covariance normalisation (WCCN): directions in which a class varies much count less.

    "Within-class Covariance Normalization for SVM-based Speaker Recognition" (Hatch et al. 2006); no centring.
    """

    shrinkage: float = 0.1

    def __post_init__(self):
        check_share("shrinkage", self.shrinkage)

    def fit(self, training: Embeddings, *, seed: int = 0) -> "WithinClassWhitening":
        self.map_ = within_class_whitening_map(training.vectors, training_codes(training), self.shrinkage)
        return self


@dataclass
class LDA(LinearMap):
    """Linear discriminant analysis: within-class whitening, then the axes along which classes differ; no centring."""

    shrinkage: float = 0.1
    n_components: int | None = None
    """How many axes are kept; min(C - 1, d), which is all there are, if None."""

    def __post_init__(self):
        check_share("shrinkage", self.shrinkage)
        if self.n_components is not None:
            check_whole("n_components", self.n_components, 1)

    def fit(self, training: Embeddings, *, seed: int = 0) -> "LDA":
        self.map_ = lda_map(training.vectors, training_codes(training), self.shrinkage, self.n_components)
        return self
