"""The comparison: scores of a ranking, nothing leaks, what the document holds, and what cannot be compared."""

import json

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.baselines import QueryExpansion, Raw, VectorMethod
from entourage.comparison.measuring import compare, compare_split
from entourage.comparison.methods import METHODS, MethodSpec
from entourage.comparison.splits import split_half
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import evaluate_embeddings, evaluate_ranking
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


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


# ---- nothing leaks -----------------------------------------------------------------------------------------------


def test_nothing_of_the_test_classes_reaches_fit_or_tuning():
    items = clusters()
    training, test = split_half(items)
    pairs = []  # what a method was fitted on, and what it then ranked

    class Spy(VectorMethod):
        _learned = "ids_"

        def __init__(self, k: int = 1):
            self.k = k

        def _learn(self, items):
            self.ids_ = set(items.ids.tolist())

        def _moved(self, items):
            pairs.append((self.ids_, set(items.ids.tolist())))
            return items

    compare_split(training, test, [MethodSpec("spy", Spy, [[{"k": 1}, {"k": 2}]])], seeds=2)
    seen, unseen = set(training.ids.tolist()), set(test.ids.tolist())
    assert all(fitted <= seen and not fitted & ranked for fitted, ranked in pairs)
    scored, tuned = ([pair for pair in pairs if (pair[1] == unseen) == is_test] for is_test in (True, False))
    assert scored == [(seen, unseen)] * 2  # a seed each, fitted on all training items
    assert tuned and all(fitted < seen and ranked < seen for fitted, ranked in tuned)


# ---- the whole ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison(one_thread):
    items = clusters(n_classes=12, per_class=8)
    methods = ["alpha-qe-8-3", "pca-whitening", "average-qe", "whitening+alpha-qe"]
    return compare_split(*split_half(items), methods, seeds=3)


def test_the_document_has_everything(comparison):
    document = json.loads(json.dumps(comparison.document()))
    assert set(document) == {"protocol", "methods", "best", "warnings"}
    assert document["protocol"]["intervals"] == "95 %, paired bootstrap over classes, 1000 resamples"
    assert document["protocol"]["seeds"] == [0, 1, 2]
    assert [row["method"] for row in document["methods"]][:2] == ["raw", "alpha-qe-8-3"]
    for row in document["methods"]:
        assert set(row) == {
            *("method", "recall@1", "recall@10", "map@r", "r-precision", "settings"),
            *("recall@1_vs_raw", "recall@10_vs_raw", "map@r_vs_raw"),
            *("settings_are", "extended", "at_end", "recall@1_vs_best_rival", "map@r_vs_best_rival"),
            *("fit_seconds", "tune_seconds", "apply_seconds", "peak_memory_mb", "parameters", "seeds"),
        }
        assert set(row["map@r_vs_raw"]) == {"difference", "low", "high"}
        assert row["tune_seconds"] <= row["fit_seconds"]
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
    whitened = comparison.result("pca-whitening")
    np.testing.assert_allclose(
        whitened.per_query["map@r"], np.mean([each.per_query["map@r"] for each in whitened.seeds], axis=0)
    )


def test_a_row_is_what_the_method_itself_gives(comparison):
    training, test = split_half(clusters(n_classes=12, per_class=8))
    alone = evaluate_ranking(test, QueryExpansion(k=8, alpha=3.0).fit(training).rank)
    np.testing.assert_allclose(comparison.result("alpha-qe-8-3").per_query["map@r"], alone["map@r"], rtol=1e-12)
    settings = comparison.result("pca-whitening").seeds[1].settings
    again = METHODS["pca-whitening"].build(**settings).fit(training)
    np.testing.assert_array_equal(
        comparison.result("pca-whitening").seeds[1].per_query["map@r"], evaluate_ranking(test, again.rank)["map@r"]
    )


def test_harm_is_that_of_the_last_method_or_relational(comparison):
    found = comparison.harm()
    assert (found["method"], found["against"]) == ("whitening+alpha-qe", "raw")
    assert sum(found["map@r"].values()) == len(comparison.ids)
    assert comparison.harm("average-qe", "alpha-qe-8-3")["against"] == "alpha-qe-8-3"
    with pytest.raises(InputError, match="unknown method 'paper' in this comparison; wanted one of raw"):
        comparison.harm("paper")


def test_progress_counts_methods_and_seeds():
    reports = []
    compare_split(*split_half(clusters()), ["pca-whitening"], seeds=2, progress=lambda *report: reports.append(report))
    assert [done for _, done, total in reports] == [0, 2, 3, 4] and {total for *_, total in reports} == {4}


# ---- arrays ------------------------------------------------------------------------------------------------------


def test_arrays_and_labels_are_compared_as_their_halves_are():
    items = clusters(n_classes=8)
    own = compare(items.vectors, items.labels, ["alpha-qe-8-3"])
    assert own.protocol["split"] == "half of the classes"
    of_halves = compare_split(*split_half(items), ["alpha-qe-8-3"])
    for method in ("raw", "alpha-qe-8-3"):
        for name, values in of_halves.result(method).per_query.items():
            np.testing.assert_array_equal(own.result(method).per_query[name], values)
    assert {row["method"] for row in own.document()["methods"]} == {"raw", "alpha-qe-8-3"}
    assert own.table().splitlines()[0].startswith("method")


def test_a_split_of_ones_own_is_one_word_for_each_item():
    items = clusters(n_classes=8)
    words = np.where(np.arange(len(items)) % 2, "train", "test")
    with pytest.warns(EntourageWarning, match="test classes are training classes too") as caught:
        comparison = compare(items.vectors, items.labels, "raw", split=words)
    assert caught[0].filename == __file__  # where the user called
    assert comparison.protocol["test_items"] == (words == "test").sum()
    for split, message in (
        ("third", "the split is 'third'; wanted half, or the word"),
        (words[:3], "the split has 3 entries for"),
    ):
        with pytest.raises(InputError, match=message):
            compare(items, split=split)


# ---- what cannot be compared -------------------------------------------------------------------------------------


def test_a_method_that_cannot_work_is_skipped_with_its_reason_and_the_others_go_on():
    one_class = clusters(n_classes=1)
    document = compare_split(one_class, clusters(seed=1), ["lda", "alpha-qe-8-3"]).document()
    assert document["methods"][1]["method"] == "lda"
    assert "add classes" in document["methods"][1]["skipped"]
    assert set(document["methods"][1]) == {"method", "skipped"}
    assert "map@r" in document["methods"][2]


def test_a_bug_is_not_hidden():
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compare_split(*split_half(clusters()), [MethodSpec("broken", broken)])


def test_test_classes_that_tell_nothing_are_refused_or_warned_of():
    items = clusters()
    test = items.take(items.labels == 9)
    comparison = compare_split(items.take(items.labels < 5), test, ["alpha-qe-8-3"])
    assert comparison.warnings == ("all test items are of one class, so whatever is found is right",)
    alone = Embeddings(test.vectors, labels=np.arange(len(test)))
    with pytest.raises(InputError, match=r"each test item \(8 in all\) is alone in its class"):
        compare_split(items, alone, ["alpha-qe-8-3"])


def test_raw_must_work():
    with pytest.raises(InputError):
        compare_split(clusters(), Embeddings.from_vectors(np.ones((1, 12)), labels=[0]), ["raw"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0}, "seeds is 0; wanted a whole number, at least 1"),
        ({"seeds": 10**30}, "wanted a whole number, at most 1,000"),
        ({"methods": ["nonsense"]}, "unknown method 'nonsense'; wanted one of all, raw, pca-whitening"),
        ({"training": Embeddings.from_vectors(np.eye(12))}, "the training items have no labels"),
        ({"test": Embeddings.from_vectors(np.eye(3), labels=[1, 2, 3])}, "12 dimensions and the test items 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    training, test = split_half(clusters())
    with pytest.raises(InputError, match=message):
        compare_split(**{"training": training, "test": test, "methods": ["raw"]} | change)
