"""Whether refined neighbours classify new items of known classes better, rehearsed with items held out."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from tests.refiner.samples import clusters

from entourage.errors import EntourageWarning
from entourage.refiner import ContextRefiner, PaperRefiner
from entourage.refiner.settings import RefinerSettings
from entourage.refiner.universal import universal_network
from entourage.refiner.voting import Votes, _some_of_each_class, rehearse_votes
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")
SETTINGS = RefinerSettings(None, 5, 0)


def test_votes_are_those_of_scikit_learns_nearest_neighbours():
    X, y = clusters(seed=0, n_classes=6, per_class=20, noise=2.0)
    new = _some_of_each_class(y, seed=0)
    taught = []
    votes = rehearse_votes(
        Embeddings.from_vectors(X, labels=y), lambda known: taught.append(known) or universal_network(), SETTINGS
    )
    assert len(taught[0]) == (~new).sum()  # nothing is learned from the new items
    classifier = KNeighborsClassifier(5, metric="cosine").fit(X[~new], y[~new])
    assert votes.metrics["rehearsal_votes_raw"] == pytest.approx(classifier.score(X[new], y[new]))
    refiner = ContextRefiner()
    known = refiner.fit_transform(X[~new])
    refined = KNeighborsClassifier(5, metric="cosine").fit(known, y[~new]).score(refiner.transform(X[new]), y[new])
    assert votes.metrics["rehearsal_votes_refined"] == pytest.approx(refined)
    assert votes.new == new.sum()


def test_three_of_ten_items_of_each_class_are_new_and_one_at_least_stays():
    codes = np.repeat(np.arange(4), [1, 2, 10, 25])
    new = _some_of_each_class(codes, seed=0)
    assert [int(new[codes == c].sum()) for c in range(4)] == [0, 0, 3, 7]
    assert not np.array_equal(new, _some_of_each_class(codes, seed=1))


@pytest.mark.parametrize("new", [7, 42, 72, 100])
def test_one_item_won_and_none_lost_is_enough_whatever_their_number(new):
    assert Votes(new, raw=5, refined=6, differing=1).clearly_better
    assert not Votes(new, raw=5, refined=5, differing=0).clearly_better
    assert not Votes(new, raw=5, refined=6, differing=3).clearly_better


def test_unless_votes_clearly_win_known_classes_come_back_as_they_are_and_a_context_refines():
    X, y = clusters(seed=0, n_classes=8, noise=1.2)
    refiner = ContextRefiner().fit(X, y)
    refiner.votes_ = Votes(100, raw=90, refined=80, differing=20)
    with pytest.warns(EntourageWarning, match="80.0 % against 90.0 %") as seen:
        unchanged = refiner.transform(X)
    assert seen[0].filename == __file__
    np.testing.assert_allclose(unchanged, X / np.linalg.norm(X, axis=1, keepdims=True), atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.abs(refiner.transform(X, context=X) - unchanged).max() > 0.01


def test_what_suits_sparser_galleries_does_not_take_over_from_leaving_vectors_as_they_are():
    X, y = clusters(seed=0, n_classes=8, noise=1.2)
    refiner = ContextRefiner().fit(X, y)
    refiner.network_ = replace(refiner.network_, fallback=universal_network(), usual_purity=1.0)
    refiner.votes_ = None
    np.testing.assert_allclose(refiner.transform(X), X / np.linalg.norm(X, axis=1, keepdims=True), atol=1e-6)


def test_the_published_recipe_says_that_it_does_not_rehearse():
    X, y = clusters(seed=0, n_classes=8)
    with pytest.warns(EntourageWarning, match="not rehearsed with PaperRefiner"):
        PaperRefiner(n_neighbors=2, n_blocks=1, epochs=1).fit_transform(X, y)


@pytest.mark.parametrize("per_class", [2, 3])
def test_classes_too_small_to_hold_an_item_out_are_learned_from_all_the_same(short_rehearsals, per_class):
    vectors, labels = clusters(seed=0, n_classes=20, per_class=per_class)
    refiner = ContextRefiner().fit(vectors, labels)
    assert refiner.votes_ is None and len(refiner.transform(vectors, context=vectors)) == len(vectors)
