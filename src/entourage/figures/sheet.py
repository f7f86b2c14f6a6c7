"""Sheets of items: a figure without axes, and on it cells with a picture, a text or an id in a frame.

A frame shows whether an item is right by its colour (green, red), its line (solid, dashed) and a mark (tick, cross).
Grey and without a mark, it says nothing, as the label is not known.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from numpy.typing import NDArray

from entourage.figures.appearance import Appearance
from entourage.figures.style import INK
from entourage.figures.text import POINTS, families, printable, shorten, wrap

__all__ = [
    "INK",
    "NEUTRAL",
    "RIGHT",
    "WRONG",
    "Box",
    "draw_cell",
    "draw_frame",
    "draw_picture",
    "draw_text",
    "inches_per_unit",
    "new_sheet",
    "write",
    "write_title",
]

Box = tuple[float, float, float, float]
"""x, y, width and height; y runs down, and (x, y) is the upper left corner."""

RIGHT, WRONG, NEUTRAL = "#1a7f37", "#c4314b", "#8a8f98"
_BEHIND = "#f3f4f6"  # what a picture or text lies on
_LEADING, _CAPITAL = 1.2, 0.73  # height of a line and of a capital letter, in font sizes
_BOLD = 1.15  # times as wide as plain letters


def new_sheet(left: float, right: float, top: float, bottom: float, unit: float) -> tuple[Figure, Axes]:
    """Make a figure that is one axes without lines.

    Parameters
    ----------
    left, right, top, bottom : float
        The limits of its coordinates, which run right and down.
    unit : float
        How many inches a unit of both is.

    Returns
    -------
    figure : matplotlib Figure
    axes : matplotlib Axes
    """
    figure = Figure(figsize=(unit * (right - left), unit * (bottom - top)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.axis("off")
    return figure, axes


def draw_cell(
    axes: Axes,
    appearance: Appearance,
    row: int,
    x: float,
    y: float,
    right: bool | None,
    *,
    width: float = 1.0,
    height: float = 1.0,
    inset: float = 0.06,
    edge: str | None = None,
    size: float = 7.5,
) -> None:
    """Draw an item in a cell: its picture, or else its text or id.

    Parameters
    ----------
    axes : matplotlib Axes
        The axes of a sheet.
    appearance : Appearance
        How the items look.
    row : int
        Which of them to draw.
    x, y : float
        The upper left corner of the cell.
    right : bool or None
        Whether the item has the wanted label; None if that is not known.
    width, height : float, default 1
        Size of the cell.
    inset : float
        The margin around the frame, inside the cell.
    edge : str, optional
        The colour of the frame of a cell that is neither right nor wrong: the query.
    size : float
        Font size of texts, in points.
    """
    box = (x + inset, y + inset, width - 2 * inset, height - 2 * inset)
    picture = appearance.thumbnail(row)
    if picture is None:
        draw_text(axes, appearance.text(row), box, size=size, clear=right is not None)
    else:
        draw_picture(axes, np.asarray(picture), box)
    draw_frame(axes, box, right, edge=edge)


def draw_picture(axes: Axes, pixels: NDArray[Any], box: Box) -> Box:
    """Draw a picture, whole and undistorted, in the middle of a box.

    Parameters
    ----------
    axes : matplotlib Axes
    pixels : array of shape (H, W), grey, or (H, W, 3)
    box : (x, y, width, height)

    Returns
    -------
    (x, y, width, height)
        The part of the box that the picture takes.
    """
    x, y, width, height = box
    axes.add_patch(Rectangle((x, y), width, height, facecolor=_BEHIND, edgecolor="none", zorder=1))
    tall, wide = pixels.shape[:2]
    scale = min(width / wide, height / tall)
    inner = (x + (width - wide * scale) / 2, y + (height - tall * scale) / 2, wide * scale, tall * scale)
    extent = (inner[0], inner[0] + inner[2], inner[1] + inner[3], inner[1])
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, extent=extent, aspect="auto", zorder=2)
    return inner


def draw_text(axes: Axes, text: str, box: Box, *, size: float = 7.5, clear: bool = False) -> None:
    """Write a text into a box, wrapped and cut to as many lines as fit.

    Parameters
    ----------
    axes : matplotlib Axes
    text : str
    box : (x, y, width, height)
    size : float
        Size of the font, in points.
    clear : bool, default False
        Whether to leave space for the mark of a frame.
    """
    x, y, width, height = box
    axes.add_patch(Rectangle((x, y), width, height, facecolor=_BEHIND, edgecolor="none", zorder=1))
    inches = inches_per_unit(axes)
    margin = 0.05  # inches
    space = width * inches - 2 * margin - (0.12 if clear else 0)
    lines = max(1, int((height * inches - margin) * POINTS / (size * _LEADING)))
    wrapped = "\n".join(wrap(text, space, lines, size))
    write(axes, x + margin / inches, y + height / 2, wrapped, size=size, ha="left")


def draw_frame(axes: Axes, box: Box, right: bool | None, *, edge: str | None = None) -> None:
    """Draw the frame of a box.

    Parameters
    ----------
    axes : matplotlib Axes
    box : (x, y, width, height)
    right : bool or None
        True: green, solid and ticked; False: red, dashed and crossed; None: grey.
    edge : str, optional
        The colour of the frame instead.
    """
    x, y, width, height = box
    colour = edge or (NEUTRAL if right is None else RIGHT if right else WRONG)
    style: Any = (0, (2, 1)) if right is False else "solid"
    thick = 2.0 if right is not None else 1.5 if edge else 1.0
    frame = Rectangle(
        (x, y), width, height, fill=False, edgecolor=colour, linewidth=thick, linestyle=style, zorder=3, clip_on=False
    )
    axes.add_patch(frame)
    if right is None:
        return
    badge = {"boxstyle": "circle,pad=0.12", "facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
    # on the corner, a little inside, whatever the scale of the axes
    place: dict[str, Any] = {
        "xytext": (-3.2, -3.2),
        "textcoords": "offset points",
        "ha": "center",
        "va": "center",
        "zorder": 4,
    }
    mark = "✓" if right else "✗"
    axes.annotate(mark, (x + width, y), fontsize=7, family=families(), color="white", bbox=badge, **place)


def write(axes: Axes, x: float, y: float, text: str, *, size: float, **style: Any) -> Annotation:
    """Write a text as it is: a dollar sign in it does not begin a formula.

    Parameters
    ----------
    axes : matplotlib Axes
    x, y : float
        y is the middle of the lines, whatever letters they have, so that texts side by side are level.
    text : str
        One line or more.
    size : float
        Size of the font, in points.
    **style
        Options of matplotlib's `annotate`, such as ha and color.

    Returns
    -------
    matplotlib Annotation
    """
    lines = text.count("\n") + 1
    rise = -size * ((lines - 1) / 2 * _LEADING + _CAPITAL / 2)  # of the last line's foot over the middle, in points
    options: dict[str, Any] = {"ha": "left", "color": INK, "zorder": 4, "annotation_clip": False} | style
    return axes.annotate(
        printable(text),
        (x, y),
        xytext=(0, rise),
        textcoords="offset points",
        va="baseline",
        fontsize=size,
        family=families(),
        parse_math=False,
        **options,
    )


def write_title(axes: Axes, x: float, y: float, text: str, *, size: float = 13) -> None:
    """Write the title of a sheet from (x, y) on: bold, and cut where the sheet ends."""
    space = (max(axes.get_xlim()) - x) * inches_per_unit(axes) - 0.1
    write(axes, x, y, shorten(text, space / _BOLD, size), size=size, fontweight="bold")


def inches_per_unit(axes: Axes) -> float:
    """How many inches a unit of the coordinates of a sheet is."""
    low, high = axes.get_xlim()
    figure = axes.figure
    assert isinstance(figure, Figure)  # and no figure within a figure
    return float(figure.get_size_inches()[0] * axes.get_position().width / abs(high - low))
