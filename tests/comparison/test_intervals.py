"""Which rival a method is held against, and when one of them may be called the best."""

import numpy as np
import pytest

from entourage.comparison.intervals import against_best, intervals_between, leader
from entourage.comparison.results import Comparison, MethodResult, SeedResult
from entourage.evaluation.bootstrap import paired_bootstrap

pytestmark = pytest.mark.usefixtures("one_thread")

LABELS = np.repeat(np.arange(20), 5)


def scores(mean, seed=0, spread=0.02):
    rng = np.random.default_rng(seed)
    values = mean + spread * rng.normal(size=20)[LABELS]
    return {"recall@1": values, "recall@10": values + 0.05, "map@r": values - 0.1, "r-precision": values}


def result(name, mean, seed=0, **described):
    return MethodResult(name, (SeedResult(scores(mean, seed), {}, 0.0, 0.0, 0.0, None, 0),), **described)


@pytest.fixture
def comparison():
    return Comparison(
        {"protocol": "together"},
        (
            result("raw", 0.5, 1),
            result("fixed", 0.6, 2),
            result("learned", 0.8, 3, is_trained=True),
            MethodResult("broken", skipped="it cannot"),
            result("universal", 0.7, 4, is_refiner=True),
            result("relational", 0.9, 5, is_refiner=True, is_trained=True),
        ),
        np.arange(100),
        LABELS,
    )


def test_each_method_is_held_against_the_best_that_it_competes_with(comparison):
    rows = {row["method"]: row for row in comparison.document()["methods"]}
    rivals = {name: row["map@r_vs_best_rival"]["rival"] for name, row in rows.items() if "map@r" in row}
    assert rivals == {
        "raw": "learned",
        "fixed": "learned",
        "learned": "fixed",
        "universal": "fixed",  # it sees no labels, and neither do those it is held against
        "relational": "learned",
    }
    wanted = paired_bootstrap(scores(0.9, 5)["map@r"], scores(0.8, 3)["map@r"], classes=LABELS)
    found = rows["relational"]["map@r_vs_best_rival"]
    assert found == {"rival": "learned", **wanted.document()} and found["low"] > 0


def test_the_best_is_one_that_beats_all_others_for_certain(comparison):
    assert comparison.document()["best"]["map@r"] == {"method": "relational", "tied_with": []}
    assert comparison.table().count("none for certain") == 0
    noisy = {"a": scores(0.600, 1, spread=0.3), "b": scores(0.601, 2, spread=0.3), "c": scores(0.0, 3)}
    first = max("ab", key=lambda name: noisy[name]["map@r"].mean())
    assert leader(noisy, "map@r", LABELS) == {"method": first, "tied_with": ["b" if first == "a" else "a"]}


def test_methods_that_tie_are_named_in_the_table():
    names = "abcdefg"
    equal = tuple(result(name, 0.5) for name in names)
    found = Comparison({"protocol": "together"}, (result("raw", 0.1), *equal), np.arange(100), LABELS)
    assert "none for certain: a, or b, c, d, 3 more" in found.table()


def test_methods_are_compared_over_classes():
    own, other = scores(0.5, 1), scores(0.6, 2)
    found = intervals_between(own, other, LABELS)
    assert set(found) == {"recall@1", "recall@10", "map@r"}
    wanted = paired_bootstrap(own["map@r"], other["map@r"], classes=LABELS)
    assert found["map@r"].document() == pytest.approx(wanted.document())


def test_without_rivals_there_is_nothing_to_say():
    assert against_best(scores(0.5), {}, LABELS) == {}
