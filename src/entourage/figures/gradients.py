"""How large gradients are at the encoder's output, epoch by epoch (Fig. S1 of Cross-Image-Attention)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.figures.style import STYLES, head, tidy
from entourage.values import FloatArray, IntArray

__all__ = ["draw_gradients"]

_PANELS = 3
_Counts = dict[str, dict[int, IntArray]]


def draw_gradients(counts: dict[str, dict[int, IntArray]], edges: FloatArray, title: str) -> Figure:
    """Draw histograms of log10 |g| in the first, a middle and the last epoch, and their medians over all epochs.

    Parameters
    ----------
    counts : dict of dicts of arrays of shape (n,)
        counts[name][epoch][i] is how many values of a training fall between edges[i] and edges[i + 1]. Only epochs
        that all trainings have are drawn.
    edges : array of shape (n + 1,)
        The edges of the bins, in log10 |g|.
    title : str

    Returns
    -------
    matplotlib Figure
    """
    epochs = _shared_epochs(counts)
    shown = sorted({epochs[int(place)] for place in np.linspace(0, len(epochs) - 1, _PANELS)})
    figure = Figure(figsize=(9.5, 2.1 * len(shown) + 1.2), layout="constrained")
    head(figure, title)
    grid = figure.add_gridspec(len(shown), 2, width_ratios=(1.5, 1))
    limits = _limits(counts, shown, edges)
    panels: list[Axes] = []
    for line in range(len(shown)):  # one scale for all epochs
        panels.append(figure.add_subplot(grid[line, 0], sharey=panels[0] if panels else None))
    for axes, epoch in zip(panels, shown, strict=True):
        for (name, by_epoch), (colour, style, _) in zip(counts.items(), STYLES, strict=False):
            share = np.asarray(by_epoch[epoch], float) / max(np.sum(by_epoch[epoch]), 1)
            axes.stairs(100 * share, edges, color=colour, linestyle=style, linewidth=1.8, label=name)
        axes.set(xlim=limits)
        axes.set_title(f"epoch {epoch}", loc="left", fontsize=10)
        axes.set_ylabel("% of values", fontsize=9)
        tidy(axes)
    panels[0].set_ylim(0, None)
    panels[-1].set_xlabel("log₁₀ |gradient| at the encoder's output")
    medians = figure.add_subplot(grid[:, 1])
    _medians(medians, counts, edges, epochs)
    figure.legend(*medians.get_legend_handles_labels(), loc="outside lower center", ncols=len(counts), frameon=False)
    return figure


def _shared_epochs(counts: _Counts) -> list[int]:
    every = [set(by_epoch) for by_epoch in counts.values()]
    epochs = sorted(set.intersection(*every)) if every else []
    if not epochs:
        seen = ", ".join(f"{name} has {len(by_epoch)} epochs" for name, by_epoch in counts.items()) or "nothing"
        raise InputError(
            f"no epoch has gradients of all trainings ({seen}); wanted at least one: "
            "train with probe_batches of 1 or more"
        )
    return epochs


def _medians(axes: Axes, counts: _Counts, edges: FloatArray, epochs: Sequence[int]) -> None:
    for (name, by_epoch), (colour, style, marker) in zip(counts.items(), STYLES, strict=False):
        values = [_median(by_epoch[epoch], edges) for epoch in epochs]
        axes.plot(epochs, values, color=colour, linestyle=style, marker=marker, markersize=4, label=name)
    axes.set_title("median", loc="left", fontsize=10)
    axes.set_xlabel("epoch")
    axes.set_ylabel("log₁₀ |gradient|", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)


def _median(counts: IntArray, edges: FloatArray) -> float:
    if not np.sum(counts):
        return float("nan")  # drawn as a gap
    share = np.concatenate([[0], np.cumsum(counts)]) / np.sum(counts)
    return float(np.interp(0.5, share, edges))  # even within a bin


def _limits(counts: _Counts, shown: Sequence[int], edges: FloatArray) -> tuple[float, float]:
    """Where all but a thousandth of the values lie, with a margin."""
    total: NDArray[np.float64] = np.sum([by_epoch[epoch] for by_epoch in counts.values() for epoch in shown], axis=0)
    if not total.sum():
        return float(edges[0]), float(edges[-1])
    share = np.cumsum(total) / total.sum()
    first, last = np.searchsorted(share, [0.001, 0.999])
    return float(edges[first]) - 0.3, float(edges[min(last + 1, len(edges) - 1)]) + 0.3
