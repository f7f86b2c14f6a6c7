"""The pieces that sheets of items are made of: a sheet, and on it cells with a picture, a text or an id in a frame.

A frame says whether an item is right three times over: by colour (green, red), by line (solid, dashed) and by a mark
(tick, cross). Grey without a mark says nothing: the label is not known.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from entourage.figures.appearance import Appearance
from entourage.figures.style import INK
from entourage.figures.words import POINTS, families, printable, shorten, wrap

__all__ = [
    "INK",
    "NEUTRAL",
    "RIGHT",
    "WRONG",
    "draw_cell",
    "draw_frame",
    "draw_picture",
    "draw_text",
    "inches_per_unit",
    "new_sheet",
    "write",
    "write_title",
]

RIGHT, WRONG, NEUTRAL = "#1a7f37", "#c4314b", "#8a8f98"
_BEHIND = "#f3f4f6"  # what a picture or text lies on
_LEADING, _CAPITAL = 1.2, 0.73  # height of a line and of a capital letter, in font sizes
_BOLD = 1.15  # times as wide as plain letters


def new_sheet(left: float, right: float, top: float, bottom: float, unit: float) -> tuple[Figure, object]:
    """A figure that is all one axes without lines; coordinates run right and down, a unit is `unit` inches in both."""
    figure = Figure(figsize=(unit * (right - left), unit * (bottom - top)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.axis("off")
    return figure, axes


def draw_cell(
    axes,
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
    """One item of a sheet in the cell with its upper left corner at (x, y): its picture, or else its text or id.

    right: whether its label is the one looked for, None if that is not known. edge: a colour for the frame of a cell
    that is neither right nor wrong, the query. size: of texts, in points.
    """
    box = (x + inset, y + inset, width - 2 * inset, height - 2 * inset)
    picture = appearance.thumbnail(row)
    if picture is None:
        draw_text(axes, appearance.text(row), box, size=size, clear=right is not None)
    else:
        draw_picture(axes, np.asarray(picture), box)
    draw_frame(axes, box, right, edge=edge)


def draw_picture(axes, pixels: np.ndarray, box: tuple[float, float, float, float]) -> tuple[float, ...]:
    """Pixels (H, W) grey or (H, W, 3), whole and undistorted in the middle of a box (x, y, width, height).

    Returns the box that the picture itself takes.
    """
    x, y, width, height = box
    axes.add_patch(Rectangle((x, y), width, height, facecolor=_BEHIND, edgecolor="none", zorder=1))
    tall, wide = pixels.shape[:2]
    scale = min(width / wide, height / tall)
    inner = (x + (width - wide * scale) / 2, y + (height - tall * scale) / 2, wide * scale, tall * scale)
    extent = (inner[0], inner[0] + inner[2], inner[1] + inner[3], inner[1])
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, extent=extent, aspect="auto", zorder=2)
    return inner


def draw_text(axes, text: str, box, *, size: float = 7.5, clear: bool = False) -> None:
    """A text wrapped to a box (x, y, width, height) and cut to as many lines as fit; clear: leave room for a mark."""
    x, y, width, height = box
    axes.add_patch(Rectangle((x, y), width, height, facecolor=_BEHIND, edgecolor="none", zorder=1))
    inches = inches_per_unit(axes)
    margin = 0.05  # inches
    room = width * inches - 2 * margin - (0.12 if clear else 0)
    lines = max(1, int((height * inches - margin) * POINTS / (size * _LEADING)))
    wrapped = "\n".join(wrap(text, room, lines, size))
    write(axes, x + margin / inches, y + height / 2, wrapped, size=size, ha="left")


def draw_frame(axes, box, right: bool | None, *, edge: str | None = None) -> None:
    """The frame of a box (x, y, width, height): green, solid and ticked; red, dashed and crossed; or grey."""
    x, y, width, height = box
    colour = edge or (NEUTRAL if right is None else RIGHT if right else WRONG)
    style = (0, (2, 1)) if right is False else "solid"
    thick = 2.0 if right is not None else 1.5 if edge else 1.0
    frame = Rectangle(
        (x, y), width, height, fill=False, edgecolor=colour, linewidth=thick, linestyle=style, zorder=3, clip_on=False
    )
    axes.add_patch(frame)
    if right is None:
        return
    badge = {"boxstyle": "circle,pad=0.12", "facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
    # on the corner, a little inside, whatever the scale of the axes
    place = {"xytext": (-3.2, -3.2), "textcoords": "offset points", "ha": "center", "va": "center", "zorder": 4}
    mark = "✓" if right else "✗"
    axes.annotate(mark, (x + width, y), fontsize=7, family=families(), color="white", bbox=badge, **place)


def write(axes, x: float, y: float, text: str, *, size: float, **style):
    """Text with its middle at y: that of its lines, whatever letters they have, so that words in a row are level.

    It is written as it is: a dollar sign in a label or a sentence is not the beginning of a formula.
    """
    lines = text.count("\n") + 1
    rise = -size * ((lines - 1) / 2 * _LEADING + _CAPITAL / 2)  # of the last line's foot over the middle, in points
    style = {"ha": "left", "color": INK, "zorder": 4, "annotation_clip": False} | style
    return axes.annotate(
        printable(text),
        (x, y),
        xytext=(0, rise),
        textcoords="offset points",
        va="baseline",
        fontsize=size,
        family=families(),
        parse_math=False,
        **style,
    )


def write_title(axes, x: float, y: float, text: str, *, size: float = 13) -> None:
    """Bold, and cut where the sheet ends."""
    room = (max(axes.get_xlim()) - x) * inches_per_unit(axes) - 0.1
    write(axes, x, y, shorten(text, room / _BOLD, size), size=size, fontweight="bold")


def inches_per_unit(axes) -> float:
    low, high = axes.get_xlim()
    return axes.figure.get_size_inches()[0] * axes.get_position().width / abs(high - low)
