"""The drift: dots, arrows, names and pictures are those of the items, and none lies on another."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from PIL import Image

from entourage.errors import InputError
from entourage.figures import drift
from entourage.figures.appearance import Appearance
from entourage.figures.drift import DriftPicture, at_moment, draw_drift
from entourage.figures.free_space import FreeSpace
from entourage.figures.label_styles import NAMED, far_apart
from entourage.figures.sheet import NEUTRAL


def places(n=60, classes=4, steps=3, seed=0):
    """Clusters that tighten step by step, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centres = 40 * rng.normal(size=(classes, 2))[labels]
    spread = 5 * rng.normal(size=(n, 2))
    return np.stack([centres + spread * (1 - 0.3 * t) for t in range(steps)]), labels


def looks(labels=None, n=60, **shown) -> Appearance:
    names = None if labels is None else np.array([f"class {label}" for label in labels])
    return Appearance(np.arange(n), names, **shown)


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def boxes(figure) -> list:
    """What names, captions and thumbnails cover, in pixels."""
    figure.draw_without_rendering()
    written = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    return written + [image.get_window_extent() for image in figure.axes[0].images]


def check_apart(figure) -> None:
    width, height = figure.get_size_inches() * figure.dpi
    found = boxes(figure)
    for number, box in enumerate(found):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        for other in found[number + 1 :]:
            assert box.x1 <= other.x0 + 1 or other.x1 <= box.x0 + 1 or box.y1 <= other.y0 + 1 or other.y1 <= box.y0 + 1


def test_an_arrow_for_each_item_that_moves_visibly_from_e0_to_the_end():
    positions, labels = places()
    positions[:, 7] = positions[0, 7]  # stays
    picture = DriftPicture(positions, looks(labels), "Title")
    picture.show(1.0)
    moved = np.linalg.norm(picture.places[-1] - picture.places[0], axis=1) >= 0.06
    assert not moved[7] and 40 < moved.sum() < 60
    arrows = picture.arrows
    np.testing.assert_allclose(arrows.XY, picture.places[0, moved])
    np.testing.assert_allclose(np.stack([arrows.U, arrows.V], axis=1), (picture.places[-1] - picture.places[0])[moved])
    assert f"its move, if long enough to draw ({moved.sum()} of 60)" in texts(picture.figure)


def test_an_arrow_across_the_map_is_pale_and_the_key_says_so():
    positions, labels = places()
    near = DriftPicture(positions, looks(labels), "Title")
    assert set(near.arrows.get_facecolors()[:, 3]) == {0.85} and "pale" not in " ".join(texts(near.figure))
    apart = np.linalg.norm(positions[0] - positions[0, 5], axis=1)
    positions[-1, 5] = positions[0, apart.argmax()]
    picture = DriftPicture(positions, looks(labels), "Title")
    far = np.hypot(picture.arrows.U, picture.arrows.V) > 10 / 3
    assert far.sum() == 1 and (picture.arrows.get_facecolors()[:, 3] == np.where(far, 0.4, 0.85)).all()
    assert any(text.endswith("of 60; pale: across the map, 1)") for text in texts(picture.figure))
    check_apart(picture.figure)


def test_the_name_of_a_scattered_label_stands_where_most_of_its_items_are():
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [100, 0], [0, 80], [100, 80]])
    spots = np.repeat(corners, [24, 12, 12, 12], axis=0) + rng.normal(size=(60, 2))
    picture = DriftPicture(np.stack([spots, spots]), looks(np.zeros(60, int)), "Title")
    (name,) = (text for text in picture.axes.texts if text.get_text() == "class 0")
    distance = np.linalg.norm(picture.places[-1] - name.xy, axis=1)
    assert distance.argmin() < 24 and distance.min() < 0.5  # inches


def test_only_moving_rows_have_arrows():
    positions, labels = places()
    picture = DriftPicture(positions, looks(labels), "Title", moving=[9, 3])
    np.testing.assert_allclose(picture.arrows.XY, picture.places[0, [3, 9]])


def test_places_keep_their_proportions_and_fill_the_sheet():
    positions, labels = places()
    on_paper = DriftPicture(positions, looks(labels), "Title").places
    scale = [np.linalg.norm(p[-1, 0] - p[0, 1]) / np.linalg.norm(p[-1, 2] - p[0, 9]) for p in (positions, on_paper)]
    assert scale[0] == pytest.approx(scale[1])
    assert on_paper.min() >= 0 and (on_paper.max(axis=(0, 1)) <= [10, 7.4]).all()
    assert max(np.ptp(on_paper, axis=(0, 1)) / [9.5, 6.9]) == pytest.approx(1)


def test_labels_have_a_colour_and_a_shape_and_stand_beside_their_items():
    positions, labels = places(200, 30)
    labels[labels >= NAMED] = np.arange((labels >= NAMED).sum()) + 100  # the rest are one of a kind
    picture = DriftPicture(positions, looks(labels, 200), "Title")
    rest, *named = picture.styles
    assert len(named) == NAMED and rest[3] is None
    assert len({(colour, shape) for _, colour, shape, _ in named}) == NAMED
    assert rest[1] not in {colour for _, colour, _, _ in named}
    said = {text.get_text(): text for text in picture.axes.texts}
    for rows, colour, _, name in named:
        assert set(labels[rows]) == {int(name.split()[1])}
        if name in said:
            assert to_hex(said[name].get_color()) == colour
            middle = np.median(picture.places[-1, rows], axis=0)
            assert np.linalg.norm(np.array(said[name].xy) - middle) < 1
    assert sum(name in said for *_, name in named) > 15
    assert "other labels (" in " ".join(said)
    check_apart(picture.figure)


def test_neighbouring_labels_differ_in_colour():
    middles = np.array([[0, 0], [9, 9], [0, 1], [9, 8], [1, 0], [8, 9], [1, 1], [8, 8], [0, 2.0], [9, 7]])
    colours = far_apart(middles)
    assert len(set(colours[:8])) == 8
    assert colours[8] in colours[1:8:2] and colours[9] in colours[0:8:2]  # from the other corner


def test_without_labels_all_items_look_alike():
    positions, _ = places()
    figure = draw_drift(positions, looks(), "Title")
    assert {"Title", "an item at e₀, before", "at e₂"} <= set(texts(figure))
    assert not [said for said in texts(figure) if said.startswith(("class", "other"))]
    dots = [dots for dots in figure.axes[0].collections if len(dots.get_offsets()) == 60]
    assert len(dots) == 3  # at e_0, at e_T, and their arrows


def test_pictures_of_those_that_went_farthest_with_a_line_to_their_item():
    positions, labels = places()
    shown = looks(labels, picture=lambda row: Image.new("L", (8, 8), int(row)))
    picture = DriftPicture(positions, shown, "Title", thumbnails=6)
    picture.show(1.0)
    rows = [int(image.get_array().max()) for image in picture.axes.images]
    lengths = np.linalg.norm(positions[-1] - positions[0], axis=1)
    assert len(rows) == 6 and np.bincount(labels[rows]).max() <= 2
    assert all(row in np.argsort(-lengths)[:30] for row in rows)
    ends = [line.get_xydata()[0] for line in picture.axes.lines]
    np.testing.assert_allclose(ends, picture.places[-1, rows])
    picture.show(0.0)
    np.testing.assert_allclose([line.get_xydata()[0] for line in picture.axes.lines], picture.places[0, rows])
    check_apart(picture.figure)


def test_frames_are_neutral_without_labels():
    positions, _ = places()
    shown = looks(picture=lambda row: Image.new("L", (8, 8)))
    figure = draw_drift(positions, shown, "Title", thumbnails=6)
    frames = [to_hex(patch.get_edgecolor()) for patch in figure.axes[0].patches if not patch.get_fill()]
    assert frames == 6 * [to_hex(NEUTRAL)]


def test_a_full_sheet_is_not_searched_for_every_item(monkeypatch):
    tried = []
    monkeypatch.setattr(FreeSpace, "place", lambda self, *where, **how: tried.append(where))
    positions, _ = places(200)
    draw_drift(positions, looks(n=200, texts=["some words"] * 200), "Title", thumbnails=4)
    assert len(tried) == 40


def test_texts_are_shown_where_there_are_no_pictures():
    positions, labels = places()
    sentences = [
        f"sentence {row} that is much too long for the little room that there is on any such sheet" for row in range(60)
    ]
    figure = draw_drift(positions, looks(labels, texts=sentences), "Title", thumbnails=4)
    said = [text for text in texts(figure) if text.startswith("sentence")]
    assert len(said) == 4 and all(text.endswith("…") for text in said)
    check_apart(figure)
    assert not [text for text in texts(draw_drift(positions, looks(labels), "Title")) if text.startswith("sentence")]


def test_thousands_of_items_are_a_density_with_mean_arrows(monkeypatch):
    monkeypatch.setattr(drift, "MOST_ARROWS", 500)
    rng = np.random.default_rng(0)
    first = rng.normal(size=(2000, 2))
    positions = np.stack([first, first + np.array([0.3, 0.0])])
    picture = DriftPicture(positions, looks(np.arange(2000), 2000), "Title", moving=np.arange(0, 2000, 2))
    picture.show(1.0)
    assert int(picture.hexagons.get_array().sum()) == 2000
    assert 20 < len(picture.arrows.U) < 400
    move = picture.places[1, 0] - picture.places[0, 0]
    np.testing.assert_allclose(picture.arrows.U, move[0] * picture.arrow_scale)
    for rows, foot in zip(picture._groups, picture.arrows.XY, strict=True):
        assert len(rows) >= 5 and (rows % 2 == 0).all()
        np.testing.assert_allclose(foot, np.mean([picture.places[0, row] for row in rows], axis=0))
    assert any("mean move from e₀ to e₁" in said for said in texts(picture.figure))
    check_apart(picture.figure)


def test_long_mean_arrows_are_shortened_and_it_is_said(monkeypatch):
    monkeypatch.setattr(drift, "MOST_ARROWS", 500)
    first = np.random.default_rng(0).normal(size=(1500, 2))
    picture = DriftPicture(np.stack([first, -first]), looks(n=1500), "Title")
    lengths = np.hypot(picture.arrows.U, picture.arrows.V)
    assert np.quantile(lengths, 0.95) == pytest.approx(0.42) and picture.arrow_scale < 0.5
    assert any("% of its length" in said for said in texts(picture.figure))


def test_no_letter_is_smaller_than_seven_points():
    positions, labels = places()
    figure = draw_drift(positions, looks(labels, texts=["some words"] * 60), "Title")
    assert min(text.get_fontsize() for text in figure.findobj(Annotation) if text.get_text()) >= 7


def test_between_two_steps_items_go_straight_on():
    positions, _ = places()
    np.testing.assert_allclose(at_moment(positions, 0.0), positions[0])
    np.testing.assert_allclose(at_moment(positions, 0.25), (positions[0] + positions[1]) / 2)
    np.testing.assert_allclose(at_moment(positions, 0.5), positions[1])
    np.testing.assert_allclose(at_moment(positions, 1.0), positions[2])
    np.testing.assert_allclose(at_moment(positions[:1], 0.7), positions[0])


def test_one_step_and_one_item_are_drawn_too():
    figure = draw_drift(np.zeros((1, 1, 2)), looks([0], 1), "Title")
    assert "class 0" in texts(figure) and "its move, if long enough to draw (0 of 1)" in texts(figure)
    figure.draw_without_rendering()


def test_positions_must_fit_the_items():
    with pytest.raises(InputError, match=r"positions have shape \(60, 2\); wanted \(T \+ 1, 60, 2\)"):
        draw_drift(np.zeros((60, 2)), looks(), "Title")


# ---- free space --------------------------------------------------------------------------------------------------


def test_what_is_placed_lies_apart_and_off_the_dots():
    space = FreeSpace(4, 3)
    dots = np.random.default_rng(0).uniform([1.5, 1], [2.5, 2], size=(50, 2))
    space.add_dots(dots)
    middles = np.array([space.place((0.4, 0.3), (2.0, 1.5), farthest=2.0) for _ in range(6)])
    for number, (x, y) in enumerate(middles):
        assert not ((np.abs(dots[:, 0] - x) < 0.2) & (np.abs(dots[:, 1] - y) < 0.15)).any()
        for other in middles[number + 1 :]:
            assert abs(x - other[0]) >= 0.4 or abs(y - other[1]) >= 0.3


def test_a_name_may_lie_on_dots_where_that_is_nearer():
    space = FreeSpace(4, 3)
    space.add_lines(np.array([[2.0, 1.0]]), np.array([[2.0, 2.0]]))
    assert space.place((0.5, 0.2), (2.0, 1.5), farthest=0.1) is None
    assert space.place((0.5, 0.2), (2.0, 1.5), farthest=0.1, per_dot=0.01) == pytest.approx((2.0, 1.5), abs=0.1)
    assert space.place((0.5, 0.2), (2.0, 1.5), farthest=0.1, per_dot=0.01) is None  # taken now
    assert space.place((5.0, 0.2), (2.0, 1.5), farthest=9.0) is None  # larger than the sheet


def test_the_line_to_what_was_placed_crosses_nothing():
    space = FreeSpace(4, 3)
    assert space.place((0.3, 0.3), (2.3, 1.5), farthest=0.1) is not None  # in the way to the right
    middle = space.place((0.3, 0.3), (2.0, 1.5), farthest=2.0)
    assert middle[0] < 2.1 or abs(middle[1] - 1.5) > 0.3
