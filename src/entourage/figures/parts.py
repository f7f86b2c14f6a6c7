"""Places of other images that are most like a chosen place (Figs. S4 and S5 of Cross-Image-Attention).

A row for each chosen place. Frames, and a tick or a cross, show whether an image has the query's label.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from entourage.figures.sheet import INK, draw_frame, draw_picture, new_sheet, write, write_title
from entourage.figures.text import wrap

__all__ = ["draw_parts"]

_CELL, _INSET = 0.95, 0.06  # inches; cells
_NAME = 1.5  # cells for the words before a row
_PLACE = "#f28e1c"
_WIDER = 2  # places a box spans: what a place sees is wider than its share of the picture


def draw_parts(queries: list[dict[str, Any]], title: str, shape: tuple[int, int]) -> Figure:
    """Draw chosen places and the places of other images that are most similar to them.

    Parameters
    ----------
    queries : list of dict
        For each row {"picture", "name", "place", "found": [{"picture", "place", "right"}, ...]}. Pictures are arrays of
        shape (H, W), grey, or (H, W, 3); a place is (y, x) on the map; right is whether the image has the query's
        label, None where that is not known.
    title : str
    shape : (h, w)
        Size of the map that the places are on.

    Returns
    -------
    matplotlib Figure
    """
    k = max(4, *(len(query["found"]) for query in queries))  # room for the heading
    width, height = k + 1.5, len(queries)
    figure, axes = new_sheet(-_NAME - 0.1, width + 0.1, -0.85, height + 0.1, _CELL)
    write_title(axes, -_NAME, -0.6, title, size=11)
    for x, heading in ((0.5, "chosen place"), (1.5 + k / 2, "most similar places elsewhere, nearest first")):
        write(axes, x, -0.15, heading, size=9, ha="center")
    for line, query in enumerate(queries):
        name = "\n".join(wrap(query["name"], _CELL * (_NAME - 0.15), 3, 8))
        write(axes, -0.1, line + 0.5, name, size=8, ha="right")
        _cell(axes, query["picture"], query["place"], shape, 0, line, None, edge=INK)
        for column, part in enumerate(query["found"]):
            _cell(axes, part["picture"], part["place"], shape, 1.5 + column, line, part["right"])
    return figure


def _cell(
    axes: Axes,
    pixels: NDArray[Any],
    place: tuple[int, int],
    shape: tuple[int, int],
    x: float,
    y: float,
    right: bool | None,
    edge: str | None = None,
) -> None:
    """Draw a picture with a box at the place, in a frame that shows whether its label is right."""
    box = (x + _INSET, y + _INSET, 1 - 2 * _INSET, 1 - 2 * _INSET)
    left, top, wide, tall = draw_picture(axes, pixels, box)
    steps = np.array([wide / shape[1], tall / shape[0]])  # of one place, along x and y
    centre = np.array([left, top]) + (np.array([place[1], place[0]]) + 0.5) * steps
    low = np.maximum(centre - _WIDER * steps / 2, [left, top])
    high = np.minimum(centre + _WIDER * steps / 2, [left + wide, top + tall])
    for colour, width in (("black", 3.0), (_PLACE, 1.6)):  # dark around it, to be seen on any picture
        axes.add_patch(
            Rectangle((low[0], low[1]), *(high - low), fill=False, edgecolor=colour, linewidth=width, zorder=2.5)
        )
    draw_frame(axes, box, right, edge=edge)
