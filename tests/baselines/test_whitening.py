import numpy as np
import pytest
from scipy.linalg import eigh, sqrtm

from entourage.baselines import (
    LDA,
    PCAWhitening,
    WithinClassWhitening,
    between_class_covariance,
    within_class_covariance,
)
from entourage.errors import InputError
from entourage.values import Embeddings

SHRINKAGES = [0.0, 0.1, 1.0]


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def shrunk(covariance, shrinkage):
    mean = np.trace(covariance) / len(covariance)  # the mean eigenvalue
    return (1 - shrinkage) * covariance + shrinkage * mean * np.eye(len(covariance))


def scatter(vectors, labels):
    """Within- and between-class covariance by plain loops."""
    d, classes = vectors.shape[1], np.unique(labels)
    within, between = np.zeros((d, d)), np.zeros((d, d))
    for c in classes:
        members = vectors[labels == c]
        mean = members.mean(axis=0)
        for member in members:
            within += np.outer(member - mean, member - mean)
        between += len(members) * np.outer(mean - vectors.mean(axis=0), mean - vectors.mean(axis=0))
    return within / (len(vectors) - len(classes)), between / len(vectors)


@pytest.fixture
def training(clusters):
    """Classes of different sizes, one of them a single item."""
    return clusters(60, seed=1).take([0, *range(2, 30), *range(31, 60, 2)])


@pytest.fixture
def items(clusters):
    return clusters(48)


def test_covariances_equal_plain_loops(training):
    vectors = training.vectors.astype(np.float64)
    within, between = scatter(vectors, training.labels)
    np.testing.assert_allclose(within_class_covariance(vectors, training.labels), within, atol=1e-12)
    np.testing.assert_allclose(between_class_covariance(vectors, training.labels), between, atol=1e-12)
    around = vectors - vectors.mean(axis=0)
    parts = within * (len(vectors) - 6) / len(vectors) + between
    np.testing.assert_allclose(around.T @ around / len(vectors), parts, atol=1e-12)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_pca_whitening_is_the_inverse_root_of_the_covariance_up_to_a_rotation(shrinkage, training, items):
    mean = training.vectors.mean(axis=0, dtype=np.float64)
    covariance = shrunk(np.cov(training.vectors.T.astype(np.float64), bias=True), shrinkage)
    wanted = (items.vectors - mean) @ np.linalg.inv(sqrtm(covariance))
    moved = PCAWhitening(shrinkage=shrinkage).fit(training).transform(items)
    np.testing.assert_allclose(cosines(moved.vectors), cosines(wanted), atol=1e-5)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_pca_keeps_the_leading_axes(shrinkage, training, items):
    mean = training.vectors.mean(axis=0, dtype=np.float64)
    _, lengths, axes = np.linalg.svd(training.vectors - mean, full_matrices=False)
    variances = (1 - shrinkage) * lengths**2 + shrinkage * np.mean(lengths**2)  # times N, which scales all alike
    wanted = (items.vectors - mean) @ (axes[:3].T * variances[:3] ** -0.5)
    moved = PCAWhitening(n_components=3, shrinkage=shrinkage).fit(training).transform(items)
    assert moved.dim == 3
    np.testing.assert_allclose(cosines(moved.vectors), cosines(wanted), atol=1e-5)


def test_whitened_training_items_vary_alike_in_every_direction(training):
    method = PCAWhitening(shrinkage=0).fit(training)
    whitened = (training.vectors - method.mean_) @ method.map_
    np.testing.assert_allclose(np.cov(whitened.T, bias=True), np.eye(8), atol=1e-5)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_within_class_whitening_is_the_inverse_root_of_the_within_class_covariance(shrinkage, training, items):
    within, _ = scatter(training.vectors.astype(np.float64), training.labels)
    wanted = items.vectors @ np.linalg.inv(sqrtm(shrunk(within, shrinkage)))
    moved = WithinClassWhitening(shrinkage).fit(training).transform(items).vectors
    np.testing.assert_allclose(moved, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-5)


def test_shrunk_to_the_end_within_class_whitening_changes_nothing(training, items):
    moved = WithinClassWhitening(shrinkage=1).fit(training).transform(items)
    np.testing.assert_allclose(moved.vectors, items.vectors, atol=1e-6)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize("n_components", [1, 3, 5, None])
def test_lda_solves_the_generalised_eigenproblem(shrinkage, n_components, training, items):
    within, between = scatter(training.vectors.astype(np.float64), training.labels)
    _, axes = eigh(between, shrunk(within, shrinkage))  # S_b v = w S_w v with v' S_w v = 1, smallest first
    wanted = items.vectors @ axes[:, ::-1][:, : n_components or 5]
    moved = LDA(shrinkage, n_components).fit(training).transform(items)
    assert moved.dim == (n_components or 5)
    np.testing.assert_allclose(cosines(moved.vectors), cosines(wanted), atol=1e-5)


def test_lda_has_no_more_axes_than_dimensions(clusters):
    assert LDA().fit(clusters(60, n_classes=12)).map_.shape == (8, 8)


def test_labels_may_be_text(training, items):
    named = Embeddings(training.vectors, training.ids, [f"class {label}" for label in training.labels])
    for make in (WithinClassWhitening, LDA):
        np.testing.assert_array_equal(make().fit(named).map_, make().fit(training).map_)


# ---- what cannot be learned --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [PCAWhitening, WithinClassWhitening, LDA])
def test_fewer_items_than_dimensions_need_shrinkage(make, clusters):
    few = clusters(8, n_classes=2, dim=16)
    with pytest.raises(InputError, match=r"vary in \d of 16 directions; .* raise shrinkage above 0"):
        make(shrinkage=0).fit(few)
    assert make(shrinkage=0.1).fit(few).n_parameters_ > 0


def test_training_items_that_are_all_the_same_are_refused():
    same = Embeddings.from_vectors(np.ones((4, 3)), labels=[0, 0, 1, 1])
    for make in (PCAWhitening, WithinClassWhitening, LDA):
        with pytest.raises(InputError, match="vary in 0 of 3 directions"):
            make().fit(same)


def test_classes_of_one_item_show_no_variation_within(clusters):
    with pytest.raises(InputError, match="all 6 classes have one item"):
        WithinClassWhitening().fit(clusters(6))


def test_more_components_than_there_are_is_refused(training, clusters):
    with pytest.raises(InputError, match="n_components is 9; wanted at most 8"):
        PCAWhitening(n_components=9).fit(training)
    with pytest.raises(InputError, match="wanted 1 ≤ n_components ≤ 5"):
        LDA(n_components=6).fit(training)
    with pytest.raises(InputError, match="n_components is 0, but 1 classes"):
        LDA().fit(clusters(20, n_classes=1))
