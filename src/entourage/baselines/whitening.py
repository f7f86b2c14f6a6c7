"""Linear maps read off the covariances of the training items: whitening and discriminants.

Every map is regularised alike: an eigenvalue w counts as (1 - shrinkage) w + shrinkage mean(w).
N training items of C classes, d dimensions.
"""

import numpy as np

from entourage.baselines.method import LinearMap, training_codes
from entourage.errors import InputError
from entourage.runtime.checks import check_share, check_whole
from entourage.runtime.sharing import shared
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


def between_class_covariance(vectors: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Compute the covariance (d, d) of the class means of vectors (N, d), classes weighted by their share of items."""
    vectors = np.asarray(vectors, np.float64)
    means, counts = class_means(vectors, codes)
    around = means - vectors.mean(axis=0)
    return (around.T * counts) @ around / len(vectors)


def pca_whitening_map(
    vectors: np.ndarray, shrinkage: float, n_components: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean (d,) and the map (d, m) of PCA whitening from vectors (N, d).

    The map holds the m leading principal axes, each divided by its standard deviation.
    """
    mean, values, axes = shared("eigen", (vectors,), lambda: _principal_axes(vectors))
    scales = inverse_roots(values, shrinkage, n_components)
    return mean, axes[:, : len(scales)] * scales


def _principal_axes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean (d,), eigenvalues (d,) and axes (d, d) of vectors (N, d)."""
    vectors = np.asarray(vectors, np.float64)
    mean = vectors.mean(axis=0)
    return mean, *eigen((vectors - mean).T @ (vectors - mean) / len(vectors))


def lda_map(vectors: np.ndarray, codes: np.ndarray, shrinkage: float, n_components: int | None = None) -> np.ndarray:
    """Compute the LDA map (d, m): within-class whitening, then the m leading axes of the variation between classes."""
    whitening = within_class_whitening_map(vectors, codes, shrinkage)
    most = min(int(np.max(codes)), len(whitening))
    m = most if n_components is None else n_components
    if not 1 <= m <= most:
        raise InputError(
            f"n_components is {m}, but {np.max(codes) + 1} classes in {len(whitening)} dimensions have {most} "
            f"discriminants; wanted 1 ≤ n_components ≤ {most}: lower n_components or add classes"
        )
    _, axes = eigen(between_class_covariance(np.asarray(vectors, np.float64) @ whitening, codes))
    return whitening @ axes[:, :m]


class PCAWhitening(LinearMap):
    """Centre on the training mean and scale every principal axis alike; labels are not used.

    Parameters
    ----------
    n_components : int, optional
        How many leading axes are kept; all by default.
    shrinkage : float
        How far the eigenvalues are drawn to their mean, from 0 to 1.

    Attributes
    ----------
    map_ : ndarray of shape (d, m)
    mean_ : ndarray of shape (d,)
    """

    def __init__(self, n_components: int | None = None, shrinkage: float = 0.1) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage

    def _check_settings(self) -> None:
        check_share("shrinkage", self.shrinkage)
        check_whole("n_components", self.n_components, 1, none=True)

    def _learn(self, items: Embeddings) -> None:
        self.mean_, self.map_ = pca_whitening_map(items.vectors, self.shrinkage, self.n_components)


class WithinClassWhitening(LinearMap):
    """Within-class covariance normalisation (WCCN): directions in which a class varies much count less.

    "Within-class Covariance Normalization for SVM-based Speaker Recognition" (Hatch et al. 2006); no centring.

    Parameters
    ----------
    shrinkage : float
        How far the eigenvalues are drawn to their mean, from 0 to 1.

    Attributes
    ----------
    map_ : ndarray of shape (d, d)
    """

    _needs_labels = True

    def __init__(self, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def _check_settings(self) -> None:
        check_share("shrinkage", self.shrinkage)

    def _learn(self, items: Embeddings) -> None:
        self.mean_ = 0.0
        self.map_ = within_class_whitening_map(items.vectors, training_codes(items), self.shrinkage)


class LDA(LinearMap):
    """Linear discriminant analysis: within-class whitening, then the axes along which classes differ; no centring.

    Parameters
    ----------
    shrinkage : float
        How far the eigenvalues are drawn to their mean, from 0 to 1.
    n_components : int, optional
        How many axes are kept; by default all there are, min(C - 1, d).

    Attributes
    ----------
    map_ : ndarray of shape (d, m)
    """

    _needs_labels = True

    def __init__(self, shrinkage: float = 0.1, n_components: int | None = None) -> None:
        self.shrinkage = shrinkage
        self.n_components = n_components

    def _check_settings(self) -> None:
        check_share("shrinkage", self.shrinkage)
        check_whole("n_components", self.n_components, 1, none=True)

    def _learn(self, items: Embeddings) -> None:
        self.mean_ = 0.0
        self.map_ = lda_map(items.vectors, training_codes(items), self.shrinkage, self.n_components)
