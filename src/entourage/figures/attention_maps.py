"""Where two images attend in a third, and where they differ (Figs. S2 and S3 of Cross-Image-Attention).

A row for I1 and a row for I2, both over the same picture Ia, and between them the squared difference at every place.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from entourage.figures.sheet import INK, draw_frame, draw_picture
from entourage.figures.style import head
from entourage.figures.text import shorten
from entourage.values import FloatArray

__all__ = ["draw_attention"]

_CELL = 1.5  # inches
_HEAT = "inferno"
_WHOLE = (0.0, 0.0, 1.0, 1.0)
_LEAST_SEEN = 0.01  # squared difference that has the whole scale at least: noise must not look like a difference


def draw_attention(
    pictures: Sequence[NDArray[Any]], names: Sequence[str], maps: FloatArray, blocks: Sequence[int], title: str
) -> Figure:
    """Draw the attention of a triple of images: Ia, I1 of the same class, and I2 of another.

    Parameters
    ----------
    pictures : sequence of 3 arrays of shape (H, W), grey, or (H, W, 3)
    names : sequence of 3 str
        The names of Ia, I1 and I2.
    maps : array of shape (2, N, h, w)
        The attention of I1 and of I2 over the places of Ia in each of N blocks; each map sums to 1.
    blocks : sequence of int
        The blocks to show, counted from 1.
    title : str

    Returns
    -------
    matplotlib Figure
    """
    shown = np.stack([maps[:, number - 1] for number in blocks], axis=1) * maps[0, 0].size  # 1: as if all were alike
    difference = (shown[0] - shown[1]) ** 2
    most = shown.max()  # one scale for both, or they could not be compared
    rows = [
        (shown[0], most, "attends to"),
        (difference, max(difference.max(), _LEAST_SEEN), "squared\ndifference"),
        (shown[1], most, "attends to"),
    ]
    figure = Figure(figsize=(_CELL * (len(blocks) + 1) + 2.4, _CELL * 3 + 2.3), layout="constrained")
    head(figure, title)
    grid = figure.subplots(3, len(blocks) + 2, gridspec_kw={"width_ratios": [1] * (len(blocks) + 1) + [0.09]})
    for line, (values, top, heading) in enumerate(rows):
        which = (1, 0, 2)[line]
        right, edge = ((None, INK), (True, None), (False, None))[which]  # I1 is of Ia's class, I2 of another
        _picture(grid[line, 0], pictures[which], names[which], right, edge)
        for column, number in enumerate(blocks):
            axes = grid[line, column + 1]
            heat = _over(axes, pictures[0], values[column], top)
            if line == 0:
                axes.set_title(f"block {number}", fontsize=10)
            if column == 0:
                axes.set_ylabel(heading, fontsize=9)
        bar = figure.colorbar(heat, cax=grid[line, -1])
        bar.ax.tick_params(labelsize=7)
    figure.supxlabel("attention over Ia as a multiple of the even share (1: all places alike)", fontsize=9)
    return figure


def _picture(axes: Axes, pixels: NDArray[Any], name: str, right: bool | None, edge: str | None) -> None:
    _unit(axes)
    draw_frame(axes, draw_picture(axes, pixels, _WHOLE), right, edge=edge)
    axes.set_aspect("equal")  # which drawing a picture has changed
    axes.set_xlabel(shorten(name, _CELL, 8), fontsize=8, parse_math=False)


def _over(axes: Axes, pixels: NDArray[Any], heat: FloatArray, most: float) -> AxesImage:
    """Draw the heat of h x w places over the picture they belong to."""
    _unit(axes)
    x, y, width, height = draw_picture(axes, pixels, _WHOLE)
    where: dict[str, Any] = {"extent": (x, x + width, y + height, y), "aspect": "equal", "interpolation": "nearest"}
    return axes.imshow(heat, cmap=_HEAT, vmin=0, vmax=most, alpha=0.65, zorder=2.5, **where)


def _unit(axes: Axes) -> None:
    """Make axes of 1 x 1 without lines; y runs down."""
    axes.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
