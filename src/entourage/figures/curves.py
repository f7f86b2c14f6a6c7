"""Scores over a setting that grows: dimensions, epochs. A line for each way of training, with its spread over seeds."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from entourage.errors import InputError
from entourage.figures.style import STYLES, head, tidy

__all__ = ["draw_curves"]

_RATIO = 16  # between the last and the first value: with more, each is as far from the next as it is times larger


def draw_curves(
    lines: Mapping[str, Mapping[float, Sequence[float]]], x_title: str, y_title: str, title: str, *, note: str = ""
) -> Figure:
    """Draw scores over a setting.

    Parameters
    ----------
    lines : dict of dicts of sequences
        lines[name][x] are the scores at x, one for each seed; their mean is drawn, and their spread as a band.
    x_title, y_title, title : str
    note : str, optional
        What is written below the axis.

    Returns
    -------
    matplotlib Figure
    """
    if not any(lines.values()):
        raise InputError("there is nothing to draw; wanted a line with a point at least")
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    head(figure, title)
    axes = figure.subplots()
    for (name, points), (colour, line, marker) in zip(lines.items(), STYLES, strict=False):
        places = sorted(points)
        means = np.array([np.mean(points[x]) for x in places])
        spreads = np.array([np.std(points[x], ddof=1) if len(points[x]) > 1 else 0.0 for x in places])
        axes.plot(places, means, color=colour, linestyle=line, marker=marker, markersize=5, linewidth=1.6, label=name)
        axes.fill_between(places, means - spreads, means + spreads, color=colour, alpha=0.15, linewidth=0)
    shown = sorted({x for points in lines.values() for x in points})
    if len(shown) > 1 and shown[0] > 0 and shown[-1] / shown[0] >= _RATIO:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{x:g}" for x in shown])
    axes.set(xlabel=f"{x_title}\n{note}" if note else x_title, ylabel=y_title)
    tidy(axes)
    axes.legend(frameon=False, fontsize=9)
    return figure
