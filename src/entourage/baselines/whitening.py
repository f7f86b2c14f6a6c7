"""Linear maps read off the covariances of the training items: whitening and discriminants.

Every map is regularised alike: an eigenvalue w counts as (1 - shrinkage) w + shrinkage mean(w).
N training items of C classes, d dimensions.
"""

from dataclasses import dataclass

import numpy as np

from entourage.baselines.method import LinearMap, check_share, check_whole, training_codes
from entourage.errors import InputError
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

# Below this share of the largest eigenvalue there is only the rounding of float32 vectors.
_NOTHING = 1e-10


def within_class_covariance(vectors, codes) -> np.ndarray:
    """Pooled covariance of vectors (N, d) around the means of their classes 0..C-1, divided by N - C; (d, d)."""
    vectors = np.asarray(vectors, np.float64)
    means, counts = _class_means(vectors, codes)
    if len(vectors) == len(counts):
        raise InputError(f"all {len(counts)} classes have one item; wanted some with two or more to see them vary")
    around = vectors - means[codes]
    return around.T @ around / (len(vectors) - len(counts))


def between_class_covariance(vectors, codes) -> np.ndarray:
    """Covariance of the class means of vectors (N, d), each class weighted by its share of the items; (d, d)."""
    vectors = np.asarray(vectors, np.float64)
    means, counts = _class_means(vectors, codes)
    around = means - vectors.mean(axis=0)
    return (around.T * counts) @ around / len(vectors)


def pca_whitening_map(vectors, shrinkage: float, n_components: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and map (d, m): the m leading principal axes of vectors (N, d), each divided by its deviation."""
    vectors = np.asarray(vectors, np.float64)
    mean = vectors.mean(axis=0)
    values, axes = _eigen((vectors - mean).T @ (vectors - mean) / len(vectors))
    scales = _inverse_roots(values, shrinkage, n_components)
    return mean, axes[:, : len(scales)] * scales


def within_class_whitening_map(vectors, codes, shrinkage: float) -> np.ndarray:
    """((1 - shrinkage) S_w + shrinkage mean-eigenvalue I)^(-1/2) of the within-class covariance S_w; (d, d)."""
    values, axes = _eigen(within_class_covariance(vectors, codes))
    return axes * _inverse_roots(values, shrinkage) @ axes.T


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
    _, axes = _eigen(between_class_covariance(np.asarray(vectors, np.float64) @ whitening, codes))
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


def _class_means(vectors, codes) -> tuple[np.ndarray, np.ndarray]:
    """Means (C, d) and sizes (C,) of the classes."""
    counts = np.bincount(codes)
    means = np.zeros((len(counts), vectors.shape[1]))
    np.add.at(means, codes, vectors)
    return means / counts[:, None], counts


def _eigen(covariance) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (d,), largest first, and their axes as columns (d, d)."""
    values, axes = np.linalg.eigh(covariance)
    return np.maximum(values[::-1], 0), axes[:, ::-1]


def _inverse_roots(values, shrinkage: float, n_components: int | None = None) -> np.ndarray:
    """((1 - shrinkage) w + shrinkage mean(w))^(-1/2) of the leading eigenvalues w, (m,)."""
    m = len(values) if n_components is None else n_components
    if m > len(values):
        raise InputError(f"n_components is {m}; wanted at most {len(values)}, the number of dimensions")
    shrunk = ((1 - shrinkage) * values + shrinkage * values.mean())[:m]
    varied = int((shrunk > _NOTHING * shrunk[0]).sum())
    if varied < m:
        raise InputError(
            f"the training vectors vary in {varied} of {m} directions; wanted all of them: "
            "raise shrinkage above 0 or bring more items"
        )
    return shrunk**-0.5
