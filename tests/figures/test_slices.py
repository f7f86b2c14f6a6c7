"""Pictures of slices: what is drawn is what was given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image
from tests.figures.legible import check_legible

from entourage.figures import save
from entourage.figures.sheet import NEUTRAL
from entourage.figures.slices import draw_first_slices, draw_specialities

RECALLS = {"baseline": {1: [0.2, 0.3, 0.35], 4: [0.4, 0.5, 0.6]}, "divided": {1: [0.1, 0.3, 0.5], 4: [0.3, 0.5, 0.7]}}


def test_a_panel_for_each_k_and_a_line_for_each_model():
    figure = draw_first_slices(RECALLS, "unseen classes")
    assert [axes.get_title() for axes in figure.axes] == ["recall@1", "recall@4"]
    for axes, k in zip(figure.axes, (1, 4), strict=True):
        lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
        for model, by_k in RECALLS.items():
            np.testing.assert_allclose(lines[model], [[m + 1, 100 * by_k[k][m]] for m in range(3)])
        styles = {(line.get_linestyle(), line.get_marker()) for line in axes.get_lines()}
        assert len(styles) == len(RECALLS)  # told apart without colour
        assert axes.get_xlabel() == "first m slices"
        assert axes.get_ylim() == figure.axes[0].get_ylim()  # panels are compared
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(RECALLS)
    check_legible(figure)


@pytest.mark.parametrize("colours", [False, True])
def test_a_row_for_each_learner_with_the_pictures_it_alone_finds(tmp_path, colours):
    picture = Image.new("RGB" if colours else "L", (9, 7))
    figure = draw_specialities([[picture] * 3, [], [np.asarray(picture)] * 12], [3, 0, 40], "only one finds", most=5)
    (axes,) = figure.axes
    rows = [int(image.get_extent()[2]) for image in axes.get_images()]
    assert [rows.count(place) for place in range(3)] == [3, 0, 5]
    assert all(patch.get_fill() or to_hex(patch.get_edgecolor()) == NEUTRAL for patch in axes.patches)
    check_legible(figure)
    said = [text.get_text() for text in axes.texts]
    assert said == ["only one finds", "learner 1\n3 found", "learner 2\n0 found", "learner 3\n40 found"]
    save(figure, tmp_path / "f.png")
    with Image.open(tmp_path / "f.png") as drawn:
        assert drawn.size[0] > 300
