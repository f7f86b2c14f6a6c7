"""Grids: every number in its cell, the best one marked without colour."""

import numpy as np
import pytest
from tests.figures.legible import check_legible

from entourage.errors import InputError
from entourage.figures.grid import draw_grid, draw_grids

VALUES = np.array([[61.25, 62.0, np.nan], [60.0, 64.04, 63.0]])


def grid(values=VALUES, rows=(1, 2), columns=(2, 4, 8), **options):
    return draw_grid(values, rows, columns, "blocks", "neighbours", "Title", value_title="recall@1, %", **options)


def numbers(figure) -> dict[tuple[int, int], str]:
    return {
        (int(text.get_position()[1]), int(text.get_position()[0])): text.get_text() for text in figure.axes[0].texts
    }


def test_every_cell_says_its_number():
    figure = grid()
    assert numbers(figure) == {
        (0, 0): "61.2",
        (0, 1): "62.0",
        (0, 2): "–",
        (1, 0): "60.0",
        (1, 1): "★ 64.0",
        (1, 2): "63.0",
    }
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array().filled(np.nan), VALUES)
    check_legible(figure)


def test_axes_name_the_settings_and_the_title_what_is_measured():
    (axes,) = grid().axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "4", "8"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2"]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left")) == ("neighbours", "blocks", "recall@1, %")


def test_scores_stand_side_by_side_with_what_is_in_use_and_what_raw_vectors_have():
    scores = {"recall@1, %": VALUES, "MAP@R, %": VALUES / 2}
    raw = {"recall@1, %": 70.0, "MAP@R, %": 20.0}
    figure = draw_grids(scores, (4, 8), (1, 2, 3), "k", "T", "Title", references=raw, used=(8, 3))
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["recall@1, %   raw vectors: ★ 70.0", "MAP@R, %   raw vectors: 20.0"]  # nothing is as good as raw
    for axes, starred in zip(figure.axes, ([], ["★ 32.0"]), strict=True):
        assert [text.get_text() for text in axes.texts if text.get_text().startswith("★")] == starred
        bold = [
            label.get_text()
            for label in axes.get_yticklabels() + axes.get_xticklabels()
            if label.get_fontweight() == "bold"
        ]
        assert bold == ["8", "3"]
        (dashed,) = [patch for patch in axes.patches if patch.get_linestyle() != "solid"]
        assert (dashed.get_x() + dashed.get_width() / 2, dashed.get_y() + dashed.get_height() / 2) == pytest.approx(
            (2, 1)
        )
    assert figure.get_supxlabel() == "★ best; dashed: in use (k = 8, T = 3)"
    check_legible(figure)


def test_a_few_tenths_are_not_the_whole_way_from_dark_to_light():
    low, high = grid(np.array([[50.0, 50.1, 50.2], [50.1, 50.3, 50.2]])).axes[0].images[0].get_clim()
    assert high - low == pytest.approx(2.0) and (low + high) / 2 == pytest.approx(50.15)


def test_the_best_is_framed_starred_and_bold():
    axes = grid().axes[0]
    (frame,) = axes.patches
    assert (frame.get_x() + frame.get_width() / 2, frame.get_y() + frame.get_height() / 2) == pytest.approx((1, 1))
    assert [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"] == ["★ 64.0"]


def test_equal_bests_are_all_marked():
    assert [text for text in numbers(grid(np.full((2, 3), 50.0))).values()] == ["★ 50.0"] * 6


def test_spreads_stand_beneath_where_they_are_known():
    figure = grid(spread=[[0.5, np.nan, np.nan], [1.0, 0.25, 2.0]])
    said = numbers(figure)
    assert (said[0, 0], said[0, 1], said[1, 1]) == ("61.2\n± 0.5", "62.0", "★ 64.0\n± 0.2")
    check_legible(figure)


def test_dark_cells_have_light_numbers_and_light_cells_dark_ones():
    texts = {text.get_text(): text.get_color() for text in grid().axes[0].texts}
    assert texts["60.0"] == "white" and texts["★ 64.0"] != "white"


@pytest.mark.parametrize(("shape", "columns"), [((1, 1), (2,)), ((8, 8), range(8))])
def test_small_and_large_grids_can_be_read(shape, columns):
    check_legible(grid(np.random.default_rng(0).random(shape) * 100, range(shape[0]), columns))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"the values have shape \(2, 3\) for 2 rows and 2 columns; wanted \(2, 2\)"):
        grid(columns=(2, 4))
    with pytest.raises(InputError, match=r"the spreads have shape \(1, 3\) for 2 rows and 3 columns"):
        grid(spread=[[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="no cell of the grid has a value"):
        grid(np.full((2, 3), np.nan))
