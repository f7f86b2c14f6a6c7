import base64
import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from tests.report.reading import find

from entourage.report import pictures
from entourage.report.pictures import Picture, picture_uri


def chart(title="Title", size=(7.5, 4.6)):
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1, 2], [0, 2, 1])
    axes.set_title(title, loc="left")
    return figure


def content(uri: str) -> bytes:
    return base64.b64decode(uri.partition(",")[2])


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(content(uri)))


def test_a_chart_is_drawn_as_shapes_and_may_turn_dark():
    picture = Picture.of(chart(), "what it shows", "how to read it")
    assert picture.uri.startswith("data:image/svg+xml;base64,") and picture.is_chart and picture.width == 720
    drawn = content(picture.uri).decode()
    assert drawn.startswith("<svg") and "DOCTYPE" not in drawn and "<text" not in drawn
    html = picture.html()
    assert find(html, "figure")[0].kinds == {"chart"}
    image = find(html, "img")[0].attributes
    assert (image["alt"], image["style"]) == ("what it shows", "--natural: 720px")
    assert find(html, "figcaption")[0].text == "how to read it"


def test_the_same_figure_gives_the_same_bytes():
    assert Picture.of(chart(), "", "").uri == Picture.of(chart(), "", "").uri


def test_a_figure_with_pictures_in_it_keeps_its_colours():
    figure = chart()
    figure.axes[0].imshow(np.zeros((4, 4)))
    picture = Picture.of(figure, "", "")
    assert not picture.is_chart and find(picture.html(), "figure")[0].kinds == {"picture"}


def test_too_many_shapes_become_pixels(monkeypatch):
    monkeypatch.setattr(pictures, "_LARGEST_SVG", 1000)
    picture = Picture.of(chart(), "", "", narrow=True)
    assert opened(picture.uri).size == (1200, 736) and picture.is_chart and picture.narrow_uri is None


def test_a_chart_is_laid_out_anew_for_a_phone_and_keeps_its_own_size():
    figure = chart()
    picture = Picture.of(figure, "", "", narrow=True)
    width, height = re.search(rb'width="([\d.]+)pt" height="([\d.]+)pt"', content(picture.narrow_uri)).groups()
    assert (float(width), float(height)) == pytest.approx((4.2 * 72, 3.8 * 72))
    assert tuple(figure.get_size_inches()) == (7.5, 4.6)
    html = picture.html()
    source = find(html, "source")[0].attributes
    assert source["srcset"] == picture.narrow_uri and source["media"] == "(max-width: 46rem)"
    assert find(html, "figure")[0].kinds == {"chart", "fits"}


def test_what_would_be_cut_off_on_a_phone_is_not_laid_out_for_it():
    figure = chart("A title that is a good deal longer than a phone is wide, at this size")
    assert Picture.of(figure, "", "", narrow=True).narrow_uri is None
    assert tuple(figure.get_size_inches()) == (7.5, 4.6)


def test_a_figure_wider_than_a_phone_says_that_it_moves_sideways():
    said = "Scroll sideways where it is wider than the screen."
    assert [each.text for each in find(Picture.of(chart(), "", "").html(), "p", "hint")] == [said]
    assert not find(Picture.of(chart(), "", "", narrow=True).html(), "p", "hint")
    assert not find(Picture.of(chart(size=(4.2, 3)), "", "").html(), "p", "hint")


def test_photos_and_drawings_are_kept_in_the_shorter_form():
    rng = np.random.default_rng(0)
    photo = Image.fromarray(rng.integers(0, 255, (96, 96, 3)).astype(np.uint8))
    assert picture_uri(photo).startswith("data:image/jpeg")
    assert picture_uri(Image.new("L", (96, 96))).startswith("data:image/png")
    assert (np.asarray(opened(picture_uri(Image.new("L", (9, 6), 70)))) == 70).all()
