"""What the slices of an embedding contribute: recall slice by slice, and what one slice alone finds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from entourage.figures.sheet import draw_frame, draw_picture, new_sheet, write, write_title
from entourage.figures.style import STYLES, head, tidy

__all__ = ["draw_first_slices", "draw_specialities"]

_CELL = 0.62  # inches


def draw_first_slices(recalls: dict[str, dict[int, Sequence[float]]], title: str) -> Figure:
    """Draw the recall of the first m slices together (Fig. S2 of Divide and Conquer).

    There is a panel for each k and a line for each model; all panels have one scale, to be compared side by side.

    Parameters
    ----------
    recalls : dict of dicts of sequences
        recalls[model][k][m - 1] is recall@k of the first m slices of a model, a fraction.
    title : str

    Returns
    -------
    matplotlib Figure
    """
    ks = list(next(iter(recalls.values())))
    figure = Figure(figsize=(1.2 + 3.4 * len(ks), 3.9), layout="constrained")
    head(figure, title)
    panels = figure.subplots(1, len(ks), sharey=True, squeeze=False)[0]
    for axes, k in zip(panels, ks, strict=True):
        for (model, by_k), (colour, line, marker) in zip(recalls.items(), STYLES, strict=False):
            values = [100 * value for value in by_k[k]]
            axes.plot(range(1, len(values) + 1), values, color=colour, marker=marker, linestyle=line, label=model)
        axes.set_title(f"recall@{k}", fontsize=10)
        axes.set_xlabel("first m slices")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(axes)
    panels[0].set_ylabel("%")
    panels[0].legend(frameon=False)
    return figure


def draw_specialities(
    pictures: Sequence[Sequence[Any]], counts: Sequence[int], title: str, *, most: int = 10
) -> Figure:
    """Draw queries that one slice alone gets right (Fig. S1 of Divide and Conquer), a row for each slice.

    Parameters
    ----------
    pictures : sequence of K sequences
        Some of the queries that only that slice gets right, as PIL images or arrays.
    counts : sequence of K int
        How many such queries there are.
    title : str
    most : int, default 10
        How many pictures of a slice to show.

    Returns
    -------
    matplotlib Figure
    """
    figure, axes = new_sheet(-2.2, most + 0.2, -0.9, len(pictures) + 0.1, _CELL)
    write_title(axes, -2.1, -0.5, title, size=11)
    for row, (found, count) in enumerate(zip(pictures, counts, strict=True)):
        write(axes, -0.15, row + 0.5, f"learner {row + 1}\n{count} found", size=8, ha="right")
        for place, picture in enumerate(found[:most]):
            box = (place + 0.05, row + 0.05, 0.9, 0.9)
            draw_picture(axes, np.asarray(picture), box)
            draw_frame(axes, box, None)
    return figure
