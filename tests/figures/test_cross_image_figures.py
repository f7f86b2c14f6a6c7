"""Attention maps, gradient histograms and part sheets: what is drawn where, and that nothing is cut off."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from tests.figures.legible import check_legible

from entourage.errors import InputError
from entourage.figures.attention_maps import draw_attention
from entourage.figures.gradients import draw_gradients
from entourage.figures.parts import draw_parts
from entourage.figures.sheet import INK, NEUTRAL, RIGHT, WRONG

GREY, COLOUR = np.full((16, 16), 90, np.uint8), np.full((16, 12, 3), 120, np.uint8)


# ---- attention ---------------------------------------------------------------------------------------------------


def attention(seed=0, n=6) -> np.ndarray:
    maps = np.random.default_rng(seed).random((2, n, 4, 3))
    return maps / maps.sum(axis=(2, 3), keepdims=True)


@pytest.mark.parametrize("picture", [GREY, COLOUR])
def test_rows_are_the_two_attentions_and_their_squared_difference(picture):
    maps = attention()
    figure = draw_attention([picture] * 3, ["Ia: a", "I1: a", "I2: b"], maps, (2, 4, 6), "Title")
    heats = [axes.images[-1].get_array() for axes in figure.axes if len(axes.images) == 2]
    assert len(heats) == 9
    for column, block in enumerate((2, 4, 6)):
        upper, lower = 12 * maps[0, block - 1], 12 * maps[1, block - 1]
        np.testing.assert_allclose(heats[column], upper)
        np.testing.assert_allclose(heats[3 + column], (upper - lower) ** 2)
        np.testing.assert_allclose(heats[6 + column], lower)


def test_the_attention_figure_names_pictures_and_blocks_and_cuts_nothing_off():
    names = ["Ia: a class of long name", "I1: a class of long name", "I2: another"]
    figure = draw_attention([GREY] * 3, names, attention(), (1, 6), "Title")
    said = {text.get_text() for text in figure.findobj(lambda item: hasattr(item, "get_text"))}
    assert {*names, "block 1", "block 6", "Title", "squared\ndifference"} <= said
    check_legible(figure)


def test_long_names_are_cut_to_their_picture():
    names = ["Ia: a class of a name that never ends", "I1: iiiiiiiiiiiiiiiiiiiiiiiiiiiii", "I2: b"]
    figure = draw_attention([GREY] * 3, names, attention(), (1, 6), "Title")
    said = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()]
    assert said[0] == names[1] and said[2] == names[2]  # by their width, not by their letters
    assert said[1].endswith("…") and names[0].startswith(said[1][:-1])
    check_legible(figure)


def test_frames_tell_which_picture_has_the_class_of_the_first():
    figure = draw_attention([GREY] * 3, ["Ia: a", "I1: a", "I2: b"], attention(), (2,), "Title")
    frames = [patch for axes in figure.axes for patch in axes.patches if not patch.get_fill()]
    assert [to_hex(frame.get_edgecolor()) for frame in frames] == [RIGHT, INK, WRONG]
    marks = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert marks == ["✓", "✗"]


def test_the_two_attention_rows_have_one_scale():
    maps = attention()
    maps[0] *= 0.5
    figure = draw_attention([GREY] * 3, ["a", "b", "c"], maps, (2,), "Title")
    limits = [axes.images[-1].get_clim() for axes in figure.axes if len(axes.images) == 2]
    assert limits[0] == limits[2] and limits[0][1] == pytest.approx(12 * max(maps[:, 1].max(axis=(1, 2))))


def test_pictures_keep_their_shape_and_are_as_large_as_the_maps():
    figure = draw_attention([GREY] * 3, ["Ia: a", "I1: a", "I2: b"], attention(), (1, 6), "Title")
    figure.draw_without_rendering()
    shown = [axes.get_window_extent() for axes in figure.axes if axes.images and axes.get_label() != "<colorbar>"]
    assert len(shown) == 9
    np.testing.assert_allclose([(box.width, box.height) for box in shown], shown[0].width, rtol=0.01)


def test_maps_that_are_alike_look_alike():
    maps = np.full((2, 6, 4, 3), 1 / 12)
    maps[0, :, 0, 0] += 1e-5
    figure = draw_attention([GREY] * 3, ["a", "b", "c"], maps, (2,), "Title")
    heats = [axes.images[-1] for axes in figure.axes if len(axes.images) == 2]
    assert heats[1].get_clim()[1] == pytest.approx(0.01) and heats[1].norm(heats[1].get_array()).max() < 0.01


# ---- gradients ---------------------------------------------------------------------------------------------------

EDGES = np.linspace(-8, 0, 81)


def histogram(centre: float) -> np.ndarray:
    return np.histogram(np.random.default_rng(0).normal(centre, 0.4, 5000), EDGES)[0]


def test_histograms_of_three_epochs_and_medians_of_all():
    counts = {
        "baseline": {epoch: histogram(-4 - 0.1 * epoch) for epoch in range(1, 8)},
        "cross-image": {epoch: histogram(-3.5) for epoch in range(1, 10)},
    }
    figure = draw_gradients(counts, EDGES, "Title")
    *panels, medians = figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["epoch 1", "epoch 4", "epoch 7"]
    for axes, epoch in zip(panels, (1, 4, 7), strict=True):
        steps = [patch.get_data().values for patch in axes.patches]
        np.testing.assert_allclose(steps[0], 100 * counts["baseline"][epoch] / 5000)
        np.testing.assert_allclose(steps[1], 100 * counts["cross-image"][epoch] / 5000)
    assert len({axes.get_ylim() for axes in panels}) == 1 and panels[0].get_ylim()[0] == 0  # epochs are compared
    lines = medians.lines
    np.testing.assert_allclose(lines[0].get_ydata(), [-4 - 0.1 * epoch for epoch in range(1, 8)], atol=0.1)
    np.testing.assert_allclose(lines[1].get_ydata(), -3.5, atol=0.1)
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 2  # told apart without colour
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(counts)
    check_legible(figure)


def test_one_epoch_is_one_panel():
    figure = draw_gradients({"baseline": {1: histogram(-4)}}, EDGES, "Title")
    assert len(figure.axes) == 2


def test_where_nothing_was_counted_there_is_no_median():
    """An encoder without gradients has zeros alone, which have no logarithm."""
    counts = {"frozen": {1: np.zeros(80), 2: histogram(-4)}, "baseline": {1: histogram(-3), 2: histogram(-3)}}
    medians = draw_gradients(counts, EDGES, "Title").axes[-1].lines
    assert np.isnan(medians[0].get_ydata()).tolist() == [True, False]
    assert not np.isnan(medians[1].get_ydata()).any()
    figure = draw_gradients({"frozen": {1: np.zeros(80)}}, EDGES, "Title")
    assert figure.axes[0].get_xlim() == (-8, 0)
    check_legible(figure)


@pytest.mark.parametrize(
    ("counts", "seen"),
    [
        ({"a": {}}, "a has 0 epochs"),
        ({"a": {1: histogram(-4)}, "b": {2: histogram(-4)}}, "a has 1 epochs, b has 1 epochs"),
        ({}, "nothing"),
    ],
)
def test_no_epoch_to_draw_is_refused(counts, seen):
    with pytest.raises(
        InputError, match=rf"no epoch has gradients of all .*\({seen}\); wanted at least one: .* probe_batches"
    ):
        draw_gradients(counts, EDGES, "Title")


# ---- parts -------------------------------------------------------------------------------------------------------


def sheet():
    found = [{"picture": COLOUR, "place": (y, 0), "right": right} for y, right in enumerate((True, False, True))]
    queries = [
        {"picture": GREY, "name": "a class", "place": (0, 0), "found": found},
        {"picture": GREY, "name": "another", "place": (3, 3), "found": found[:2]},
    ]
    return draw_parts(queries, "Title", (4, 4))


def test_frames_and_marks_tell_right_from_wrong():
    axes = sheet().axes[0]
    assert len(axes.images) == 7
    frames = [patch for patch in axes.patches if to_hex(patch.get_edgecolor()) in (RIGHT, WRONG)]
    assert [to_hex(frame.get_edgecolor()) for frame in frames] == [RIGHT, WRONG, RIGHT, RIGHT, WRONG]
    assert len({frame.get_linestyle() for frame in frames}) == 2
    assert [text.get_text() for text in axes.texts if text.get_text() in "✓✗"] == ["✓", "✗", "✓", "✓", "✗"]


def test_without_labels_frames_say_nothing():
    found = [{"picture": GREY, "place": (0, 0), "right": None}]
    axes = draw_parts([{"picture": GREY, "name": "7", "place": (0, 0), "found": found}], "Title", (4, 4)).axes[0]
    colours = [to_hex(patch.get_edgecolor()) for patch in axes.patches if not patch.get_fill()]
    assert colours.count(NEUTRAL) == 1 and not {RIGHT, WRONG} & set(colours)


def test_a_box_stands_at_the_place_and_inside_its_picture():
    axes = sheet().axes[0]
    boxes = [patch for patch in axes.patches if to_hex(patch.get_edgecolor()) == "#f28e1c"]
    assert len(boxes) == 7
    first, last = boxes[0], boxes[4]  # the places (0, 0) and (3, 3) of the queries
    assert (first.get_x(), first.get_y()) == pytest.approx((0.06, 0.06))
    assert (last.get_x() + last.get_width(), last.get_y() + last.get_height()) == pytest.approx((0.94, 1.94))


def test_nothing_of_the_sheet_is_cut_off():
    check_legible(sheet())
