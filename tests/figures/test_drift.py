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
from entourage.figures.label_styles import _COLOURS, NAMED, by_frequency, far_apart, styles_of
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


def names(picture) -> dict:
    """The names that stand in the plane, by what they say; those of the key stand beside it."""
    return {
        text.get_text(): text for text in picture.axes.texts if text.get_text() and text.xy[0] < 10 and _is_name(text)
    }


def _is_name(text) -> bool:
    return text.get_fontsize() == 8 and text.get_fontweight() == "bold"


def key(picture) -> list[list[str]]:
    """The lines of the key: a name and a count each."""
    beside = [text for text in picture.axes.texts if text.xy[0] > 10]
    heights = sorted({text.xy[1] for text in beside})
    return [[text.get_text() for text in beside if text.xy[1] == height] for height in heights]


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
    name = names(picture)["class 0"]
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


def test_a_low_cloud_does_not_lie_in_the_middle_of_an_empty_sheet():
    positions, labels = places()
    low = DriftPicture(positions * [1, 0.02], looks(labels), "Title")
    assert low.height == pytest.approx(4.2) and DriftPicture(positions, looks(labels), "Title").height > 5
    many = DriftPicture(np.zeros((1, 24, 2)), looks(np.arange(24), 24), "Title")
    assert many.height > 5.5  # room for the key
    check_apart(low.figure)


def test_labels_have_a_colour_and_a_shape_and_stand_beside_their_items():
    positions, labels = places(200, 30)
    labels[labels >= NAMED] = np.arange((labels >= NAMED).sum()) + 100  # the rest are one of a kind
    picture = DriftPicture(positions, looks(labels, 200), "Title")
    rest, *named = picture.styles
    assert len(named) == NAMED and rest[3] is None
    assert len({(colour, shape) for _, colour, shape, _ in named}) == NAMED
    assert rest[1] not in {colour for _, colour, _, _ in named}
    said = names(picture)
    for rows, colour, _, name in named:
        assert set(labels[rows]) == {int(name.split()[1])}
        assert to_hex(said[name].get_color()) == colour
        middle = np.median(picture.places[-1, rows], axis=0)
        assert np.linalg.norm(np.array(said[name].xy) - middle) < 1
    check_apart(picture.figure)


def test_a_name_that_is_not_beside_its_items_has_a_line_to_one_of_them():
    positions, labels = places(400, 24, seed=3)
    picture = DriftPicture(positions, looks(labels, 400), "Title")
    said, lines = names(picture), [line for line in picture.axes.lines if line.get_linestyle() == ":"]
    assert len(said) == 24 and lines
    for rows, colour, _, name in picture.styles:
        mine = [
            line for line in lines if to_hex(line.get_color()) == colour and _starts_at(line, picture.places[-1, rows])
        ]
        text = said[name]
        box = text.get_window_extent().transformed(picture.axes.transData.inverted())
        nearest = np.linalg.norm(picture.places[-1, rows] - text.xy, axis=1).min()
        assert mine or nearest < 0.14 + max(abs(box.width), abs(box.height)) / 2 + 0.1
        for line in mine:
            assert abs(line.get_xydata()[1] - text.xy)[0] <= abs(box.width) / 2 + 0.1


def _starts_at(line, spots) -> bool:
    return bool(np.isclose(spots, line.get_xydata()[0]).all(axis=1).any())


@pytest.mark.parametrize("travelling", [False, True])
@pytest.mark.parametrize("most", [3000, 100])
def test_the_key_lists_every_class_that_is_drawn_with_its_mark_and_how_many(monkeypatch, travelling, most):
    monkeypatch.setattr(drift, "MOST_ARROWS", most)
    positions, labels = places(300, 30)
    sizes = {f"class {label}": 10 + label for label in range(30)}
    picture = DriftPicture(positions, looks(labels, 300), "Title", sizes=sizes, travelling=travelling)
    title, *lines = key(picture)
    assert title == ["classes, and how many are drawn"]
    wanted = [[f"class {label}", f"10 of {10 + label}"] for label in range(29, 5, -1)]  # the most frequent first
    assert lines == [*wanted, ["6 other classes", "60"]]
    marks = [
        dots for dots in picture.axes.collections if len(dots.get_offsets()) == 1 and dots.get_offsets()[0, 0] > 10
    ]
    assert len(marks) == 25
    for (_, colour, _, _), mark in zip([*picture.styles[1:], picture.styles[0]], marks, strict=True):
        assert to_hex(mark.get_facecolor()[0]) == to_hex(colour)
    shapes = [mark.get_paths()[0].vertices.tobytes() for mark in marks[:12]]
    assert len(set(shapes)) == 12
    check_apart(picture.figure)


def test_of_equally_frequent_labels_the_seed_names_some_not_the_alphabet():
    labels = np.repeat([f"{code:02}" for code in range(60)], 5)
    spots = np.zeros((300, 2))
    named = [[style.name for style in styles_of(labels, spots, seed=seed) if style.name] for seed in (0, 0, 1)]
    assert named[0] == named[1] != named[2] and all(sorted(some) != sorted(set(labels))[:NAMED] for some in named)
    assert by_frequency(np.array([1, 7, 7, 9]))[0] == 3 and by_frequency(np.array([1, 7, 7, 9]))[-1] == 0


def test_colours_differ_for_those_who_do_not_tell_red_from_green():
    # Machado, Oliveira and Fernandes 2009, on linear RGB; distances in CIELAB
    seen = {
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    }
    colours = np.array([[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in _COLOURS])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    for matrix in [np.eye(3), *map(np.array, seen.values())]:
        lab = _lab(np.clip(linear @ matrix.T, 0, 1))
        apart = np.linalg.norm(lab[:, None] - lab, axis=2) + 1e3 * np.eye(len(lab))
        assert apart.min() > 18
    contrast = 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    assert contrast.min() > 3  # with paper, for bold letters


def _lab(linear) -> np.ndarray:
    xyz = linear @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    f = np.cbrt(xyz / [0.9505, 1, 1.089])
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def test_neighbouring_labels_differ_in_colour():
    middles = np.array([[0, 0], [9, 9], [0, 1], [9, 8], [1, 0], [8, 9], [1, 1], [8, 8], [0, 2.0], [9, 7]])
    colours = far_apart(middles)
    assert len(set(colours[:8])) == 8
    assert colours[8] in colours[1:8:2] and colours[9] in colours[0:8:2]  # from the other corner


def test_without_labels_all_items_look_alike():
    positions, _ = places()
    figure = draw_drift(positions, looks(), "Title")
    assert {"Title", "an item at e₀, before", "at e₂"} <= set(texts(figure))
    assert figure.get_size_inches()[0] < 11  # no room for a key
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
    ends = [line.get_xydata()[0] for line in picture.axes.lines][-6:]  # those before lead to names
    np.testing.assert_allclose(ends, picture.places[-1, rows])
    picture.show(0.0)
    np.testing.assert_allclose([line.get_xydata()[0] for line in picture.axes.lines][-6:], picture.places[0, rows])
    check_apart(picture.figure)


def test_frames_are_neutral_without_labels():
    positions, _ = places()
    shown = looks(picture=lambda row: Image.new("L", (8, 8)))
    figure = draw_drift(positions, shown, "Title", thumbnails=6)
    frames = [to_hex(patch.get_edgecolor()) for patch in figure.axes[0].patches if not patch.get_fill()]
    assert frames == 6 * [to_hex(NEUTRAL)]


def test_a_short_text_has_a_small_frame():
    positions, _ = places(n=12)
    long = "words " * 40
    picture = DriftPicture(positions, looks(n=12, texts=["word", long] * 6), "Title", thumbnails=12)
    frames = [patch for patch in picture.axes.patches if not patch.get_fill()]
    said = [text.get_text() for text in picture.axes.texts if text.get_fontsize() == 7]
    widths = {text: frame.get_width() for text, frame in zip(said, frames, strict=True)}
    assert widths["word"] < 0.6 and 1.3 < max(widths.values()) <= 1.45
    check_apart(picture.figure)


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


def test_thousands_of_items_are_dots_of_their_class_with_mean_arrows(monkeypatch):
    monkeypatch.setattr(drift, "MOST_ARROWS", 500)
    rng = np.random.default_rng(0)
    first = rng.normal(size=(2000, 2))
    positions = np.stack([first, first + np.array([0.3, 0.0])])
    labels = np.arange(2000) % 40
    picture = DriftPicture(positions, looks(labels, 2000), "Title", moving=np.arange(0, 2000, 2))
    picture.show(1.0)
    assert sorted(row for _, rows in picture._dots for row in rows) == list(range(2000))
    for dots, rows in picture._dots:
        np.testing.assert_allclose(dots.get_offsets(), picture.places[-1, rows])
    assert [len(rows) for _, rows in picture._dots] == [16 * 50] + NAMED * [50]
    assert len({to_hex(dots.get_facecolor()[0]) for dots, _ in picture._dots}) == 1 + len(_COLOURS)
    assert len(names(picture)) == NAMED
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
