"""The methods: their names, their budgets, and the refiners among them."""

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.comparison.measuring import compare_split
from entourage.comparison.methods import BUDGET, METHODS, Refined, select_methods
from entourage.comparison.splits import split_half
from entourage.errors import NotFittedError
from entourage.refiner import learning
from entourage.refiner.estimator import ContextRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def test_names_in_their_order():
    assert [spec.name for spec in select_methods("all")] == list(METHODS)
    assert next(iter(METHODS)) == "raw" and list(METHODS)[-3:] == ["paper", "universal", "relational"]
    assert [spec.name for spec in select_methods("lda")] == ["raw", "lda"]
    assert METHODS["raw"].draws_nothing and METHODS["diffusion-fixed"].draws_nothing
    assert not METHODS["self-attention"].draws_nothing and not METHODS["paper"].draws_nothing


def test_no_method_has_more_than_its_budget_and_every_setting_can_be_built():
    for spec in METHODS.values():
        changes = [change for stage in spec.stages for change in stage]
        assert len(changes) <= BUDGET
        for change in changes:
            spec.build(**spec.fixed | change)


def test_refiners_are_the_estimators_and_the_universal_one_sees_no_labels():
    training, test = split_half(clusters(n_classes=20))
    learned = ContextRefiner(random_state=1).fit(training.vectors, training.labels)
    np.testing.assert_array_equal(
        Refined("relational", random_state=1).fit(training).transform(test).vectors,
        learned.transform(test.vectors, context=test.vectors),
    )
    universal = Refined(universal=True).fit(training)
    shuffled = Embeddings(training.vectors, training.ids, np.random.default_rng(0).permutation(training.labels))
    np.testing.assert_array_equal(universal.transform(test).vectors, ContextRefiner().fit_transform(test.vectors))
    np.testing.assert_array_equal(
        universal.transform(test).vectors, Refined(universal=True).fit(shuffled).transform(test).vectors
    )
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        Refined().transform(test)


def test_what_a_refiner_chose_is_reported_and_its_harm_is_of_interest():
    comparison = compare_split(*split_half(clusters(n_classes=20)), ["relational", "paper"], seeds=2)
    rows = {row["method"]: row for row in comparison.document()["methods"]}
    assert {"recipe", "base_map", "scorer", "neighbors"} <= set(rows["relational"]["settings"][1])
    assert set(rows["paper"]["settings"][1]) == {"recipe", "kept_epoch"}
    assert rows["relational"]["parameters"] > 1000 and rows["paper"]["parameters"] > rows["relational"]["parameters"]
    assert comparison.harm()["method"] == "relational"


def test_the_relational_refiner_compares_no_more_settings_than_any_rival_may(monkeypatch):
    seen = set()

    def average(settings, scores):
        seen.add(settings)
        return original(settings, scores)

    original = learning._average
    monkeypatch.setattr(learning, "_average", average)
    ContextRefiner().fit(clusters(n_classes=9))
    maps, weighings = ({s for s in seen if isinstance(s, tuple) and len(s) == size} for size in (2, 4))
    assert 4 <= len(maps) <= 10 and 5 <= len(weighings) <= 13  # among the weighings is the base map alone
    assert len(maps) + len(weighings) - 1 <= BUDGET
