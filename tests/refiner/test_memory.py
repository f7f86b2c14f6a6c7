"""What a refiner transforms after fit can be compared with what it was fitted on, in a Pipeline as anywhere."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from tests.refiner.samples import clusters

from entourage.baselines import Chain, PCAWhitening, QueryExpansion, Raw
from entourage.errors import EntourageWarning
from entourage.refiner import ContextRefiner, PaperRefiner, load_refiner
from entourage.refiner.memory import with_fitted
from entourage.refiner.voting import Votes
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


def knn_accuracy(X, y, *steps) -> float:
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return make_pipeline(*steps, KNeighborsClassifier(5)).fit(train, y_train).score(test, y_test)


SETS = {
    "digits": load_digits(return_X_y=True),
    "noisy classes": clusters(seed=0, n_classes=20, per_class=20, noise=1.5),
    "small classes": clusters(seed=1, n_classes=60, per_class=12, noise=1.2),
    "two classes": clusters(seed=2, n_classes=2, per_class=100, noise=2.0),
}


@pytest.mark.parametrize("make", [ContextRefiner, QueryExpansion], ids=["refiner", "query expansion"])
@pytest.mark.parametrize("name", SETS)
def test_a_pipeline_with_nearest_neighbours_does_not_fall_below_raw(name, make):
    X, y = SETS[name]
    one_item = 1 / (0.3 * len(y))
    assert knn_accuracy(X, y, make()) >= knn_accuracy(X, y, Normalizer()) - one_item


@pytest.mark.parametrize("labelled", [True, False])
def test_a_row_alone_is_refined_among_the_items_of_fit(labelled):
    X, y = clusters(seed=0, n_classes=8, noise=1.2)
    held_out = np.arange(len(X)) % 10 == 0
    refiner = ContextRefiner().fit(X[~held_out], y[~held_out] if labelled else None)
    refiner.votes_ = Votes(100, raw=50, refined=90, differing=40)  # refinement clearly classifies better
    for row in np.flatnonzero(held_out)[:3]:
        alone = refiner.transform(X[[row]])
        company = refiner.transform(X[[row]], context=X[~held_out])
        assert np.abs(alone - X[[row]] / np.linalg.norm(X[row])).max() > 0.01
        assert (alone * company).sum() > 0.95  # as a query it is pulled more strongly


def test_items_of_fit_come_out_as_fit_transform_returned_them_in_any_part():
    X = clusters(seed=0, n_classes=8)[0]
    refiner = ContextRefiner()
    refined = refiner.fit_transform(X)
    for part in (slice(None), slice(0, 1), slice(None, None, 7)):
        np.testing.assert_allclose(refiner.transform(X[part]), refined[part], atol=1e-6)
        np.testing.assert_allclose(refiner.trajectory(X[part])[-1], refined[part], atol=1e-6)
        assert refiner.attention(X[part]).weights.shape[1] == len(X[part])


@pytest.mark.parametrize(
    "make",
    [ContextRefiner, lambda: PaperRefiner(n_neighbors=4, n_blocks=2, epochs=1), QueryExpansion,
     lambda: Chain(QueryExpansion(), PCAWhitening()), lambda: Chain(PCAWhitening(), QueryExpansion())],
    ids=["refiner", "paper", "query expansion", "expansion first", "expansion last"],
)  # fmt: skip
def test_items_of_fit_are_known_again_in_another_precision_and_one_by_one(make):
    X, y = clusters(seed=0, n_classes=8)
    estimator = make()
    refined = estimator.fit_transform(X.astype(np.float64), y)
    np.testing.assert_allclose(estimator.transform(X.astype(np.float32)), refined, atol=1e-5)
    np.testing.assert_allclose(estimator.transform(X[5:6].astype(np.float64)), refined[5:6], atol=1e-5)


def test_a_chain_ranks_items_among_those_they_are_given_with():
    X, other = clusters(seed=0, n_classes=8)[0], clusters(seed=1, n_classes=4)[0]
    found, alone = (list(Chain(QueryExpansion(), Raw()).fit(fitted).rank(other, 5)) for fitted in (X, other))
    for (_, one), (_, same) in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one.rows, same.rows)


def test_a_served_gallery_and_both_at_once_know_a_set_that_is_given_twice():
    X, y = clusters(seed=0, n_classes=8)
    refiner = PaperRefiner(n_neighbors=4, n_blocks=2, epochs=1).fit(X, y)
    among_itself = refiner.transform(X, context=X)
    np.testing.assert_allclose(refiner.serve(X).transform(X.copy()), among_itself, atol=1e-6)
    np.testing.assert_allclose(refiner.transform_both(X, X.copy())[0], among_itself, atol=1e-6)


def test_a_set_of_its_own_is_refined_among_itself_whether_it_is_given_once_or_twice():
    X, y = clusters(seed=0, n_classes=8)
    other = clusters(seed=1)[0]
    refiner = ContextRefiner().fit(X, y)
    among_itself = refiner.transform(other, context=other)
    np.testing.assert_array_equal(refiner.transform(other, context=other.copy()), among_itself)
    assert np.abs(refiner.transform(other) - among_itself).max() > 1e-3


def test_a_refiner_that_was_loaded_says_that_it_does_not_know_the_items_of_fit(tmp_path):
    X, y = clusters(seed=0, n_classes=8)
    ContextRefiner().fit(X, y).save(tmp_path / "model")
    loaded = load_refiner(tmp_path / "model")
    assert loaded.items_ is None
    with pytest.warns(EntourageWarning, match="context=X to say that this is meant") as seen:
        among_itself = loaded.transform(X)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(loaded.transform(X, context=X), among_itself)


@pytest.mark.filterwarnings("error::entourage.errors.EntourageWarning")
def test_nobody_is_warned_who_says_among_whom(tmp_path):
    X = clusters(seed=0, n_classes=8)[0]
    ContextRefiner().fit(X).save(tmp_path / "model")
    loaded = load_refiner(tmp_path / "model")
    loaded.transform(X, context=X)
    loaded.transform_both(X[:5], X)


def test_the_items_of_fit_follow_those_that_are_given_each_once():
    given = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]], ids=["a", "b"])
    fitted = Embeddings.from_vectors([[0.0, 1.0], [0.6, 0.8], [0.8, 0.6]], ids=["c", "a", "d"])
    together = with_fitted(given, fitted)  # c has the vector of b, and a is another view of a
    assert together.ids.tolist() == ["a", "b", "d"] and together.named
    bare = with_fitted(given, Embeddings(fitted.vectors))
    assert bare.ids.tolist() == [0, 1, 2, 3] and not bare.named
    assert with_fitted(given, given) is given


def test_a_pickled_refiner_still_knows_the_items_of_fit():
    X = clusters(seed=0, n_classes=8)[0]
    refiner = ContextRefiner().fit(X[:70])
    again = pickle.loads(pickle.dumps(refiner))
    np.testing.assert_array_equal(again.transform(X[70:]), refiner.transform(X[70:]))
