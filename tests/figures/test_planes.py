"""Items in the plane: panels of classes, a whole set, a query on its way, and curves over a setting."""

import numpy as np
import pytest
from PIL import Image

from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.curves import draw_curves
from entourage.figures.planes import Plane, draw_map, draw_planes
from entourage.figures.query_plane import draw_query_plane


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.fixture
def shown() -> Appearance:
    labels = np.repeat(["a", "b", "c"], 6)
    pictures = [Image.new("L", (8, 8), 40 * row % 255) for row in range(18)]
    return Appearance(np.arange(18).astype(str), labels, pictures.__getitem__)


def places(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 2))


def test_a_label_has_one_colour_in_a_column():
    labels = np.repeat(["a", "b"], 5)
    figure = draw_planes([[Plane(places(10), labels)], [Plane(places(10)[::-1], labels)]], ["one", "other"], "A title")
    above, below = figure.axes
    colours = [[dots.get_facecolor()[0].tolist() for dots in axes.collections] for axes in (above, below)]
    assert colours[0] == colours[1] and len(colours[0]) == 2
    assert (above.get_ylabel(), below.get_ylabel()) == ("one", "other")
    np.testing.assert_allclose(above.collections[0].get_offsets(), places(10)[labels == "a"])
    flat = draw_planes([[Plane(places(10) * (1, 0.1), labels)]], ["one"], "A title")
    assert flat.get_figheight() < draw_planes([[Plane(places(10), labels)]], ["one"], "A title").get_figheight()
    with pytest.raises(InputError, match="there are 1 rows of panels and 2 titles"):
        draw_planes([[Plane(places(10), labels)]], ["one", "other"], "A title")


def test_a_map_shows_every_item_and_some_pictures_of_its_groups(shown):
    figure = draw_map(places(18), shown, "A map")
    dots = sum(len(each.get_offsets()) for each in figure.axes[0].collections)
    assert dots >= 18 and figure.axes[0].images
    with pytest.raises(InputError, match=r"places have shape \(3, 2\); wanted \(18, 2\)"):
        draw_map(places(3), shown, "A map")


def test_a_query_goes_step_by_step_and_its_neighbours_stay(shown):
    path, around = np.array([[0.0, 0], [1, 0], [2, 1]]), np.array([[3.0, 1], [0, 3]])
    figure = draw_query_plane(path, around, shown, 0, np.array([1, 7]), "A query")
    drawn = texts(figure)
    assert "query, e₀" in drawn and "query, e₂" in drawn and "1: a" in drawn and "2: b" in drawn
    assert "✓" in drawn and "✗" in drawn  # of its label, and of another
    assert len(figure.axes[0].images) == 4
    with pytest.raises(InputError, match=r"the neighbours \(2, 2\); wanted \(T \+ 1, 2\) and \(1, 2\)"):
        draw_query_plane(path, around, shown, 0, np.array([1]), "A query")


def test_a_query_that_does_not_move_is_drawn_too(shown):
    still = np.zeros((3, 2))
    assert draw_query_plane(still, np.array([[1.0, 1]]), shown, 0, np.array([1]), "A query").axes


def test_pictures_of_neighbours_that_lie_close_together_do_not_cover_each_other(shown):
    """A query that goes far leaves its neighbours little room: their places shrink to a few dots."""
    path = np.array([[0.0, 0], [0.05, 0.05], [9, 5]])
    figure = draw_query_plane(path, 0.05 * places(8), shown, 0, np.arange(1, 9), "A query")
    boxes = [image.get_extent() for image in figure.axes[0].images]
    assert len(boxes) == 10
    for number, (left, right, low, high) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            assert (
                right <= other[0]
                or other[1] <= left
                or min(low, high) >= max(other[2:])
                or max(low, high) <= min(other[2:])
            )


def test_curves_are_means_over_the_seeds():
    figure = draw_curves({"one": {1: [10.0, 20], 4: [30.0]}, "other": {1: [5.0]}}, "epochs", "%", "Curves")
    (axes,) = figure.axes
    assert axes.lines[0].get_ydata().tolist() == [15, 30] and axes.get_xticks().tolist() == [1, 4]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "other"]
    assert draw_curves({"one": {16: [1.0], 256: [2.0]}}, "dimensions", "%", "C").axes[0].get_xscale() == "log"
    with pytest.raises(InputError, match="nothing to draw"):
        draw_curves({}, "epochs", "%", "Curves")
