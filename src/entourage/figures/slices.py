"""What the slices of an embedding know: how recall grows slice by slice, and what one of them alone finds."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["draw_first_slices", "draw_specialities"]

_STYLES = (("o", "-"), ("s", "--"), ("^", ":"), ("D", "-."))
_CELL = 0.62  # inches


def draw_first_slices(recalls: dict[str, dict[int, Sequence[float]]], title: str) -> Figure:
    """Recall of the first m slices together (Fig. S2 of Divide and Conquer): a panel for each k, a line for each model.

    recalls[model][k][m - 1]: recall@k of the first m slices of that model, a fraction.
    """
    ks = list(next(iter(recalls.values())))
    figure = Figure(figsize=(1.2 + 3.4 * len(ks), 3.9), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    for place, k in enumerate(ks, start=1):
        axes = figure.add_subplot(1, len(ks), place)
        for (model, by_k), (marker, line) in zip(recalls.items(), _STYLES, strict=False):
            values = [100 * value for value in by_k[k]]
            axes.plot(range(1, len(values) + 1), values, marker=marker, linestyle=line, label=model)
        axes.set_title(f"recall@{k}", fontsize=10)
        axes.set_xlabel("first m slices")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.92")
        if place == 1:
            axes.set_ylabel("%")
            axes.legend(frameon=False)
    return figure


def draw_specialities(pictures: Sequence[Sequence], counts: Sequence[int], title: str, *, most: int = 10) -> Figure:
    """Queries that one slice alone gets right (Fig. S1): a row for each slice, with the first `most` pictures.

    pictures[k]: some that slice k + 1 alone finds, each a PIL image or an array; counts[k]: how many there are.
    """
    figure = Figure(figsize=(_CELL * (most + 2.4), _CELL * (len(pictures) + 1)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-2.2, most + 0.2), ylim=(len(pictures) + 0.1, -0.9))
    axes.axis("off")
    axes.text(-2.1, -0.5, title, fontsize=11, fontweight="bold", va="center")
    for row, (found, count) in enumerate(zip(pictures, counts, strict=True)):
        axes.text(-0.15, row + 0.5, f"learner {row + 1}\n{count} found", ha="right", va="center", fontsize=8)
        for place, picture in enumerate(found[:most]):
            extent = (place + 0.05, place + 0.95, row + 0.95, row + 0.05)
            axes.imshow(np.asarray(picture), cmap="gray", vmin=0, vmax=255, extent=extent)
    return figure
