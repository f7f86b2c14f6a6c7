"""One query: arrows between the places before and after, lines as wide as the attention, and words that can be read."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, PathPatch
from tests.figures.legible import check_legible

from entourage.data.arrays import ImageArray
from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.query import draw_query
from entourage.figures.sheet import INK, NEUTRAL, RIGHT, WRONG
from entourage.values import Neighbors

N = 30
LABELS = np.array(["even" if row % 2 == 0 else "odd" for row in range(N)])
PIXELS = np.arange(N, dtype=np.uint8)[:, None, None] * np.full((N, 8, 8), 8, np.uint8)
IMAGES = Appearance.of(ImageArray(PIXELS, LABELS))
# Rows 2, 4 and 6 stay, 3 and 5 go out, 10 and 12 come in.
BEFORE, AFTER = [2, 3, 4, 5, 6, 10], [4, 2, 10, 6, 12, 3]
WEIGHTS = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])


def neighbours(rows) -> Neighbors:
    return Neighbors([rows], [np.linspace(0.9, 0.1, len(rows))])


def drawn(queries=IMAGES, before=BEFORE[:5], after=AFTER[:5], rows=(2, 3, 4), weights=WEIGHTS, **options):
    return draw_query(queries, 0, neighbours(before), neighbours(after), np.array(rows), weights, "Title", **options)


def arrows(figure) -> list[FancyArrowPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


def lines(figure) -> list[PathPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, PathPatch)]


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def heights(arrow: FancyArrowPatch) -> tuple[float, float]:
    (_, begin), (_, end) = arrow._posA_posB
    return float(begin), float(end)


def test_without_attention_the_two_rankings_stand_alone():
    whole, figure = drawn(), draw_query(IMAGES, 0, neighbours(BEFORE), neighbours(AFTER), None, None, "Title")
    assert not lines(figure) and lines(whole)
    assert "attends to" not in words(figure) and {"nearest before", "nearest after", "query"} <= set(words(figure))
    assert figure.get_size_inches()[0] < whole.get_size_inches()[0]
    check_legible(figure)


# ---- arrows ------------------------------------------------------------------------------------------------------


def test_an_arrow_for_each_neighbour_of_either_ranking():
    figure = drawn()
    cell = 0.7
    levels = [tuple(round(height / cell - 0.5) for height in heights(arrow)) for arrow in arrows(figure)]
    # 2 falls, 3 leaves, 4 rises, 5 leaves, 6 rises; 10 and 12 come in, at their places after.
    assert levels == [(0, 1), (1, 1), (2, 0), (3, 3), (4, 3), (2, 2), (4, 4)]


def test_rising_is_dark_and_solid_falling_grey_and_dashed():
    seen = [
        (to_hex(arrow.get_edgecolor()) == INK, arrow.get_linestyle() in ("-", "solid")) for arrow in arrows(drawn())
    ]
    rises = [False, False, True, False, True, True, True]
    assert seen == [(rise, rise) for rise in rises]


def test_what_came_or_went_further_than_is_known_is_new_or_out():
    said = words(drawn())
    assert said.count("new") == 2 and said.count("out") == 2


def test_deeper_rankings_tell_from_where_and_whereto():
    others = [7, 8, 9]
    before, after = [2, 4, 6, 8, 14, 16, 18, 20, 3, 12], [12, 2, 4, 6, 8, 14, 16, 18, *others, 20]
    figure = drawn(before=before, after=after)
    assert "from 10" in words(figure) and "to 12" in words(figure)
    assert len(arrows(figure)) == 9 and len(figure.axes[0].images) == 1 + 3 + 8 + 8
    check_legible(figure)


def test_positions_tell_from_where_as_well():
    figure = drawn(positions=np.array([3, 1, 23, 5, 41]))
    assert {"from 23", "from 41"} <= set(words(figure)) and "new" not in words(figure)


def test_the_ranking_before_wins_over_positions_that_disagree():
    wrong = np.array([1, 1, 23, 40, 2])  # 2, 4 and 6 stand in the ranking before, wherever they are said to be
    figure = drawn(positions=wrong)
    assert [heights(arrow) for arrow in arrows(figure)] == [heights(arrow) for arrow in arrows(drawn())]
    assert [word for word in words(figure) if word.startswith("from")] == ["from 23", "from 2"]
    deep = [2, 4, 6, 8, 14, 16, 18, 20, 3, 12]
    assert "from 10" in words(drawn(before=deep, after=[12, *deep[:7]], positions=np.full(8, 1)))


# ---- attention ---------------------------------------------------------------------------------------------------


def test_a_line_for_each_step_and_item_as_wide_as_the_attention():
    widths = np.array([line.get_linewidth() for line in lines(drawn())]).reshape(3, 2)
    np.testing.assert_allclose(widths / widths.max(), WEIGHTS.T / WEIGHTS.max())  # in order of their means already
    shades = {line.get_edgecolor()[:3] for line in lines(drawn())}
    assert len(shades) == 2


def test_lines_are_said_to_be_of_steps():
    assert "one line per step, the first on top; width: share of attention" in words(drawn())


def test_shares_are_said_for_the_first_and_the_last_step():
    said = [text.split("\n")[0] for text in words(drawn())]
    assert [text for text in said if "%" in text] == ["60 → 20 %", "30 %", "10 → 50 %"]


def test_only_what_is_attended_to_most_is_shown_and_the_rest_is_summed_up():
    weights = np.array([[0.3, 0.2, 0.1, 0.1, 0.1, 0.08, 0.05, 0.04, 0.03, 0.0]])
    figure = drawn(rows=range(2, 12), weights=weights)
    assert len(lines(figure)) == 8 and "and 2 others: 3 %" in words(figure)
    figure = drawn(rows=[2, 3, 4], weights=np.array([[0.999, 0.001, 0.0]]))
    assert len(lines(figure)) == 1 and "and 2 others: 0 %" in words(figure)
    check_legible(figure)


# ---- cells -------------------------------------------------------------------------------------------------------


def test_query_attended_items_and_both_rankings_are_shown_and_framed():
    axes = drawn().axes[0]
    shown = [int(picture.get_array().max()) // 8 for picture in axes.images]
    assert shown == [0, 2, 3, 4, *BEFORE[:5], *AFTER[:5]]
    frames = [to_hex(p.get_edgecolor()) for p in axes.patches if not p.get_fill() and not isinstance(p, PathPatch)]
    assert frames == [INK, *(WRONG if row % 2 else RIGHT for row in shown[1:])]
    assert {"Title", "query", "attends to", "nearest before", "nearest after", "even"} <= set(words(drawn()))


@pytest.mark.parametrize("kind", ["pictures", "texts", "ids"])
@pytest.mark.parametrize("labelled", [True, False])
def test_every_kind_of_item_can_be_read(kind, labelled):
    texts = [f"sentence number {row} which is rather long, so that it has to be wrapped and cut" for row in range(N)]
    looks = {"pictures": {"picture": IMAGES.picture}, "texts": {"texts": texts}, "ids": {}}[kind]
    items = Appearance(np.array([f"id-{row}" for row in range(N)]), LABELS if labelled else None, **looks)
    rng = np.random.default_rng(0)
    before, after = rng.permutation(np.arange(1, N)), rng.permutation(np.arange(1, N))
    figure = drawn(items, before, after, before[:12], rng.dirichlet(np.ones(12), size=8))
    check_legible(figure)
    axes = figure.axes[0]
    frames = [to_hex(p.get_edgecolor()) for p in axes.patches if not p.get_fill() and not isinstance(p, PathPatch)]
    assert (set(frames) == {INK, NEUTRAL}) == (not labelled)
    assert len(lines(figure)) == 8 * 8
    assert bool(axes.images) == (kind == "pictures")


def test_a_single_neighbour_leaves_room_for_the_query():
    check_legible(drawn(before=[2], after=[4], rows=[2], weights=np.ones((3, 1))))


def test_neighbours_are_rows_of_the_gallery_where_one_is_given():
    gallery = Appearance(np.array([f"g{row}" for row in range(N)]), LABELS[::-1])
    figure = drawn(Appearance(np.array(["q"]), LABELS[:1]), gallery=gallery)
    assert {"q", "g2", "g12"} <= set(words(figure))
    assert [word for word in words(figure) if word in "✓✗"][:3] == ["✗", "✓", "✗"]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"weights have shape \(2, 3\); wanted \(T, 2\)"):
        drawn(rows=(2, 3))
    with pytest.raises(InputError, match=r"weights have shape \(0, 3\); wanted \(T, 3\)"):
        drawn(weights=WEIGHTS[:0])
    two = Neighbors([[1, 2], [2, 1]], [[0.9, 0.8], [0.9, 0.8]])
    with pytest.raises(InputError, match="before has neighbours of 2 queries; wanted only those of the query"):
        draw_query(IMAGES, 0, two, neighbours(AFTER), np.array([2, 3, 4]), WEIGHTS, "Title")
