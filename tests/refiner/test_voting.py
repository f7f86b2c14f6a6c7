"""Whether refined neighbours classify new items of known classes better, rehearsed without a look at those items."""

import warnings

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from tests.refiner.samples import clusters

from entourage.errors import EntourageWarning
from entourage.refiner import ContextRefiner
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
    assert votes.raw == pytest.approx(classifier.score(X[new], y[new]))
    refiner = ContextRefiner()
    known = refiner.fit_transform(X[~new])
    refined = KNeighborsClassifier(5, metric="cosine").fit(known, y[~new]).score(refiner.transform(X[new]), y[new])
    assert votes.refined == pytest.approx(refined)


def test_three_of_ten_items_of_each_class_are_new_and_one_at_least_stays():
    codes = np.repeat(np.arange(4), [1, 2, 10, 25])
    new = _some_of_each_class(codes, seed=0)
    assert [int(new[codes == c].sum()) for c in range(4)] == [0, 0, 3, 7]
    assert not np.array_equal(new, _some_of_each_class(codes, seed=1))


@pytest.mark.parametrize(
    ("votes", "warns"), [(Votes(0.8, 0.9, 0.02), False), (Votes(0.8, 0.81, 0.02), True), (Votes(0.9, 0.8, 0.02), True)]
)
def test_who_does_not_surely_win_is_not_used(votes, warns):
    assert (votes.warning is not None) == warns


def unhelpful(refiner: ContextRefiner) -> ContextRefiner:
    refiner._report["metrics"] |= Votes(0.9, 0.8, 0.01).metrics
    return refiner


def test_where_votes_do_not_win_known_classes_come_back_as_they_are_and_a_context_refines():
    X, y = clusters(seed=0, n_classes=8, noise=1.2)
    refiner = unhelpful(ContextRefiner().fit(X, y))
    with pytest.warns(EntourageWarning, match="80.0 % against 90.0 %") as seen:
        unchanged = refiner.transform(X)
    assert seen[0].filename == __file__
    np.testing.assert_allclose(unchanged, X / np.linalg.norm(X, axis=1, keepdims=True), atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.abs(refiner.transform(X, context=X) - unchanged).max() > 0.01
