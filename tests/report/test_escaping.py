"""Labels, ids and texts of any content stand on the page as text: none of them becomes markup."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.report.conftest import items_of
from tests.report.reading import check_whole, find, read

import entourage.report
from entourage.report.blocks import Beside, Facts, Heading, Paragraph, ScoreTable, Table, Tally, Warnings
from entourage.report.page import Page, Section
from entourage.report.pictures import Picture
from entourage.report.rankings import Cell, Ranking
from entourage.report.refinement import refinement_page
from entourage.runs.media import Media
from entourage.runs.refine import write_refinement
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></table></main><iframe src=//example.org>",
    "{{ 7 * 7 }}{% include 'style.css' %}",
    "&lt;b&gt; &amp; <!--",
]


def blocks_of(text: str) -> list:
    cell = Cell(text, False, None, f"text {text}")
    picture = Cell(text, True, f"data:,{text}")
    return [
        Paragraph(text),
        Heading(text),
        Warnings([text]),
        Facts(text, {text: text}),
        Table(text, (text, text), [(text, text)]),
        Beside([Paragraph(text)]),
        Tally((1, text), (2, text), (3, text), marks=(text, text)),
        ScoreTable(text, {text: 0.5}, {text: 0.25}, {text: {"difference": 0.25, "low": 0.1, "high": 0.3}}),
        Picture(f"data:,{text}", 100, text, text, is_chart=True, narrow_uri=f"data:,{text}"),
        Ranking(text, f"id {text}", text, cell, [cell, picture], [picture]),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_part_of_a_page_takes_a_text_for_markup(text):
    harmless, hostile = (
        Page(given, given, [Section("All", blocks_of(given))], lede=given, footer=given).html()
        for given in ("harmless", text)
    )
    check_whole(hostile)
    shape = [[(each.tag, set(each.attributes)) for each in read(html)] for html in (harmless, hostile)]
    assert shape[0] == shape[1]
    seen = " ".join(text.split())
    assert [each.text for each in find(hostile, "h1")] == [seen]
    assert [each.text for each in find(hostile, "td") if "dir" in each.attributes] == [seen]
    assert find(hostile, "img")[0].attributes["alt"] == text


def test_a_run_full_of_hostile_names_has_the_page_of_any_other(refiner, tmp_path):
    items = items_of(3)
    names = np.array(HOSTILE)[np.arange(len(items)) // 10]
    ids = np.array([f"{name} {row}" for row, name in enumerate(names)])
    hostile = Embeddings.from_vectors(items.vectors, ids, names)
    media = Media(texts=[f"{name} text {row}" for row, name in enumerate(names)])
    html = refinement_page(write_refinement(tmp_path / "run", refiner, hostile, media=media), []).html()
    check_whole(html)
    assert {each.text for each in find(html, "h4")} <= set(HOSTILE)
    shown = [each.text for each in find(html, "li", "cell")]
    assert shown and all(any(name in text for name in HOSTILE) for text in shown)


def test_no_template_takes_a_value_for_safe():
    templates = sorted(Path(entourage.report.__file__).parent.joinpath("templates").glob("*.html"))
    assert [each.name for each in templates] == ["blocks.html", "page.html"]
    for each in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", each.read_text(encoding="utf-8")), each.name
