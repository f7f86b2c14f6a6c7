import pytest
from tests.report.reading import find, read

from entourage.report.blocks import Beside, Doubts, Facts, Heading, Paragraph, Table, flattened, told


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


def test_doubts_are_told_by_words_and_a_sign():
    html = Doubts(["one <class>", "two"]).html()
    assert [each.text for each in find(html, "li")] == ["one <class>", "two"]
    assert "⚠ To be read first" in read(html)[0].text


def test_blocks_stand_beside_each_other():
    html = Beside([Paragraph("left"), Heading("right")]).html()
    assert [each.text for each in read(html) if each.tag in ("p", "h3")] == ["left", "right"]


@pytest.mark.parametrize(
    ("value", "text"), [(False, "no"), ((), "none"), ({}, "none"), ([1, None], "1, none"), (1e-7, "1e-07"), (0, "0")]
)
def test_values_are_told_as_people_write_them(value, text):
    assert told(value) == text


def test_settings_within_settings_have_the_names_that_set_takes():
    settings = {"data": {"source": "a", "options": {"train_share": 0.5, "more": {"x": 1}}}}
    assert flattened(settings) == {
        "data.source": "a",
        "data.options.train_share": 0.5,
        "data.options.more.x": 1,
    }
