"""Cells: a picture that is not distorted, a text that keeps to its frame, and frames that speak without colour."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image
from tests.figures.legible import check_legible

from entourage.figures.appearance import Appearance
from entourage.figures.sheet import INK, NEUTRAL, RIGHT, WRONG, draw_cell, new_sheet, write

TEXT = "what type of socket converter do i need in south africa, and where can i buy one before i travel there"


def sheet(appearance, right=None, **options):
    figure, axes = new_sheet(0, 3, 0, 2, 1.0)
    draw_cell(axes, appearance, 0, 0.5, 0.5, right, **options)
    return figure, axes


def frame_of(axes):
    return next(patch for patch in axes.patches if not patch.get_fill())


def test_a_unit_is_as_many_inches_in_both_directions():
    figure, axes = new_sheet(-1, 3, -0.5, 1.5, 0.7)
    assert tuple(figure.get_size_inches()) == pytest.approx((2.8, 1.4))
    assert axes.get_xlim() == (-1, 3) and axes.get_ylim() == (1.5, -0.5)


@pytest.mark.parametrize(("size", "wanted"), [((40, 20), (1.0, 0.5)), ((20, 40), (0.5, 1.0)), ((20, 20), (1.0, 1.0))])
def test_a_picture_is_whole_undistorted_and_in_the_middle(size, wanted):
    _, axes = sheet(Appearance(np.array([0]), picture=lambda row: Image.new("RGB", size)), inset=0)
    left, right, bottom, top = axes.images[0].get_extent()
    assert (right - left, bottom - top) == pytest.approx(wanted)
    assert ((left + right) / 2, (top + bottom) / 2) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize(
    ("right", "options", "colour", "line", "marks"),
    [
        (True, {}, RIGHT, "-", ["✓"]),
        (False, {}, WRONG, "--", ["✗"]),
        (None, {}, NEUTRAL, "-", []),
        (None, {"edge": INK}, INK, "-", []),
    ],
)
def test_frames_speak_by_colour_line_and_mark(right, options, colour, line, marks):
    _, axes = sheet(Appearance(np.array([0]), picture=lambda row: Image.new("L", (8, 8))), right, **options)
    frame = frame_of(axes)
    assert to_hex(frame.get_edgecolor()) == colour
    assert ("-" if frame.get_linestyle() in ("-", "solid") else "--") == line
    assert [text.get_text() for text in axes.texts] == marks


@pytest.mark.parametrize("right", [True, None])
@pytest.mark.parametrize("size", [7, 9])
@pytest.mark.parametrize(("width", "height"), [(2.2, 0.5), (1.1, 0.8), (2.4, 0.3)])
def test_a_text_stays_within_its_frame_and_clear_of_the_mark(right, size, width, height):
    figure, axes = sheet(Appearance(np.array([0]), texts=[TEXT]), right, width=width, height=height, size=size)
    figure.draw_without_rendering()
    said = max(axes.texts, key=lambda text: len(text.get_text()))
    assert said.get_text().endswith("…")
    inner, outer = said.get_window_extent(), frame_of(axes).get_window_extent()
    assert outer.x0 < inner.x0 and inner.x1 < outer.x1
    assert outer.y0 - 1 <= inner.y0 and inner.y1 <= outer.y1 + 1
    check_legible(figure)


def test_without_picture_and_text_the_id_is_shown():
    _, axes = sheet(Appearance(np.array(["item 7"]), np.array(["a"])))
    assert [text.get_text() for text in axes.texts] == ["item 7"] and not axes.images


def test_texts_are_written_as_they_are():
    figure, axes = new_sheet(0, 3, 0, 2, 1.0)
    written = write(axes, 1, 1, "from $5 to $6", size=8)
    figure.draw_without_rendering()
    assert written.get_text() == "from $5 to $6" and not written.get_parse_math()


def test_words_in_a_row_are_level_whatever_their_letters():
    figure, axes = new_sheet(0, 3, 0, 2, 1.0)
    plain, deep = (write(axes, x, 1, said, size=9) for x, said in ((0, "before"), (1, "query")))
    two = write(axes, 2, 1, "one\ntwo", size=9)
    figure.draw_without_rendering()
    assert plain.get_position() == deep.get_position()  # of their feet
    middle = figure.get_size_inches()[1] * figure.dpi / 2
    box = two.get_window_extent()
    assert (box.y0 + box.y1) / 2 == pytest.approx(middle, abs=3)
