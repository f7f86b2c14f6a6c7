"""Linear maps against their definitions: means by loops, whitening by its effect, snapshots by separate training."""

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.training.linear_maps import (
    class_means,
    eigen,
    head_maps,
    inverse_roots,
    within_class_covariance,
    within_class_whitening_map,
)
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def labelled(n_classes=10, per_class=12, d=6) -> tuple[np.ndarray, np.ndarray]:
    """Classes in a random order of rows, with more spread in some directions than in others."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    mix = rng.normal(size=(d, d))
    return rng.normal(size=(n_classes, d))[codes] + 0.5 * rng.normal(size=(len(codes), d)) @ mix, codes


def test_class_means_are_those_of_a_loop():
    vectors, _ = labelled()
    codes = np.random.default_rng(1).permutation(np.r_[np.arange(7), np.random.default_rng(2).integers(0, 7, 113)])
    means, sizes = class_means(vectors, codes)
    assert means.dtype == np.float64
    for code in range(7):
        members = [vector for vector, other in zip(vectors, codes, strict=True) if other == code]
        assert sizes[code] == len(members)
        np.testing.assert_allclose(means[code], sum(members) / len(members), atol=1e-12)


def test_classes_of_one_item_are_their_own_mean():
    vectors, _ = labelled()
    order = np.random.default_rng(3).permutation(len(vectors))
    np.testing.assert_array_equal(class_means(vectors, order)[0][order], vectors)
    with pytest.raises(InputError, match="all 120 classes have one item"):
        within_class_covariance(vectors, order)


def test_the_covariance_is_pooled_around_the_means():
    vectors, codes = labelled()
    expected = np.zeros((6, 6))
    for code in range(10):
        around = vectors[codes == code] - vectors[codes == code].mean(axis=0)
        expected += sum(np.outer(row, row) for row in around)
    np.testing.assert_allclose(within_class_covariance(vectors, codes), expected / (120 - 10), atol=1e-12)


def test_the_whitening_map_whitens():
    vectors, codes = labelled()
    before = within_class_covariance(vectors, codes)
    assert np.abs(before - before.trace() / 6 * np.eye(6)).max() > 0.1
    whitened = vectors @ within_class_whitening_map(vectors, codes, 0.0)
    np.testing.assert_allclose(within_class_covariance(whitened, codes), np.eye(6), atol=1e-9)


def test_shrinkage_ends_in_a_map_that_only_scales():
    vectors, codes = labelled()
    scale = within_class_covariance(vectors, codes).trace() / 6
    np.testing.assert_allclose(within_class_whitening_map(vectors, codes, 1.0), scale**-0.5 * np.eye(6), atol=1e-9)
    half = within_class_whitening_map(vectors, codes, 0.5)
    shrunk = 0.5 * within_class_covariance(vectors, codes) + 0.5 * scale * np.eye(6)
    np.testing.assert_allclose(half @ shrunk @ half, np.eye(6), atol=1e-9)


def test_eigenvalues_come_largest_first_with_their_axes():
    covariance = within_class_covariance(*labelled())
    values, axes = eigen(covariance)
    assert (np.diff(values) <= 0).all() and (values >= 0).all()
    np.testing.assert_allclose(axes * values @ axes.T, covariance, atol=1e-10)
    np.testing.assert_allclose(inverse_roots(values, 0.0, 2), values[:2] ** -0.5)
    with pytest.raises(InputError, match="n_components is 7; wanted at most 6"):
        inverse_roots(values, 0.0, 7)


def test_directions_without_variation_need_shrinkage():
    vectors, codes = labelled()
    flat = vectors.copy()
    flat[:, 2] = 0
    with pytest.raises(InputError, match=r"vary in 5 of 6 directions; .* raise shrinkage above 0"):
        within_class_whitening_map(flat, codes, 0.0)
    assert np.isfinite(within_class_whitening_map(flat, codes, 0.1)).all()


# ---- the head ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unit():
    vectors, codes = labelled()
    return Embeddings.from_vectors(vectors).vectors, codes


def test_one_training_gives_the_same_maps_as_one_for_each_number_of_steps(unit):
    asked = (7, 0, 30, 1)
    together = head_maps(*unit, asked, seed=3)
    assert list(together) == sorted(asked)
    for steps in asked:
        apart = head_maps(*unit, [steps], seed=3)
        assert list(apart) == [steps]
        assert together[steps].dtype == np.float32
        np.testing.assert_array_equal(together[steps], apart[steps])


def test_no_steps_are_the_identity_and_each_step_moves_on(unit):
    maps = head_maps(*unit, (0, 1, 2), learning_rate=1e-3)
    np.testing.assert_array_equal(maps[0], np.eye(6))
    assert 0 < np.abs(maps[1] - maps[0]).max() <= 1.01e-3  # Adam's first step is the learning rate
    assert np.abs(maps[2] - maps[1]).max() > 0


def test_the_seed_decides_the_batches_and_nothing_else_does(unit):
    """Items of a class are drawn; with all of them in every batch there would be nothing to decide."""
    first, again, other = (head_maps(*unit, [20], seed=seed)[20] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
