import re

import pytest
from tests.report.reading import find, read

from entourage.report.blocks import Beside, Facts, Heading, Paragraph, ScoreTable, Table, Tally, Warnings


def test_facts_are_rows_with_a_heading_and_a_value():
    html = Facts("How.", {"gallery_is": "<itself>", "queries": 5960, "clip": None}).html()
    assert [each.text for each in find(html, "th")] == ["gallery is", "queries", "clip"]
    assert [each.text for each in find(html, "td")] == ["<itself>", "5,960", "none"]
    assert {each.attributes["scope"] for each in find(html, "th")} == {"row"}
    assert [each.text for each in find(html, "caption")] == ["How."]


def test_a_table_names_its_columns_and_rows():
    html = Table("Classes.", ("class", "before"), [("a&b", "1.5"), ("ש", "2.5")]).html()
    assert [(each.attributes["scope"], each.text) for each in find(html, "th")] == [
        ("col", "class"),
        ("col", "before"),
        ("row", "a&b"),
        ("row", "ש"),
    ]
    assert [each.text for each in find(html, "td", "number")] == ["1.5", "2.5"]
    assert len(find(html, "bdi")) == 2  # names of any script leave the numbers beside them in their order


def test_warnings_have_a_sign_and_words():
    html = Warnings(["one <class>", "two"]).html()
    assert [each.text for each in find(html, "li")] == ["one <class>", "two"]
    assert "⚠ Read this first" in read(html)[0].text


def test_blocks_stand_beside_each_other():
    html = Beside([Paragraph("left"), Heading("right")]).html()
    assert [each.text for each in read(html) if each.tag in ("p", "h3")] == ["left", "right"]


def test_a_tally_is_a_bar_and_words():
    html = Tally((3, "got better"), (1, "got worse"), (2000, "unchanged")).html()
    assert [each.text for each in find(html, "li")] == ["▲ 3 got better", "2,000 unchanged", "▼ 1 got worse"]
    shares = [each.attributes["style"] for each in find(html, "span") if "style" in each.attributes]
    assert shares == ["--share: 3", "--share: 2000", "--share: 1"]


def test_what_is_none_has_no_place_in_the_bar():
    html = Tally((3, "found"), (0, "missed"), marks=("✓", "✗")).html()
    assert [each.text for each in find(html, "li")] == ["✓ 3 found", "✗ 0 missed"]
    assert sum("style" in each.attributes for each in find(html, "span")) == 1


# ---- scores ----------------------------------------------------------------------------------------------------

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


def test_intervals_are_drawn_on_one_scale(html):
    """From -5 to +15 points over 204 pixels: zero at a quarter of them."""
    bars = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
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
