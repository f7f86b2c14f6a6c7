import pytest

from entourage.report.wording import change_mark, changes_in_words, flattened, metric_meaning, metric_title, readable

BEFORE = {"recall@1": 0.5, "recall@2": 0.75, "map@r": 0.4, "nmi": 0.9}
AFTER = {"recall@1": 0.625, "recall@2": 0.7, "map@r": 0.41, "nmi": 0.9}
INTERVALS = {
    "recall@1": {"difference": 0.125, "low": 0.1, "high": 0.15},
    "map@r": {"difference": 0.01, "low": -0.05, "high": 0.07},
}


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


def test_the_sentence_says_a_verb_once_and_what_stayed():
    up = {"low": 0.01, "high": 0.1}
    both = changes_in_words(BEFORE, AFTER, {"recall@1": up, "map@r": up}, ["recall@1", "map@r"])
    assert both == "raised recall@1 from 50.0 to 62.5 % and MAP@R from 40.0 to 41.0 %"
    mixed = changes_in_words(BEFORE, AFTER, INTERVALS, ["map@r", "recall@2"])
    assert mixed == "left MAP@R about the same (40.0 to 41.0 %) and lowered recall@2 from 75.0 to 70.0 %"


def test_metrics_are_named_and_explained():
    assert metric_meaning("recall@8") == "one of 8 is right" and metric_meaning("seconds") == ""
    assert metric_title("map-trapezoid") == "mAP, trapezoid"


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
