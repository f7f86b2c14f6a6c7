"""The style that all plots with axes share: colours, lines and markers, titles, spines and grid."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from entourage.figures.text import families, printable, shorten

__all__ = ["INK", "STYLES", "SUBSCRIPTS", "head", "tidy"]

INK = "#24292f"
# (colour, line, marker): told apart by each of the three.
STYLES = (("#1f6fb4", "-", "o"), ("#c4314b", "--", "s"), ("#5b8c2a", ":", "^"), ("#8250a8", "-.", "D"))
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
"""For str.translate: e₀ instead of e0."""


_MARGIN = 0.15  # inches around all that is drawn, as on sheets


def head(figure: Figure, title: str) -> None:
    """Set the title of a figure, at its left and cut to its width, and the margins of the figure."""
    width = figure.get_size_inches()[0]
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(w_pad=_MARGIN, h_pad=_MARGIN, wspace=0, hspace=0)
    cut = printable(shorten(title, width - 2 * _MARGIN, 12.5))  # bold, which is wider
    letters = {"fontweight": "bold", "fontsize": 11, "color": INK, "family": families(), "parse_math": False}
    figure.suptitle(cut, x=_MARGIN / width, ha="left", **letters)


def tidy(axes: Axes) -> None:
    """Keep only the two spines that values are read off at, and add a pale horizontal grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
