import re

import pytest
from tests.report.reading import find

from entourage.report.scores import ScoreTable, change_mark, changes_in_words, metric_meaning, metric_title

BEFORE = {"recall@1": 0.5, "recall@2": 0.75, "map@r": 0.4, "nmi": 0.9}
AFTER = {"recall@1": 0.625, "recall@2": 0.7, "map@r": 0.41, "nmi": 0.9}
INTERVALS = {
    "recall@1": {"difference": 0.125, "low": 0.1, "high": 0.15},
    "map@r": {"difference": 0.01, "low": -0.05, "high": 0.07},
}


@pytest.fixture
def html():
    return ScoreTable("In percent.", AFTER, BEFORE, INTERVALS).html()


def test_each_row_has_both_scores_and_the_change_with_its_interval(html):
    cells = [each.text for each in find(html, "td", "number")]
    assert cells[:3] == ["50.00", "62.50", "▲ +12.50+10.00 to +15.00"]
    assert cells[3:6] == ["75.00", "70.00", "▽ −5.00"]
    assert cells[6:9] == ["40.00", "41.00", "≈ +1.00−5.00 to +7.00"]
    assert cells[9:] == ["90.00", "90.00", "= 0.00"]


def test_marks_have_words_for_those_who_cannot_see_them(html):
    marks = [(each.text, each.attributes["aria-label"]) for each in find(html, "span")]
    assert marks == [("▲", "better"), ("▽", "lower"), ("≈", "no clear change"), ("=", "the same")]


def test_names_are_those_of_papers_with_what_they_mean(html):
    rows = [each.text for each in find(html, "th") if each.attributes["scope"] == "row"]
    assert rows[0] == "Recall@1the nearest is right" and rows[2] == "MAP@Rright ones first"
    assert metric_meaning("recall@8") == "one of 8 is right" and metric_meaning("seconds") == ""
    assert metric_title("map-trapezoid") == "mAP, trapezoid"


def test_intervals_are_drawn_on_one_scale(html):
    """From -5 to +15 points over 204 pixels: zero at a quarter of them."""
    bars = re.findall(r"<svg.*?</svg>", html)
    assert len(bars) == 2  # of the rows that have an interval
    zeros = {re.search(r'd="M([\d.]+) 0V', bar)[1] for bar in bars}
    assert zeros == {f"{8 + 204 / 4:.1f}"}
    start, end = re.search(r'd="M([\d.]+) [\d.]+H([\d.]+)"', bars[0]).groups()
    assert float(start) == pytest.approx(8 + 204 * 0.75, abs=0.1) and float(end) == pytest.approx(212, abs=0.1)
    assert all("aria-hidden" in bar for bar in bars)


def test_why_nmi_has_no_interval_is_said_where_others_have_one(html):
    assert find(html, "caption")[0].text == "In percent. NMI has no interval: it is no mean over queries."
    without = [ScoreTable("In percent.", AFTER, BEFORE), ScoreTable("In percent.", {"map@r": 0.5}, None, INTERVALS)]
    assert [find(table.html(), "caption")[0].text for table in without] == ["In percent."] * 2


def test_without_intervals_there_is_no_column_for_them():
    html = ScoreTable("In percent.", AFTER, BEFORE).html()
    assert [each.text for each in find(html, "th")][:4] == ["metric", "before", "after", "change"]
    assert "<svg" not in html and not find(html, "small", "interval")


def test_intervals_of_no_width_are_drawn_too():
    same = {"recall@1": {"difference": 0.0, "low": 0.0, "high": 0.0}}
    assert "<svg" in ScoreTable("", {"recall@1": 1.0}, {"recall@1": 1.0}, same).html()


def test_a_single_state_has_scores_and_intervals_of_its_own():
    html = ScoreTable("In percent.", {"recall@1": 0.5, "nmi": 0.25}, intervals={"recall@1": {"low": 0.4, "high": 0.6}})
    assert [each.text for each in find(html.html(), "td")] == ["50.0040.00 to 60.00", "25.00"]
    assert [each.text for each in find(html.html(), "th")][:2] == ["metric", "score (95 % interval)"]


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
