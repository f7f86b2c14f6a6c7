"""A query on its way among its neighbours in the plane (supplement Figs 5-9 of Attend to Context)."""

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from numpy.typing import ArrayLike

from entourage.errors import InputError
from entourage.figures.appearance import Appearance, same_label
from entourage.figures.free_space import FreeSpace
from entourage.figures.sheet import INK, draw_cell, write
from entourage.figures.style import SUBSCRIPTS
from entourage.figures.text import shorten
from entourage.values import FloatArray, IntArray

__all__ = ["draw_query_plane"]

_WIDTH, _LOWEST, _HIGHEST = 8.6, 3.6, 6.2  # inches, of the plane
_CELL = 0.78  # inches, of a picture
_EDGE = 1.1  # inches around all places, for the pictures beside them
_PATH = "#1f6fb4"


def draw_query_plane(
    path: ArrayLike,
    around: ArrayLike,
    appearance: Appearance,
    query: int,
    neighbors: IntArray,
    title: str,
    *,
    gallery: Appearance | None = None,
    note: str = "",
) -> Figure:
    """Draw where a query goes, step by step, among its neighbours, which stay where they are.

    Parameters
    ----------
    path : array-like of shape (T + 1, 2)
        The place of the query after 0, 1, ..., T steps.
    around : array-like of shape (k, 2)
        The places of its neighbours.
    appearance : Appearance
        How items look.
    query : int
        Which of them is the query.
    neighbors : array of shape (k,)
        Which items, of the gallery where there is one, are its neighbours.
    title : str
    gallery : Appearance, optional
        How the neighbours look, if they are of another set.
    note : str, optional
        What is written below the title.

    Returns
    -------
    matplotlib Figure
    """
    path, around = np.asarray(path, float), np.asarray(around, float)
    if path.ndim != 2 or path.shape[1] != 2 or around.shape != (len(neighbors), 2):
        raise InputError(
            f"the path has shape {path.shape} and the neighbours {around.shape}; wanted (T + 1, 2) and "
            f"({len(neighbors)}, 2)"
        )
    path, around, height = _on_paper(path, around)
    others = appearance if gallery is None else gallery
    figure = Figure(figsize=(_WIDTH + 0.3, height + 0.95))
    whole = figure.get_size_inches()
    axes = figure.add_axes((0.15 / whole[0], 0.1 / whole[1], _WIDTH / whole[0], height / whole[1]))
    axes.set(xlim=(0, _WIDTH), ylim=(height, 0))
    axes.axis("off")
    write(axes, 0.05, -0.62, shorten(title, _WIDTH * 0.88, 13), size=13, fontweight="bold")
    write(axes, 0.05, -0.3, shorten(note or _meaning(len(path) - 1), _WIDTH, 9), size=9, color="0.4")
    space = FreeSpace(_WIDTH, height)
    space.add_dots(np.concatenate([path, around]))
    space.add_lines(path[:-1], path[1:])
    _draw_path(axes, path)
    ends = {"e₀": path[0], f"e{len(path) - 1}".translate(SUBSCRIPTS): path[-1]}
    for name, place in ends.items():
        _beside(axes, space, place, appearance, query, None, f"query, {name}")
    for rank, (place, row) in enumerate(zip(around, neighbors.tolist(), strict=True), 1):
        right = same_label(appearance, query, others, row)
        axes.scatter(place[0], place[1], s=30, color="0.45", zorder=3)
        _beside(axes, space, place, others, row, right, f"{rank}: {others.name(row)}")
    return figure


def _meaning(steps: int) -> str:
    last = f"e{steps}".translate(SUBSCRIPTS)
    return f"the query's place is fitted to its similarities after each step, from e₀ to {last}; its neighbours stay"


def _on_paper(path: FloatArray, around: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Both in inches, as large as the sheet allows and not distorted, and the height of the sheet."""
    every = np.concatenate([path, around])
    low, high = every.min(axis=0), every.max(axis=0)
    extent = np.maximum(high - low, 1e-9)
    scale = float(((np.array([_WIDTH, _HIGHEST]) - 2 * _EDGE) / extent).min())
    height = float(np.clip(scale * extent[1] + 2 * _EDGE, _LOWEST, _HIGHEST))
    path, around = ((each - (low + high) / 2) * scale + np.array([_WIDTH, height]) / 2 for each in (path, around))
    return path, around, height


def _draw_path(axes: Axes, path: FloatArray) -> None:
    axes.scatter(path[0, 0], path[0, 1], s=46, facecolor="white", edgecolor=_PATH, linewidths=1.6, zorder=5)
    for begin, end in pairwise(path):
        axes.plot(*zip(begin, end, strict=True), color=_PATH, linewidth=1.8, zorder=4)
        axes.scatter(end[0], end[1], s=14, color=_PATH, zorder=5)
    moved = np.linalg.norm(np.diff(path, axis=0), axis=1)
    if moved.any():  # a head at the last step that is long enough to have one
        last = int(np.flatnonzero(moved > 0.25 * moved.max())[-1])
        arrow = FancyArrowPatch(
            path[last], path[last + 1], arrowstyle="-|>", mutation_scale=16, color=_PATH, linewidth=1.8, zorder=6
        )
        axes.add_patch(arrow)


def _beside(
    axes: Axes, space: FreeSpace, place: FloatArray, shown: Appearance, row: int, right: bool | None, name: str
) -> None:
    """The picture of an item beside its place, its name below, and a line between picture and place."""
    size = (_CELL + 0.3, _CELL + 0.2)
    found = (
        space.place(size, place, farthest=2.0)
        or space.place(size, place, farthest=3.0, crossing=True)
        or space.place(size, place, farthest=np.inf, per_dot=0.3, crossing=True)
    )
    x, y = place if found is None else found
    left, top = x - _CELL / 2, y - _CELL / 2 - 0.08
    edge = INK if right is None else None
    draw_cell(axes, shown, row, left, top, right, width=_CELL, height=_CELL, inset=0.02, edge=edge)
    write(axes, x, top + _CELL + 0.08, shorten(name, _CELL + 0.34, 7.5), size=7.5, ha="center", color="0.25")
    end = np.clip(place, (left, top), (left + _CELL, top + _CELL))
    axes.plot(*zip(place, end, strict=True), color="0.6", linewidth=0.7, zorder=1)
