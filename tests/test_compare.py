"""The bake-off: who learns from what, how settings are chosen, how sure the differences are, and whom they hurt."""

import json
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace

import numpy as np
import pytest

from entourage.baselines import Chain, LinearHead, Method, QueryExpansion, Raw, fit_linear_head
from entourage.baselines.method import with_vectors
from entourage.compare import (
    CONTENDERS,
    Contender,
    Trial,
    choose_settings,
    compare,
    harm,
    paired_bootstrap,
    select,
    split_as_told,
    split_half,
)
from entourage.compare.contenders import BUDGET, Refined
from entourage.compare.memory import peak_memory
from entourage.compare.tuning import Judge, best_trial, head_snapshots
from entourage.errors import InputError, NotFittedError
from entourage.evaluation import evaluate_embeddings, evaluate_ranking
from entourage.sampling import hold_out_classes
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def clusters(n_classes=10, per_class=8, dim=12, spread=1.0, seed=0) -> Embeddings:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    vectors = rng.normal(size=(n_classes, dim))[labels] + spread * rng.normal(size=(len(labels), dim))
    return Embeddings.from_vectors(vectors, 1000 + rng.permutation(len(labels)), labels)


@dataclass
class Ordered(Method):
    """Ranks as told by `best`: "same" puts the query's class first (labels read from the ids), "other" last."""

    best: str = "same"

    def transform(self, items):
        classes = items.ids // 100
        vectors = np.eye(classes.max() + 1)[classes] if self.best == "same" else np.ones((len(items), 2))
        return with_vectors(items, vectors)


# ---- scores of a ranking -----------------------------------------------------------------------------------------


def test_a_ranking_scores_as_the_vectors_that_gave_it():
    items = clusters()
    scores, expected = evaluate_ranking(items, Raw().rank), evaluate_embeddings(items, nmi=False)
    np.testing.assert_array_equal(scores["recall@1"], expected.recall_at_1)
    np.testing.assert_allclose(scores["map@r"], expected.average_precision, rtol=1e-12)
    assert scores["r-precision"].mean() == pytest.approx(expected.metrics["r-precision"])


def test_whoever_ranks_does_not_see_the_labels():
    def rank(items, k):
        assert items.labels is None
        return Raw().rank(items, k)

    evaluate_ranking(clusters(), rank)
    with pytest.raises(InputError, match="the items have no labels"):
        evaluate_ranking(Embeddings.from_vectors(np.eye(3)), rank)


# ---- choosing settings -------------------------------------------------------------------------------------------


def test_the_highest_map_wins_among_those_that_do_not_lose_recall():
    trials = [Trial({"k": 1}, 0.900, 0.50), Trial({"k": 2}, 0.8985, 0.60), Trial({"k": 3}, 0.89, 0.70)]
    assert best_trial(trials, raw_recall=0.900).settings == {"k": 2}  # 0.15 points less recall are allowed, 1 is not
    assert best_trial(trials, raw_recall=0.95).settings == {"k": 1}  # all lose: the best recall
    assert best_trial([Trial({"k": 1}, 0.9, 0.5), Trial({"k": 2}, 0.9, 0.5)], 0.9).settings == {"k": 1}


@pytest.fixture
def telling():
    """Six classes whose ids say the class, for the method Ordered."""
    labels = np.repeat(np.arange(6), 8)
    vectors = np.random.default_rng(1).normal(size=(48, 6))
    return Embeddings.from_vectors(vectors, labels * 100 + np.arange(48) % 8, labels)


def test_the_better_candidate_is_chosen_on_held_out_classes(telling):
    for order in (["same", "other"], ["other", "same"]):
        choice = choose_settings(Ordered, [[{"best": best} for best in order]], telling)
        assert choice.settings == {"best": "same"}
    scores = {trial.settings["best"]: trial for trial in choice.trials}
    assert (scores["same"].recall_at_1, scores["same"].map_at_r) == (1, 1)


def test_stages_build_on_the_best_so_far_and_may_all_be_refused(telling):
    stages = [[{"k": 2}, {"k": 4}], [{"steps": 2}], [{"blend": 0.3}]]
    choice = choose_settings(QueryExpansion, stages, telling)
    first = max(choice.trials[:2], key=lambda trial: trial.map_at_r).settings
    assert choice.trials[2].settings == first | {"steps": 2}
    assert choice.settings in [trial.settings for trial in choice.trials]
    assert choose_settings(QueryExpansion, [], telling).settings == {}


def test_without_classes_to_hold_out_defaults_stay():
    items = clusters(n_classes=3)
    assert choose_settings(QueryExpansion, [[{"k": 1}]], items).trials == ()
    assert "settings stay at their defaults" in compare(items, clusters(seed=1), ["average-qe"]).warnings[-1]


def test_a_choice_depends_on_the_seed_by_the_classes_held_out():
    items = clusters(n_classes=12, spread=1.5)
    choices = [choose_settings(QueryExpansion, [[{"k": 4}]], items, seed=seed).trials[0] for seed in (0, 0, 1)]
    assert choices[0] == choices[1] != choices[2]


def test_no_contender_has_more_than_its_budget_and_every_setting_can_be_built():
    for contender in CONTENDERS.values():
        changes = [change for stage in contender.stages for change in stage]
        assert len(changes) <= BUDGET
        for change in changes:
            contender.build(**contender.fixed | change)


def test_heads_of_one_training_are_those_of_many():
    items = clusters()
    heads = head_snapshots(items, epochs=3, learning_rate=1e-3, seed=2)
    np.testing.assert_array_equal(heads[0], np.eye(items.dim))
    for epochs in (1, 3):
        np.testing.assert_array_equal(
            heads[epochs], fit_linear_head(items, epochs=epochs, learning_rate=1e-3, seed=2).astype(np.float32)
        )


def test_sharing_work_between_trials_changes_no_score():
    items = clusters(n_classes=8)
    shared = Judge(items, seed=0)
    for method in (
        LinearHead(epochs=2),
        Chain(LinearHead(epochs=2), QueryExpansion(k=4)),
        Chain(LinearHead(epochs=2), QueryExpansion(k=2)),
        Chain(LinearHead(epochs=3), LinearHead(epochs=1)),
        LinearHead(epochs=3, learning_rate=1e-2),
        Raw(),
    ):
        held_out = hold_out_classes(items.labels, 0.4, 0)
        alone = evaluate_ranking(items.take(held_out), method.fit(items.take(~held_out), seed=0).rank)
        assert shared.scores(method) == (alone["recall@1"].mean(), alone["map@r"].mean())


# ---- nothing leaks -----------------------------------------------------------------------------------------------


def test_nothing_of_the_test_classes_reaches_fit_or_tuning():
    items = clusters()
    training, test = split_half(items)
    fitted_on, ranked_before_fit = [], []

    @dataclass
    class Spy(Method):
        k: int = 1

        def fit(self, training, *, seed=0):
            fitted_on.append(set(training.ids.tolist()))
            return self

        def transform(self, items):
            ranked_before_fit.append(set(items.ids.tolist()))
            return items

    compare(training, test, [Contender("spy", Spy, [[{"k": 1}, {"k": 2}]])], seeds=2)
    seen, unseen = set(training.ids.tolist()), set(test.ids.tolist())
    assert all(ids <= seen for ids in fitted_on)
    assert fitted_on[2] == fitted_on[5] == seen and fitted_on[0] < seen  # tuning on a part, the last fit on all
    assert [ids & unseen for ids in ranked_before_fit] == [set(), set(), unseen] * 2
    assert not (ranked_before_fit[0] & fitted_on[0])  # judged on classes it was not fitted on


# ---- intervals ---------------------------------------------------------------------------------------------------


def test_the_bootstrap_is_that_of_a_plain_loop():
    rng = np.random.default_rng(3)
    values, reference = rng.random(40), rng.random(40)
    found = paired_bootstrap(values, reference, resamples=200, seed=5)
    rng, means = np.random.default_rng(5), []
    for _ in range(200):
        drawn = rng.integers(40, size=40)
        means.append(np.mean([values[row] - reference[row] for row in drawn]))
    assert found.difference == pytest.approx(np.mean(values - reference))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))
    assert found.low < found.difference < found.high


def test_equal_values_differ_by_exactly_nothing_and_a_shift_by_itself():
    values = np.random.default_rng(0).random(50)
    assert paired_bootstrap(values, values).document() == {"difference": 0.0, "low": 0.0, "high": 0.0}
    shifted = paired_bootstrap(values + 0.125, values)
    assert (shifted.difference, shifted.low, shifted.high) == pytest.approx((0.125,) * 3, abs=1e-12)


def test_the_bootstrap_covers_and_is_fast_and_reproducible():
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(100):
        found = paired_bootstrap(rng.normal(0.1, 1, 200), np.zeros(200), seed=seed)
        covered += found.low <= 0.1 <= found.high
    assert 86 <= covered <= 100
    values = rng.random(11_000)
    start = perf_counter()
    first = paired_bootstrap(values, values[::-1])
    assert perf_counter() - start < 3
    assert first == paired_bootstrap(values, values[::-1])


def test_values_of_other_queries_are_refused():
    with pytest.raises(InputError, match=r"values have shape \(2,\) and the reference \(3,\)"):
        paired_bootstrap([1, 2], [1, 2, 3])


# ---- harm --------------------------------------------------------------------------------------------------------


def test_harm_counts_and_lists_the_worst_first():
    before = {"recall@1": np.array([1.0, 1, 0, 0, 1]), "map@r": np.array([0.5, 0.5, 0.5, 0.5, 0.5])}
    after = {"recall@1": np.array([1.0, 0, 1, 0, 1]), "map@r": np.array([0.4, 0.1, 0.9, 0.5, 0.45])}
    found = harm(["p", "q", "r", "s", "t"], ["a", "a", "b", "b", "c"], before, after)
    assert found["recall@1"] == {"won": 1, "lost": 1, "unchanged": 3}
    assert found["map@r"] == {"won": 1, "lost": 3, "unchanged": 1}
    assert [(entry["class"], entry["items"], entry["won"], entry["lost"]) for entry in found["classes"]] == [
        ("a", 2, 0, 2),
        ("c", 1, 0, 1),
    ]
    assert (found["classes"][0]["map@r_before"], found["classes"][0]["map@r_after"]) == (0.5, 0.25)
    assert found["queries"][0] == {"id": "q", "class": "a", "map@r_before": 0.5, "map@r_after": 0.1}
    assert [entry["id"] for entry in found["queries"]] == ["q", "p", "t"]
    json.dumps(found)


def test_rounding_is_no_harm():
    before = {"recall@1": np.ones(2), "map@r": np.array([0.3, 0.3])}
    after = {"recall@1": np.ones(2), "map@r": np.array([0.3 - 1e-16, (0.3 + 0.3 + 0.3) / 3])}
    assert harm([0, 1], [0, 0], before, after)["map@r"] == {"won": 0, "lost": 0, "unchanged": 2}


# ---- splits ------------------------------------------------------------------------------------------------------


def test_half_is_the_first_half_of_the_sorted_classes():
    items = Embeddings.from_vectors(np.eye(5), labels=["9", "10", "7", "7", "8"])
    training, test = split_half(items)
    assert (training.ids.tolist(), test.ids.tolist()) == ([2, 3, 4], [0, 1])  # 7 and 8 as numbers, not as text
    training, test = split_half(Embeddings.from_vectors(np.eye(5), labels=["b", "c", "a", "a", "10"]))
    assert training.labels.tolist() == ["a", "a", "10"]
    with pytest.raises(InputError, match="all items are of one class"):
        split_half(Embeddings.from_vectors(np.eye(2), labels=[1, 1]))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["train", "test"], r"shape \(2,\) for 3 vectors"),
        (["train", "test", "val"], "entry 2 of the split is 'val'"),
        ([0, 1, 1], "entry 0 of the split is '0'"),
        ([True, False, True], "wanted the word train or test"),
        (["train"] * 3, "no entry of the split is 'test'"),
        (["test"] * 3, "no entry of the split is 'train'"),
    ],
)
def test_a_split_that_says_anything_else_is_refused(parts, message):
    with pytest.raises(InputError, match=message):
        split_as_told(Embeddings.from_vectors(np.eye(3), labels=[0, 1, 2]), parts)


def test_overlapping_classes_are_a_warning():
    items = clusters()
    training, test = split_as_told(items, np.where(np.arange(len(items)) % 2, "train", "test"))
    comparison = compare(training, test, ["raw"])
    assert comparison.warnings == (
        "10 of the test classes are training classes too: this is not a zero-shot comparison",
    )
    assert comparison.protocol["test_classes_seen_in_training"] == 10


# ---- the whole ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison(one_thread):
    items = clusters(n_classes=12, per_class=8)
    methods = ["alpha-qe-8-3", "pca-whitening", "average-qe", "whitening+alpha-qe"]
    return compare(*split_half(items), methods, seeds=3)


def test_the_document_has_everything(comparison):
    document = json.loads(json.dumps(comparison.document()))
    assert set(document) == {"protocol", "methods", "warnings"}
    assert document["protocol"]["seeds"] == [0, 1, 2]
    assert [row["method"] for row in document["methods"]][:2] == ["raw", "alpha-qe-8-3"]
    for row in document["methods"]:
        assert set(row) == {
            *("method", "recall@1", "map@r", "r-precision", "recall@1_vs_raw", "map@r_vs_raw", "settings"),
            *("fit_seconds", "tune_seconds", "apply_seconds", "peak_memory_mb", "parameters", "seeds"),
        }
        assert set(row["map@r_vs_raw"]) == {"difference", "low", "high"}
        assert 0 <= row["tune_seconds"] <= row["fit_seconds"]
        assert [entry["seed"] for entry in row["seeds"]] == [0, 1, 2]
        assert len(row["settings"]) == 3
    raw = document["methods"][0]
    assert raw["map@r_vs_raw"] == {"difference": 0, "low": 0, "high": 0}
    assert [row["parameters"] for row in document["methods"]] == [0, 0, 12 * 12 + 12, 0, 144]
    assert set(document["methods"][4]["settings"][0]) == {"shrinkage", "k", "alpha", "steps", "blend"}


def test_scores_are_means_over_seeds(comparison):
    for row in comparison.document()["methods"]:
        for name in ("recall@1", "map@r"):
            assert row[name] == pytest.approx(np.mean([entry[name] for entry in row["seeds"]]))
            assert row[f"{name}_vs_raw"]["difference"] == pytest.approx(
                row[name] - comparison.document()["methods"][0][name]
            )
    whitened = comparison.row("pca-whitening")
    np.testing.assert_allclose(
        whitened.per_query["map@r"], np.mean([run.per_query["map@r"] for run in whitened.runs], axis=0)
    )


def test_a_row_is_what_the_method_itself_gives(comparison):
    training, test = split_half(clusters(n_classes=12, per_class=8))
    alone = evaluate_ranking(test, QueryExpansion(k=8, alpha=3.0).fit(training).rank)
    np.testing.assert_allclose(comparison.row("alpha-qe-8-3").per_query["map@r"], alone["map@r"], rtol=1e-12)
    settings = comparison.row("pca-whitening").runs[1].settings
    again = CONTENDERS["pca-whitening"].build(**settings).fit(training)
    np.testing.assert_array_equal(
        comparison.row("pca-whitening").runs[1].per_query["map@r"], evaluate_ranking(test, again.rank)["map@r"]
    )


def test_harm_is_that_of_the_last_method_or_relational(comparison):
    found = comparison.harm()
    assert (found["method"], found["against"]) == ("whitening+alpha-qe", "raw")
    assert sum(found["map@r"].values()) == len(comparison.ids)
    assert comparison.harm("average-qe", "alpha-qe-8-3")["against"] == "alpha-qe-8-3"
    with pytest.raises(InputError, match="paper has no scores here; wanted one of raw"):
        comparison.harm("paper")


def test_a_method_that_cannot_work_is_skipped_with_its_reason_and_the_others_go_on():
    one_class = clusters(n_classes=1)
    document = compare(one_class, clusters(seed=1), ["lda", "alpha-qe-8-3"]).document()
    assert document["methods"][1]["method"] == "lda"
    assert "bring more classes" in document["methods"][1]["skipped"]
    assert set(document["methods"][1]) == {"method", "skipped"}
    assert "map@r" in document["methods"][2]


def test_a_bug_is_not_hidden():
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compare(*split_half(clusters()), [Contender("broken", broken)])


def test_raw_must_work():
    with pytest.raises(InputError):
        compare(clusters(), Embeddings.from_vectors(np.ones((1, 12)), labels=[0]), ["raw"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0}, "seeds is 0; wanted a whole number, at least 1"),
        ({"methods": ["nonsense"]}, "there is no method 'nonsense'; wanted all, or some of raw, pca-whitening"),
        ({"training": Embeddings.from_vectors(np.eye(12))}, "the training items have no labels"),
        ({"test": Embeddings.from_vectors(np.eye(3), labels=[1, 2, 3])}, "12 dimensions and the test items 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    training, test = split_half(clusters())
    with pytest.raises(InputError, match=message):
        compare(**{"training": training, "test": test, "methods": ["raw"]} | change)


def test_names_in_their_order():
    assert [contender.name for contender in select("all")] == list(CONTENDERS)
    assert next(iter(CONTENDERS)) == "raw" and list(CONTENDERS)[-3:] == ["paper", "universal", "relational"]
    assert [contender.name for contender in select("lda")] == ["raw", "lda"]
    assert CONTENDERS["raw"].draws_nothing and CONTENDERS["diffusion-fixed"].draws_nothing
    assert not CONTENDERS["self-attention"].draws_nothing and not CONTENDERS["paper"].draws_nothing


def test_progress_counts_methods_and_seeds():
    reports = []
    compare(*split_half(clusters()), ["pca-whitening"], seeds=2, progress=lambda *report: reports.append(report))
    assert [done for _, done, total in reports] == [0, 2, 3, 4] and {total for *_, total in reports} == {4}


# ---- refiners ----------------------------------------------------------------------------------------------------


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

    monkeypatch.setattr("entourage.systems.context_refiner.ContextRefiner", FakeRefiner)
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


# ---- memory ------------------------------------------------------------------------------------------------------


def test_peak_memory_is_what_the_work_held_at_most():
    with peak_memory() as peak:
        np.ones(8_000_000)  # 61 MB, gone at once
    assert peak.mb is None or 50 < peak.mb < 90


def test_peak_memory_is_unknown_where_the_system_does_not_tell(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    with peak_memory() as peak:
        pass
    assert peak.mb is None
