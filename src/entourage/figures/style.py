"""What all plots with axes have alike: colours that go with a line and a marker of their own, titles, few ornaments."""

from entourage.figures.words import families, printable, shorten

__all__ = ["INK", "STYLES", "SUBSCRIPTS", "head", "tidy"]

INK = "#24292f"
# (colour, line, marker): told apart by each of the three.
STYLES = (("#1f6fb4", "-", "o"), ("#c4314b", "--", "s"), ("#5b8c2a", ":", "^"), ("#8250a8", "-.", "D"))
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
"""For str.translate: e₀ and not e0."""


_MARGIN = 0.15  # inches around all that is drawn, as on sheets


def head(figure, title: str) -> None:
    """The title of a figure, at its left, cut to its width; with it come the margins of the figure."""
    width = figure.get_size_inches()[0]
    if figure.get_layout_engine() is not None:
        figure.get_layout_engine().set(w_pad=_MARGIN, h_pad=_MARGIN, wspace=0, hspace=0)
    said = printable(shorten(title, width - 2 * _MARGIN, 12.5))  # bold, which is wider
    letters = {"fontweight": "bold", "fontsize": 11, "color": INK, "family": families(), "parse_math": False}
    figure.suptitle(said, x=_MARGIN / width, ha="left", **letters)


def tidy(axes) -> None:
    """Only the two axes that are read off, and pale lines across."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
