import pytest

from entourage.report.wording import (
    change_mark,
    flattened,
    in_sentence,
    metric_meaning,
    metric_title,
    readable,
    without_repeats,
)


@pytest.mark.parametrize(
    ("difference", "interval", "mark"),
    [
        (-0.1, {"low": -0.2, "high": -0.05}, ("▼", "worse")),
        (0.1, {"low": 0.0, "high": 0.2}, ("≈", "no clear change")),
        (0.1, None, ("△", "higher")),
        (0.0, None, ("=", "the same")),
        (0.0, {"low": 0.0, "high": 0.0}, ("=", "the same")),
        (0.0, {"low": -0.1, "high": 0.1}, ("≈", "no clear change")),
    ],
)
def test_a_mark_is_as_sure_as_the_interval(difference, interval, mark):
    assert change_mark(difference, interval) == mark


def test_counts_that_are_the_same_are_said_once():
    same = {"items": 90, "classes": 90, "queries": 90, "gallery": 90, "self_matches_removed_by_id": 90}
    assert without_repeats(same) == {"items": 90, "classes": 90}
    assert (
        without_repeats(other := {"items": 90, "queries": 90, "gallery": 700}) == {"items": 90, "gallery": 700} != other
    )


def test_metrics_are_named_and_explained():
    assert metric_meaning("recall@8") == "one of 8 is right" and metric_meaning("seconds") == ""
    assert (
        metric_meaning("recall@1") == "the nearest is right"
        and metric_meaning("precision@5") == "share of 5 that is right"
    )
    assert metric_meaning("map@1000") == metric_meaning("ndcg@10") == "right ones first"
    assert metric_meaning("mrr@10") == "1 / place of the first right one of 10"
    assert metric_title("map-trapezoid") == "mAP, trapezoid"
    assert [metric_title(name) for name in ("mrr", "mrr@5", "ndcg@10", "precision@5")] == [
        *("MRR", "MRR@5", "nDCG@10", "Precision@5")
    ]
    within = {"nmi": "NMI", "recall@10": "recall@10", "map": "mAP", "mrr@5": "MRR@5", "ndcg@5": "nDCG@5"}
    assert {name: in_sentence(name) for name in within} == within


@pytest.mark.parametrize(
    ("value", "text"), [(False, "no"), ((), "none"), ({}, "none"), ([1, None], "1, none"), (1e-7, "1e-07"), (0, "0")]
)
def test_values_are_written_as_people_write_them(value, text):
    assert readable(value) == text


def test_settings_within_settings_have_the_names_that_set_takes():
    settings = {"data": {"source": "a", "options": {"train_share": 0.5, "more": {"x": 1}}}}
    assert flattened(settings) == {
        "data.source": "a",
        "data.options.train_share": 0.5,
        "data.options.more.x": 1,
    }
