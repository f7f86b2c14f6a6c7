import numpy as np
import pytest

from entourage.figures import save
from entourage.figures.steps import draw_steps


@pytest.fixture
def figure():
    return draw_steps({"recall@1": [0.5, 0.6, 0.55], "MAP@R": [0.2, 0.3, 0.4]}, "Title", "a note")


def test_lines_are_points_gained_over_the_first_step(figure):
    recall, precision, zero = figure.axes[0].lines
    np.testing.assert_allclose(recall.get_ydata(), [0, 10, 5])
    np.testing.assert_allclose(precision.get_ydata(), [0, 10, 20])
    np.testing.assert_allclose(zero.get_ydata(), [0, 0])
    assert recall.get_marker() != precision.get_marker()  # told apart without colour


def test_legend_and_axes_say_what_is_shown(figure):
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "recall@1: 50.0 → 55.0 %",
        "MAP@R: 20.0 → 40.0 %",
    ]
    plain = draw_steps({"recall@1": [0.5, 0.6]}, "Title", ends=False).axes[0].get_legend()
    assert [text.get_text() for text in plain.get_texts()] == ["recall@1"]
    assert axes.get_xlabel() == "after t steps (e₀: before)\na note"
    assert axes.get_ylabel() == "points gained over e₀"
    assert figure.get_suptitle() == "Title"
    assert axes.xaxis.get_major_formatter()(2, 0) == "e₂"


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_save_writes_the_format_of_the_name(figure, tmp_path, suffix, magic):
    save(figure, tmp_path / f"steps{suffix}")
    assert (tmp_path / f"steps{suffix}").read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [f"steps{suffix}"]
