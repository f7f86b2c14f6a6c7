"""Sheets of queries: who stands where, how it is framed, and that everything can be read."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from tests.figures.legible import check_legible

from entourage.data.arrays import ImageArray
from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.retrieval import choose_queries, draw_retrieval
from entourage.figures.sheet import INK, NEUTRAL, RIGHT, WRONG
from entourage.values import Neighbors

PIXELS = np.arange(4, dtype=np.uint8)[:, None, None] * np.full((4, 8, 8), 60, np.uint8)
IMAGES = Appearance.of(ImageArray(PIXELS, ["a", "a", "b", "b"]))
SIMILARITIES = np.tile([0.9, 0.8], (4, 1))
BEFORE = Neighbors([[2, 1], [0, 2], [3, 0], [2, 0]], SIMILARITIES)
AFTER = Neighbors([[1, 2], [0, 3], [3, 1], [2, 1]], SIMILARITIES)
GAINS = np.array([0.5, 0.0, -0.25, 0.0])
TEXTS = ["how do you spell out wednesday", "spell water", "set an alarm for ten minutes to eight", "wake me at $6"]
MARKS = ["✗", "✓", "✓", "✗", "✓", "✗", "✓", "✗"]


def sheet(queries=IMAGES, before=BEFORE, gains=GAINS, **options):
    return draw_retrieval(queries, before, AFTER, np.array([0, 2]), gains, "Title", **options)


def frames(figure) -> list[str]:
    return [to_hex(patch.get_edgecolor()) for patch in figure.axes[0].patches if not patch.get_fill()]


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def marks(figure) -> list[str]:
    return [said for said in words(figure) if said in "✓✗"]


# ---- pictures ----------------------------------------------------------------------------------------------------


def test_each_query_shows_itself_and_its_neighbours_before_and_after():
    shown = [int(picture.get_array().max()) // 60 for picture in sheet().axes[0].images]
    assert shown == [0, 2, 1, 1, 2, 2, 3, 0, 3, 1]


def test_frames_and_marks_tell_right_from_wrong():
    figure = sheet()
    assert frames(figure) == [INK, WRONG, RIGHT, RIGHT, WRONG, INK, RIGHT, WRONG, RIGHT, WRONG]
    assert marks(figure) == MARKS
    lines = {str(patch.get_linestyle()) for patch in figure.axes[0].patches if not patch.get_fill()}
    assert len(lines) == 2


def test_captions_name_the_label_the_item_and_the_change():
    captions = {"a\nitem 0\n▲ +50 AP@R", "b\nitem 2\n▼ −25 AP@R"}
    assert {"Title", "query", "before", "after"} | captions <= set(words(sheet()))


def test_without_a_ranking_before_there_is_one_alone():
    figure = sheet(before=None, gains=None)
    shown = [int(picture.get_array().max()) // 60 for picture in figure.axes[0].images]
    assert shown == [0, 1, 2, 2, 3, 1]
    assert {"nearest", "a\nitem 0", "b\nitem 2"} <= set(words(figure)) and "before" not in words(figure)
    check_legible(figure)


def test_without_labels_frames_say_nothing_and_queries_are_named_by_id():
    figure = sheet(Appearance(np.array(["x", "y", "z", "w"]), picture=IMAGES.picture), gains=None)
    assert frames(figure) == [INK, *[NEUTRAL] * 4, INK, *[NEUTRAL] * 4] and not marks(figure)
    assert {"item x", "item z"} <= set(words(figure))


def test_neighbours_are_rows_of_the_gallery_where_one_is_given():
    gallery = Appearance.of(ImageArray(PIXELS[::-1], ["b", "a", "a", "c"]))
    figure = sheet(gallery=gallery)
    shown = [int(picture.get_array().max()) // 60 for picture in figure.axes[0].images]
    assert shown == [0, 1, 2, 2, 1, 2, 0, 3, 0, 2]
    assert marks(figure) == ["✓", "✓", "✓", "✓", "✗", "✓", "✗", "✗"]


def test_a_damaged_picture_is_shown_by_its_id():
    from entourage.errors import CorruptImage

    def picture(row):
        if row == 3:
            raise CorruptImage("file.png", "it is empty")
        return IMAGES.picture(row)

    figure = sheet(Appearance(np.array(["p0", "p1", "p2", "p3"]), IMAGES.labels, picture))
    assert len(figure.axes[0].images) == 8 and words(figure).count("p3") == 2


@pytest.mark.parametrize("label", ["a", "an exceedingly long name of a class that nobody could ever print on one line"])
def test_nothing_of_a_picture_sheet_is_cut_off(label):
    shown = Appearance(np.arange(4), np.array([label, label, "b", "b"]), IMAGES.picture)
    check_legible(sheet(shown))


# ---- texts and ids -----------------------------------------------------------------------------------------------


def test_texts_stand_in_lists_with_their_labels_beside_them():
    figure = sheet(Appearance(np.arange(4), np.array(["a", "a", "b", "b"]), texts=TEXTS))
    assert not figure.axes[0].images
    listed = [said for said in words(figure) if said in TEXTS]
    assert listed == [TEXTS[row] for row in (0, 2, 1, 1, 2, 2, 3, 0, 3, 1)]
    assert frames(figure) == [INK, WRONG, RIGHT, RIGHT, WRONG, INK, RIGHT, WRONG, RIGHT, WRONG]
    assert marks(figure) == MARKS
    assert [said for said in words(figure) if said in "ab"] == ["b", "a", "a", "b", "b", "a", "b", "a"]
    assert {"item 0: a   ▲ +50 AP@R", "item 2: b   ▼ −25 AP@R"} <= set(words(figure))
    check_legible(figure)


def test_long_labels_of_texts_are_cut():
    label = "a_label_of_many_words_" * 6
    figure = sheet(Appearance(np.arange(4), np.array([label, label, "b", "b"]), texts=TEXTS))
    assert any(said.startswith("item 0: a_label") and said.endswith("…   ▲ +50 AP@R") for said in words(figure))
    check_legible(figure)


def test_texts_that_need_two_lines_get_them():
    long = [f"{text} and then tell me everything about it that there is to know" for text in TEXTS]
    plain, wide = (sheet(Appearance(np.arange(4), texts=texts), gains=None) for texts in (TEXTS, long))
    assert wide.get_size_inches()[1] > plain.get_size_inches()[1]
    assert sum("\n" in said for said in words(wide)) == 8
    assert not any("…" in said for said in words(wide))
    check_legible(wide)


@pytest.mark.parametrize("labels", [None, np.array(["a", "a", "b", "b"])])
@pytest.mark.parametrize("before", [None, BEFORE])
def test_without_pictures_and_texts_ids_are_listed(labels, before):
    figure = sheet(Appearance(np.array(["i0", "i1", "i2", "i3"]), labels), before=before, gains=None)
    rows = (1, 2, 3, 1) if before is None else (2, 1, 1, 2, 3, 0, 3, 1)
    assert [said for said in words(figure) if said in ("i0", "i1", "i2", "i3")] == [f"i{row}" for row in rows]
    assert {"item i0", "item i2"} <= {said.split(":")[0] for said in words(figure)}
    assert (set(frames(figure)) == {NEUTRAL}) == (labels is None)
    check_legible(figure)


def test_where_no_query_was_chosen_the_sheet_says_so():
    figure = draw_retrieval(IMAGES, BEFORE, AFTER, choose_queries(np.zeros(4), 2, 2), GAINS, "Gains " * 30)
    assert words(figure)[1] == "There is no such query." and words(figure)[0].endswith("…")
    check_legible(figure)


@pytest.mark.parametrize("name", ["before", "after"])
def test_neighbours_of_other_queries_are_refused(name):
    few = Neighbors(BEFORE.rows[:3], BEFORE.similarities[:3])
    both = {"before": BEFORE, "after": AFTER} | {name: few}
    with pytest.raises(InputError, match=f"{name} has neighbours of 3 queries; wanted those of all 4"):
        draw_retrieval(IMAGES, both["before"], both["after"], np.array([0]), GAINS, "Title")


# ---- choosing ----------------------------------------------------------------------------------------------------


def test_chosen_queries_are_real_gains_and_losses():
    gains = np.array([0.0, 0.3, -0.1, 0.3, -0.4, 0.0])
    assert choose_queries(gains, 3, 3).tolist() == [1, 3, 4, 2]
    assert choose_queries(np.zeros(5), 2, 2).tolist() == []
    assert choose_queries(np.array([-0.2, -0.2]), 0, 1).tolist() == [0]  # ties by row
