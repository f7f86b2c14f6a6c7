"""Places of other images that are most like a chosen one (Figs. S4 and S5 of Cross-Image-Attention).

A row for each chosen place. Frames tell whether an image has the query's label, and so do a tick and a cross.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from entourage.figures.retrieval import RIGHT, WRONG

__all__ = ["draw_parts"]

_CELL = 0.95  # inches
_PLACE = "#f28e1c"
_WIDER = 2  # places a box spans: what a place sees is wider than its share of the picture


def draw_parts(queries: list[dict], title: str, shape: tuple[int, int]) -> Figure:
    """queries: {"picture", "name", "place": (y, x), "found": [{"picture", "place", "right"}, ...]} for each row.

    Pictures are arrays of grey (H, W) or coloured (H, W, 3) pixels; places are those of a map of shape (h, w).
    """
    k = max(4, *(len(query["found"]) for query in queries))  # room for the heading
    width, height = k + 1.5, len(queries)
    figure = Figure(figsize=(_CELL * (width + 1.7), _CELL * (height + 0.95)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.6, width + 0.1), ylim=(height + 0.1, -0.85))
    axes.axis("off")
    axes.text(-1.5, -0.6, title, fontsize=11, fontweight="bold", va="center")
    for x, heading in ((0.5, "chosen place"), (1.5 + k / 2, "most similar places elsewhere, nearest first")):
        axes.text(x, -0.15, heading, ha="center", va="center", fontsize=9)
    for line, query in enumerate(queries):
        axes.text(-0.1, line + 0.5, query["name"], ha="right", va="center", fontsize=8, linespacing=1.3)
        _cell(axes, query["picture"], query["place"], shape, 0, line, None)
        for column, part in enumerate(query["found"]):
            _cell(axes, part["picture"], part["place"], shape, 1.5 + column, line, part["right"])
    return figure


def _cell(axes, pixels, place, shape, x: float, y: float, right: bool | None) -> None:
    """A picture with a box at the place, framed by whether its label is right; None: the query, without a frame."""
    inset, side = 0.06, 0.88
    extent = (x + inset, x + inset + side, y + inset + side, y + inset)
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, extent=extent, zorder=1)
    steps = np.array([side / shape[1], side / shape[0]])  # of one place, along x and y
    centre = np.array([x + inset, y + inset]) + (np.array([place[1], place[0]]) + 0.5) * steps
    low = np.maximum(centre - _WIDER * steps / 2, [x + inset, y + inset])
    high = np.minimum(centre + _WIDER * steps / 2, [x + inset + side, y + inset + side])
    for colour, width in (("black", 3.0), (_PLACE, 1.6)):  # dark around it, to be seen on any picture
        axes.add_patch(Rectangle(low, *(high - low), fill=False, edgecolor=colour, linewidth=width, zorder=2))
    if right is None:
        return
    colour, style = (RIGHT, "solid") if right else (WRONG, (0, (2, 1)))
    frame = Rectangle((x + inset, y + inset), side, side, fill=False, edgecolor=colour, linewidth=2.2, linestyle=style)
    axes.add_patch(frame).set_zorder(3)
    badge = {"boxstyle": "circle,pad=0.12", "facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
    mark = "✓" if right else "✗"
    axes.text(x + 0.88, y + 0.12, mark, color="white", fontsize=7, ha="center", va="center", bbox=badge, zorder=4)
