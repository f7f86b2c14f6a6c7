"""How sure the differences are, and whom they hurt."""

import json
from time import perf_counter

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.evaluation.bootstrap import harm, intervals_over_classes, paired_bootstrap, paired_bootstraps, resampled

pytestmark = pytest.mark.usefixtures("one_thread")


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


def test_many_metrics_have_the_intervals_each_would_have_alone():
    rng = np.random.default_rng(2)
    values, reference = ({name: rng.random(30) for name in "abc"} for _ in range(2))
    found = paired_bootstraps(values, reference, seed=4)
    assert list(found) == list("abc")
    for name, interval in found.items():
        alone = paired_bootstrap(values[name], reference[name], seed=4)
        assert interval.document() == pytest.approx(alone.document())
    changed = paired_bootstraps(values, reference, seed=5)
    assert all(changed[name].low != interval.low for name, interval in found.items())


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


def test_classes_are_resampled_as_in_a_plain_loop():
    rng = np.random.default_rng(7)
    classes = np.array(["a", "b", "b", "c", "c", "c", "d"])[rng.permutation(np.arange(70) % 7)]
    values, reference = ({name: rng.random(70) for name in ("x", "y")} for _ in range(2))
    found = paired_bootstraps(values, reference, classes=classes, resamples=300, seed=5)
    for name in ("x", "y"):
        rng, means = np.random.default_rng(5), []
        for _ in range(300):
            drawn = [np.array(list("abcd"))[row] for row in rng.integers(4, size=4)]
            members = np.concatenate([np.flatnonzero(classes == label) for label in drawn])
            means.append((values[name] - reference[name])[members].mean())
        assert found[name].difference == pytest.approx((values[name] - reference[name]).mean())
        assert (found[name].low, found[name].high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


def test_classes_that_move_as_a_whole_have_wider_intervals_than_their_queries():
    """Ten classes of a hundred queries, each moved by its own constant: there are ten things to resample."""
    rng = np.random.default_rng(3)
    classes = np.repeat(np.arange(10), 100)
    by_class = paired_bootstrap(rng.normal(size=10)[classes], np.zeros(1000), classes=classes)
    by_query = paired_bootstrap(rng.normal(size=10)[classes], np.zeros(1000))
    assert by_class.high - by_class.low > 5 * (by_query.high - by_query.low)
    assert not by_class.excludes_zero
    assert paired_bootstrap(np.ones(1000), np.zeros(1000), classes=classes).excludes_zero
    assert not paired_bootstrap(np.ones(1000), np.ones(1000), classes=classes).excludes_zero


def test_class_intervals_cover():
    rng, covered = np.random.default_rng(1), 0
    classes = np.repeat(np.arange(60), 5)
    for seed in range(100):
        moved = rng.normal(0.1, 1, 60)[classes] + rng.normal(0, 0.3, 300)
        covered += (
            (found := paired_bootstrap(moved, np.zeros(300), classes=classes, seed=seed)).low <= 0.1 <= found.high
        )
    assert 86 <= covered <= 100


def test_queries_are_resampled_where_there_is_one_class():
    rng, labels = np.random.default_rng(2), np.repeat(["a", "b", "c"], 10)
    own, other = ({name: rng.random(30) for name in ("x", "y")} for _ in range(2))
    for found, classes in ((labels, labels), (["a"] * 30, None)):
        wanted = paired_bootstraps(own, other, classes=classes)
        assert intervals_over_classes(own, other, found) == wanted and wanted["x"].low < wanted["x"].high
    assert resampled(labels) == "95 %, paired bootstrap over classes, 1000 resamples"
    assert "95 %, bootstrap over queries, as all are of one class" in resampled(["a"] * 30, paired=False)


def test_values_of_other_queries_are_refused():
    with pytest.raises(InputError, match=r"classes have shape \(3,\) for 2 queries"):
        paired_bootstrap([1, 2], [1, 2], classes=[0, 0, 1])
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
