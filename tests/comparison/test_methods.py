"""The methods: their names, their budgets, and the refiners among them."""

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.baselines import Diffusion, GraphNetwork, KReciprocal, QueryExpansion, SuperGlobal
from entourage.comparison.measuring import compare_split
from entourage.comparison.methods import BUDGET, METHODS, Refined, select_methods
from entourage.comparison.splits import split_half
from entourage.comparison.tuning import MOST_BEYOND
from entourage.errors import NotFittedError
from entourage.refiner import evaluator, learning
from entourage.refiner.base_map import apply_base_map, learn_base_maps
from entourage.refiner.estimator import ContextRefiner
from entourage.values import Embeddings, label_codes

pytestmark = pytest.mark.usefixtures("one_thread")


def test_names_in_their_order():
    on_request = {"base-map", "base+universal", "contextual-similarity"}
    assert [spec.name for spec in select_methods("all")] == [name for name in METHODS if name not in on_request]
    assert [spec.name for spec in select_methods(["contextual-similarity"])] == ["raw", "contextual-similarity"]
    assert next(iter(METHODS)) == "raw" and list(METHODS)[-4:] == [
        *("paper", "universal", "universal-tuned", "relational"),
    ]
    assert [spec.name for spec in select_methods("lda")] == ["raw", "lda"]
    assert METHODS["raw"].draws_nothing and METHODS["diffusion-fixed"].draws_nothing
    assert not METHODS["self-attention"].draws_nothing and not METHODS["paper"].draws_nothing


def test_no_method_has_more_than_its_budget_and_every_setting_can_be_built():
    for spec in METHODS.values():
        changes = [change for stage in spec.stages for change in stage]
        assert len(changes) <= BUDGET
        for change in changes:
            spec.build(**spec.fixed | change)
        for name, values in spec.beyond.items():
            tried = {change[name] for change in changes if change.get(name) is not None}
            assert tried and list(values) == sorted(values), (spec.name, name)
            assert values[0] <= min(tried) and values[-1] >= max(tried), (spec.name, name)
            spec.build(**{name: values[0]})


def test_ranges_of_expansion_and_whitening_reach_far():
    reach = {name: METHODS["whitening+alpha-qe"].beyond[name] for name in ("k", "shrinkage")}
    assert max(reach["k"]) >= 256 and min(reach["shrinkage"]) <= 0.02 and max(reach["shrinkage"]) >= 0.98


def test_a_method_says_how_it_comes_by_its_settings_and_whether_it_learns():
    said = {name: (spec.settings_are, spec.is_trained, spec.is_refiner) for name, spec in METHODS.items()}
    assert said["alpha-qe"] == ("tuned", False, False) and said["alpha-qe-8-3"] == ("fixed", False, False)
    assert said["base+k-reciprocal"] == ("tuned", True, False) and said["lda"] == ("tuned", True, False)
    assert said["universal"] == ("fixed", False, True) and said["universal-tuned"] == ("tuned", False, True)
    assert said["base-map"] == ("tuned", True, False) and said["base+universal"] == ("tuned", True, True)
    assert said["relational"] == said["paper"] == ("chosen in fit", True, True)


def test_untrained_rivals_are_there_with_fixed_and_with_tuned_settings():
    untrained = [spec for spec in METHODS.values() if not spec.is_trained and not spec.is_refiner]
    for kind in (QueryExpansion, KReciprocal, Diffusion, GraphNetwork, SuperGlobal):
        built = [spec for spec in untrained if isinstance(spec.build(**spec.fixed), kind)]
        assert {spec.settings_are for spec in built} == {"fixed", "tuned"}


def test_the_base_of_a_rival_is_that_of_the_refiner():
    training, test = split_half(clusters(n_classes=20))
    chain = METHODS["base+alpha-qe"].build(shrinkage=0.3, head_steps=20, k=4).fit(training)
    maps = learn_base_maps(training.vectors, label_codes(training.labels), [(0.3, 20)], seed=0)
    mapped = apply_base_map(test, maps[0.3, 20])
    np.testing.assert_allclose(chain.first_.transform(test).vectors, mapped.vectors, atol=1e-5)
    again = QueryExpansion(k=4).fit(apply_base_map(training, maps[0.3, 20])).transform(mapped)
    np.testing.assert_allclose(chain.transform(test).vectors, again.vectors, atol=1e-5)


def test_the_tuned_universal_refiner_is_the_estimator_with_that_many_neighbors():
    items = clusters(n_classes=20)
    moved = METHODS["universal-tuned"].build(n_neighbors=5).fit(items).transform(items)
    np.testing.assert_array_equal(moved.vectors, ContextRefiner(n_neighbors=5).fit_transform(items.vectors))


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

    def scored(candidate, galleries, settings):
        seen.add(candidate)
        return original(candidate, galleries, settings)

    original = learning.scored
    monkeypatch.setattr(learning, "scored", scored)
    monkeypatch.setattr(evaluator, "scored", scored)
    ContextRefiner().fit(clusters(n_classes=9))
    maps, weighings = ({s for s in seen if isinstance(s, tuple) and len(s) == size} for size in (2, 6))
    maps -= {(0.5, 1.0), *learning.IN_SPARSE}  # blends and pulls of the fallback
    assert 6 <= len(maps) <= 13 and 9 <= len(weighings) <= 44  # among the weighings is the base map alone
    assert len(maps) + len(weighings) - 1 <= BUDGET + MOST_BEYOND
