"""Figures on disk: the format is the ending's, and the same figure gives the same file."""

import pytest
from matplotlib.figure import Figure
from PIL import Image

from entourage.errors import InputError
from entourage.figures import save


@pytest.fixture
def figure():
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([1, 2], label="a line")
    return figure


@pytest.mark.parametrize("ending", ["png", "pdf", "svg", "PNG"])
def test_the_same_figure_gives_the_same_file(figure, tmp_path, ending):
    for name in ("first", "second"):
        save(figure, tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"first.{ending}").read_bytes() == (tmp_path / f"second.{ending}").read_bytes()


def test_pixels_are_150_an_inch(figure, tmp_path):
    save(figure, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as written:
        assert written.size == (300, 150)


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.mp4"])
def test_other_endings_are_refused(figure, tmp_path, name):
    with pytest.raises(InputError, match=rf"{name}; wanted a name that ends in \.png, \.pdf, \.svg"):
        save(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
