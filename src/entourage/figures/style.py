"""What all plots with axes have alike: colours that go with a line and a marker of their own, titles, few ornaments."""

from entourage.figures.words import families, printable, shorten

__all__ = ["INK", "STYLES", "SUBSCRIPTS", "head", "tidy"]

INK = "#24292f"
# (colour, line, marker): told apart by each of the three.
STYLES = (("#1f6fb4", "-", "o"), ("#c4314b", "--", "s"), ("#5b8c2a", ":", "^"), ("#8250a8", "-.", "D"))
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
"""For str.translate: e₀ and not e0."""


def head(figure, title: str) -> None:
    """The title of a figure, at its left, cut to its width."""
    said = printable(shorten(title, figure.get_size_inches()[0] - 0.3, 12.5))  # bold, which is wider
    figure.suptitle(
        said, x=0.01, ha="left", fontweight="bold", fontsize=11, color=INK, family=families(), parse_math=False
    )


def tidy(axes) -> None:
    """Only the two axes that are read off, and pale lines across."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
