"""Titles and lines of all plots with axes."""

from matplotlib.figure import Figure
from tests.figures.legible import check_legible

from entourage.figures.style import STYLES, head, tidy


def test_lines_differ_in_colour_dashes_and_marker():
    assert all(len(set(kind)) == len(STYLES) for kind in zip(*STYLES, strict=True))


def test_a_title_is_cut_to_the_figure_and_never_taken_for_a_formula():
    figure = Figure(figsize=(4, 3))
    head(figure, "a run in a folder of a name so long that it could never stand above so small a figure: $x$")
    assert figure.get_suptitle().startswith("a run in") and figure.get_suptitle().endswith("…")
    check_legible(figure)
    head(figure, "$5 for $6")
    assert figure.get_suptitle() == "$5 for $6" and not figure._suptitle.get_parse_math()


def test_a_title_keeps_its_distance_from_the_edges():
    figure = Figure(figsize=(4, 3), layout="constrained")
    head(figure, "Title")
    figure.add_subplot()
    figure.draw_without_rendering()
    title = figure._suptitle.get_window_extent()
    assert 3 - title.y1 / figure.dpi >= 0.14 and title.x0 / figure.dpi >= 0.14


def test_only_the_axes_that_are_read_off_are_drawn():
    axes = Figure().add_subplot()
    tidy(axes)
    assert {name: spine.get_visible() for name, spine in axes.spines.items()} == {
        "left": True,
        "right": False,
        "bottom": True,
        "top": False,
    }
