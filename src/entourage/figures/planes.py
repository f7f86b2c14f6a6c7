"""Items in the plane, coloured by their labels: some classes in panels, or a whole set with pictures of its groups."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.free_space import FreeSpace
from entourage.figures.label_styles import THIN, LabelStyle, styles_of
from entourage.figures.legend import KEY_WIDTH, draw_key
from entourage.figures.sheet import draw_frame, draw_picture, write
from entourage.figures.style import head
from entourage.figures.text import shorten
from entourage.values import FloatArray, IntArray, LabelArray

__all__ = ["Plane", "draw_map", "draw_planes"]

_PANEL, _NARROWEST = 2.7, 6.8  # inches, of a panel and of a sheet of them, whose title wants space
_WIDTH, _HEIGHT, _PICTURE = 10.0, 8.0, 0.42  # inches, of a map and of the pictures on it
_EACH = 3  # pictures of a group
_FARTHEST = 1.6  # inches from an item to its picture


class Plane(NamedTuple):
    """Items of a panel."""

    places: FloatArray
    """(N, 2)"""
    labels: LabelArray
    """(N,)"""


def draw_planes(planes: Sequence[Sequence[Plane]], row_titles: Sequence[str], title: str, note: str = "") -> Figure:
    """Draw panels of items, a row for each title; a label has the same colour and shape in a column.

    Parameters
    ----------
    planes : sequence of sequences of Plane
        planes[row][column]; the panels of a column show the same labels.
    row_titles : sequence of str
    title : str
    note : str, optional
        What is written below the panels.

    Returns
    -------
    matplotlib Figure
    """
    if not planes or len(planes) != len(row_titles):
        raise InputError(f"there are {len(planes)} rows of panels and {len(row_titles)} titles; wanted one for each")
    columns = len(planes[0])
    width = max(0.4 + _PANEL * columns, _NARROWEST)
    height = _PANEL * _steepest([each.places for of_row in planes for each in of_row])
    figure = Figure(figsize=(width, 0.7 + height * len(planes)), layout="constrained")
    head(figure, title)
    panels = figure.subplots(len(planes), columns, squeeze=False)
    for column in range(columns):
        looks = {
            style.name: style for style in styles_of(planes[0][column].labels, planes[0][column].places) if style.name
        }
        for row, of_row in enumerate(planes):
            _scatter(panels[row, column], of_row[column], looks)
    for axes, name in zip(panels[:, 0], row_titles, strict=True):
        axes.set_ylabel(name, fontsize=10)
    if note:
        figure.supxlabel(shorten(note, width, 8.5), fontsize=8.5, color="0.35")
    return figure


def _steepest(planes: Sequence[FloatArray]) -> float:
    """The height of the tallest panel by its width: flat ones need no square."""
    extents = [np.ptp(places, axis=0) for places in planes]
    return float(np.clip(max(high / max(wide, 1e-9) for wide, high in extents), 0.6, 1))


def _scatter(axes: Axes, plane: Plane, looks: dict[str, LabelStyle]) -> None:
    for name, style in looks.items():
        rows = np.flatnonzero(plane.labels.astype(str) == name)
        size = 26 if style.shape in THIN else 16
        x, y = plane.places[rows].T
        axes.scatter(x, y, s=size, c=style.colour, marker=style.shape, edgecolors="white", linewidths=0.3)
    axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    for side in axes.spines.values():
        side.set_color("0.8")


def draw_map(places: FloatArray, appearance: Appearance, title: str, *, seed: int = 0) -> Figure:
    """Draw a whole set; the most frequent labels have a colour, and pictures of some of their items.

    Parameters
    ----------
    places : array of shape (N, 2)
    appearance : Appearance
        How the N items look, with labels.
    title : str
    seed : int, default 0
        Decides which of equally frequent labels are named.

    Returns
    -------
    matplotlib Figure
    """
    places = np.asarray(places, float)
    if appearance.labels is None or places.shape != (len(appearance), 2):
        raise InputError(f"places have shape {places.shape}; wanted ({len(appearance)}, 2), of items with labels")
    low, high = places.min(axis=0), places.max(axis=0)
    shown = 0.3 + (places - low) / np.maximum(high - low, 1e-9) * (np.array([_WIDTH, _HEIGHT]) - 0.6)  # inches
    figure = Figure(figsize=(_WIDTH + KEY_WIDTH + 0.3, _HEIGHT + 0.7))
    whole = figure.get_size_inches()
    axes = figure.add_axes((0.15 / whole[0], 0.15 / whole[1], _WIDTH / whole[0], _HEIGHT / whole[1]))
    axes.set(xlim=(0, _WIDTH), ylim=(_HEIGHT, 0))
    axes.axis("off")
    write(axes, 0.05, -0.28, shorten(title, _WIDTH, 13), size=13, fontweight="bold")
    styles = styles_of(appearance.labels, shown, seed=seed)
    space = FreeSpace(_WIDTH, _HEIGHT)
    space.add_dots(shown)
    for style in styles:
        size = float(np.clip(9000 / len(appearance), 2, 26)) * (1.6 if style.shape in THIN else 1)
        x, y = shown[style.rows].T
        axes.scatter(x, y, s=size, c=style.colour, marker=style.shape, linewidths=0, zorder=2)
        if style.name is not None:
            _show_some(axes, space, shown, appearance, style)
    draw_key(axes, _WIDTH + 0.1, styles, appearance.labels, None)
    return figure


def _show_some(axes: Axes, space: FreeSpace, places: FloatArray, shown: Appearance, style: LabelStyle) -> None:
    """Pictures of the items nearest to the middle of a label's items, in frames of its colour."""
    for row in _nearest_to_the_middle(places, style.rows)[:_EACH]:
        picture = shown.thumbnail(int(row))
        place = None if picture is None else space.place((_PICTURE, _PICTURE), places[row], farthest=_FARTHEST)
        if picture is None or place is None:
            continue
        box = (place[0] - _PICTURE / 2, place[1] - _PICTURE / 2, _PICTURE, _PICTURE)
        draw_picture(axes, np.asarray(picture), box)
        draw_frame(axes, box, None, edge=style.colour)
        end = np.clip(places[row], box[:2], (box[0] + _PICTURE, box[1] + _PICTURE))
        axes.plot(*zip(places[row], end, strict=True), color=style.colour, linewidth=0.6, zorder=1)


def _nearest_to_the_middle(places: FloatArray, rows: IntArray) -> IntArray:
    apart = np.linalg.norm(places[rows] - np.median(places[rows], axis=0), axis=1)
    return rows[np.argsort(apart, kind="stable")]
