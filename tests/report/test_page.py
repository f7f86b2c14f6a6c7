from tests.report.reading import check_whole, find

from entourage.report.blocks import Facts, Paragraph
from entourage.report.page import Page, Section

PAGE = Page(
    "a <b> run",
    "It rose & fell.",
    [
        Section("Scores", [Paragraph("five < six")]),
        Section("Wins and losses", []),
        Section("Settings", [Facts("All of them.", {"k": 8})]),
    ],
    lede='so "much"',
    footer="made by $hand",
)


def test_what_is_said_stands_on_the_page_as_text():
    html = PAGE.html()
    check_whole(html)
    assert [each.text for each in find(html, "h1")] == ["a <b> run"]
    assert [each.text for each in find(html, "title")] == ["a <b> run"]
    assert [each.text for each in find(html, "p", "headline")] == ["It rose & fell."]
    assert [each.text for each in find(html, "p", "lede")] == ['so "much"']
    assert [each.text for each in find(html, "footer")] == ["made by $hand"]
    assert "five < six" in [each.text for each in find(html, "p")]


def test_sections_without_content_are_left_out_of_page_and_contents():
    html = PAGE.html()
    assert [each.text for each in find(html, "h2")] == ["Scores", "Settings"]
    assert [(each.attributes["href"], each.text) for each in find(html, "a")] == [
        ("#scores", "Scores"),
        ("#settings", "Settings"),
    ]


def test_a_policy_forbids_scripts_and_the_network():
    policies = [each.attributes["content"] for each in find(PAGE.html(), "meta") if "http-equiv" in each.attributes]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


def test_styles_know_light_dark_and_small_screens_and_fetch_nothing():
    style = find(PAGE.html(), "style")[0].text
    assert "prefers-color-scheme: dark" in style and "max-width: 46rem" in style
    assert "url(" not in style and "@import" not in style


def test_no_lede_leaves_no_empty_paragraph():
    assert not find(Page("a", "b", []).html(), "p", "lede")
