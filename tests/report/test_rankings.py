import numpy as np
from PIL import Image
from tests.report.reading import find

from entourage.figures.appearance import Appearance
from entourage.report.classes import means_by_class
from entourage.report.rankings import Cell, Ranking, cells_of

RIGHT, WRONG = Cell("cat", True, "data:image/png;base64,AA"), Cell("dog", False, "data:image/png;base64,BB")


def test_pictures_are_framed_marked_and_told():
    html = Ranking("cat", "7", "note", Cell("cat", None, "data:,"), [RIGHT, WRONG], [WRONG, RIGHT]).html()
    assert [each.kinds for each in find(html, "li")] == [
        {"cell", "wrong"},
        {"cell", "right"},
        {"cell", "right"},
        {"cell", "wrong"},
    ]
    assert [each.text for each in find(html, "span", "mark")] == ["✗", "✓", "✓", "✗"]
    assert [each.attributes["alt"] for each in find(html, "img")] == [
        "cat",
        "dog, wrong",
        "cat, right",
        "cat, right",
        "dog, wrong",
    ]
    assert [each.attributes["aria-label"] for each in find(html, "ol")] == [
        "before, nearest first",
        "after, nearest first",
    ]
    assert [each.text for each in find(html, "header")] == ["catnoteitem 7"]


def test_a_single_state_has_one_list():
    html = Ranking("cat", "cat", "", RIGHT, [RIGHT]).html()
    assert find(html, "article")[0].kinds == {"ranking", "alone"} and "item" not in find(html, "header")[0].text
    assert [each.attributes["aria-label"] for each in find(html, "ol")] == ["found, nearest first"]


def test_texts_stand_below_each_other_and_only_wrong_ones_are_named():
    said = [Cell("hours", True, None, "when do you <open>"), Cell("menu", False, None, "what is for lunch")]
    html = Ranking("hours", "3", "", Cell("hours", None, None, "opening times today"), said).html()
    assert "words" in find(html, "article")[0].kinds
    assert [each.text for each in find(html, "li")] == [
        "right: when do you <open>✓",
        "wrong: what is for lunchmenu✗",
    ]


def test_short_ids_stand_side_by_side_without_frames_that_judge():
    html = Ranking("66", "66", "", Cell("66", None, None, "66"), [Cell("65", None, None, "65")]).html()
    assert "ids" in find(html, "article")[0].kinds
    assert find(html, "li")[0].kinds == {"cell"} and not find(html, "span", "mark")


def test_a_long_text_is_cut():
    shown = find(Cell("a", None, None, "word " * 100).html(), "bdi")[0].text
    assert len(shown) <= 160 and shown.endswith("word…")


def test_cells_show_what_is_known():
    queries = Appearance(np.array([1]), np.array(["a"]), lambda row: Image.new("L", (8, 8)))
    gallery = Appearance(np.array([4, 5]), np.array(["a", "b"]), texts=["one", "two"])
    query, found = cells_of(queries, 0, gallery, np.array([1, 0]))
    assert query.uri.startswith("data:image/") and query.right is None
    assert [(cell.name, cell.text, cell.right, cell.uri) for cell in found] == [
        ("b", "two", False, None),
        ("a", "one", True, None),
    ]
    unlabelled = Appearance(np.array([4, 5]))
    assert [cell.right for cell in cells_of(queries, 0, unlabelled, np.array([1, 0]))[1]] == [None, None]


def test_means_of_classes_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    labels, values = rng.integers(0, 5, 50), rng.random((2, 50))
    names, sizes, means = means_by_class(labels, *values)
    for place, name in enumerate(names):
        members = [row for row in range(50) if str(labels[row]) == name]
        assert sizes[place] == len(members)
        for column, mean in zip(values, means, strict=True):
            np.testing.assert_allclose(mean[place], sum(column[row] for row in members) / len(members))


def test_what_scores_leave_out_is_neither_right_nor_wrong_and_numbers_match_their_text():
    queries = Appearance(np.array(["q"]), np.array([7]), cameras=np.array([1]))
    gallery = Appearance(np.arange(3), np.array(["7", "7", "9"]), cameras=np.array([1, 2, 1]))
    _, cells = cells_of(queries, 0, gallery, [0, 1, 2])
    assert [cell.right for cell in cells] == [None, True, False]
