"""The methods: their names, their budgets, and the refiners among them."""

from types import SimpleNamespace

import pytest
from tests.compare.samples import clusters

from entourage.compare.comparison import compare
from entourage.compare.methods import BUDGET, METHODS, Refined, select_methods
from entourage.compare.splits import split_half
from entourage.errors import NotFittedError
from entourage.refiner import learning
from entourage.refiner.estimator import ContextRefiner

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


def test_a_refiner_is_fitted_with_its_recipe_and_the_universal_one_without_labels(monkeypatch):
    made = []

    class FakeRefiner:
        n_parameters_ = 7

        def __init__(self, *, recipe, seed):
            made.append(self)
            self.recipe, self.seed = recipe, seed

        def fit(self, items):
            self.labels = items.labels
            self.history_ = SimpleNamespace(best_epoch=4)
            return self

        def transform(self, items):
            assert items.labels is None
            return items.vectors

    monkeypatch.setattr("entourage.refiner.estimator.ContextRefiner", FakeRefiner)
    training, test = split_half(clusters())
    comparison = compare(training, test, ["relational", "paper", "universal"], seeds=2)
    assert [(refiner.recipe, refiner.seed) for refiner in made[:4]] == [
        *(("relational", 0), ("relational", 1)),
        *(("paper", 0), ("paper", 1)),
    ]
    assert made[4].labels is None and made[0].labels is training.labels
    rows = {row["method"]: row for row in comparison.document()["methods"]}
    assert rows["paper"]["parameters"] == 7
    assert rows["paper"]["settings"][1] == {"recipe": "paper", "kept_epoch": 4}
    assert rows["paper"]["map@r"] == rows["raw"]["map@r"]
    assert comparison.harm()["method"] == "relational"
    with pytest.raises(NotFittedError, match="has not learned anything"):
        Refined().transform(test)


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
