"""What is said of slices, against plain loops."""

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings
from entourage.systems.divide_and_conquer.analysis import (
    first_slices,
    mean_absolute_correlation,
    only_one_finds,
    score_slices,
    slices,
)
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def sample(count=80, d=12, seed=0) -> Embeddings:
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=count)
    return Embeddings.from_vectors(rng.normal(size=(10, d))[labels] + rng.normal(size=(count, d)), labels=labels)


def test_slices_are_cut_in_order_and_scaled():
    items = sample()
    for k, part in enumerate(slices(items, 4)):
        cut = items.vectors[:, 3 * k : 3 * k + 3]
        np.testing.assert_allclose(part.vectors, cut / np.linalg.norm(cut, axis=1, keepdims=True), atol=1e-6)
        assert part.labels.tolist() == items.labels.tolist()
    np.testing.assert_allclose(first_slices(items, 4, 4).vectors, items.vectors, atol=1e-6)
    assert first_slices(items, 4, 3).dim == 9


def test_recalls_are_those_of_evaluate():
    items = sample()
    scores = score_slices(items, 4, recall_at=(1, 4))
    for k in (1, 4):
        name = f"recall@{k}"
        alone = [evaluate_embeddings(part, nmi=False).metrics[name] for part in slices(items, 4)]
        first = [evaluate_embeddings(first_slices(items, 4, m), nmi=False).metrics[name] for m in (1, 2, 3, 4)]
        assert scores.alone[k] == pytest.approx(alone) and scores.first[k] == pytest.approx(first)
    assert scores.first[1][-1] == pytest.approx(evaluate_embeddings(items, nmi=False).metrics["recall@1"])


def test_correlation_is_that_of_a_plain_loop():
    items = sample()
    joined = np.hstack([part.vectors for part in slices(items, 3)]).astype(float)
    found = [
        abs(np.corrcoef(joined[:, a], joined[:, b])[0, 1]) for a in range(12) for b in range(12) if a // 4 != b // 4
    ]
    assert mean_absolute_correlation(items, 3) == pytest.approx(np.mean(found), abs=1e-6)


def test_a_dimension_that_never_changes_is_correlated_with_none():
    vectors = sample().vectors.copy()
    vectors[:, :4] = 0.1  # a slice without any variation
    rest = mean_absolute_correlation(Embeddings.from_vectors(vectors), 3)
    assert (
        0 < rest == pytest.approx(mean_absolute_correlation(Embeddings.from_vectors(vectors[:, 4:]), 2) / 3, rel=1e-4)
    )


def test_queries_that_only_one_slice_finds_as_by_a_plain_loop():
    before = np.random.default_rng(0).choice([0, 1, 29, 30, 70], size=(3, 400), p=[0.2, 0.1, 0.1, 0.3, 0.3])
    found = only_one_finds(before)
    assert sum(map(len, found)) > 20
    for k in range(3):
        wanted = [q for q in range(400) if before[k, q] == 0 and all(before[j, q] >= 30 for j in range(3) if j != k)]
        assert found[k].tolist() == wanted
    assert sum(map(len, only_one_finds(before, lost_at=1))) > sum(map(len, found))


def test_what_only_one_learner_finds_is_found_in_vectors_too():
    """Item 0 and its match agree in the first slice and are as far apart as can be in the second."""
    angles = np.radians(np.linspace(40, 320, 40))
    second = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    first = second[np.random.default_rng(0).permutation(40)]
    first, second = np.vstack([[[1, 0], [1, 0.01]], first]), np.vstack([[[1, 0], [-1, 0]], second])
    labels = np.array([0, 0, *range(1, 41)])
    scores = score_slices(Embeddings.from_vectors(np.hstack([first, second]), labels=labels), 2)
    assert [rows.tolist() for rows in scores.only] == [[0, 1], []]


@pytest.mark.parametrize("count", [1, 5])
def test_slices_that_do_not_divide_are_refused(count):
    with pytest.raises(InputError, match=f"12 dimensions and are to be cut into {count} slices; wanted two slices or"):
        slices(sample(), count)


def test_labels_are_needed():
    with pytest.raises(InputError, match="have no labels"):
        score_slices(Embeddings(sample().vectors), 3)
