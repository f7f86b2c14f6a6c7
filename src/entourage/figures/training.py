"""The course of a training: the loss and the held-out score of each epoch, and the epoch that was kept."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from entourage.errors import InputError
from entourage.figures.style import INK, STYLES, head, tidy

__all__ = ["draw_training", "kept_epoch"]

_SCORE, _LOSS = STYLES[:2]


def draw_training(entries: list[dict[str, Any]], title: str, *, score_title: str = "held-out score, %") -> Figure:
    """Draw the loss and, where there are scores, the held-out score over epochs.

    Parameters
    ----------
    entries : list of dict
        The lines of log.jsonl: {"epoch", "loss", "score", ...}. The loss is None before training (epoch 0); the score,
        a fraction, is None where no classes were held out.
    title : str
    score_title : str
        What the axis of scores is called.

    Returns
    -------
    matplotlib Figure
    """
    losses = _points(entries, "loss")
    scores = _points(entries, "score")
    if not losses and not scores:
        raise InputError(
            f"none of {len(entries)} log entries has a loss or a score; wanted at least one epoch: train the encoder"
        )
    panels = [panel for panel in ((losses, "training loss", _LOSS, 1), (scores, score_title, _SCORE, 100)) if panel[0]]
    figure = Figure(figsize=(7.5, 1.0 + 2.2 * len(panels)), layout="constrained")
    head(figure, title)
    kept = kept_epoch(entries)
    for axes, (points, name, style, factor) in zip(
        figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True
    ):
        _curve(axes, points, name, style, factor)
        _mark(axes, points, kept, factor)
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def kept_epoch(entries: list[dict[str, Any]]) -> int:
    """The epoch whose weights a run keeps: the first with the best score, or the last one if there are no scores."""
    scores = _points(entries, "score")
    return max(scores, key=lambda epoch: scores[epoch]) if scores else int(entries[-1]["epoch"])


def _points(entries: list[dict[str, Any]], name: str) -> dict[int, float]:
    return {entry["epoch"]: entry[name] for entry in entries if entry.get(name) is not None}


def _curve(axes: Axes, points: dict[int, float], name: str, style: tuple[str, str, str], factor: float) -> None:
    colour, line, marker = style
    values = factor * np.array(list(points.values()))
    axes.plot(list(points), values, color=colour, linestyle=line, marker=marker, markersize=3.5, linewidth=1.6)
    axes.set_ylabel(name, fontsize=9)
    axes.margins(x=0.03, y=0.1)
    tidy(axes)


def _mark(axes: Axes, points: dict[int, float], kept: int, factor: float) -> None:
    """Mark the epoch that was kept: a dotted line, a ring on the curve, and above the panel the epoch and its value."""
    axes.axvline(kept, color="0.45", linestyle=":", linewidth=1.2, zorder=0)
    if kept not in points:  # the state before training, which has no loss
        return
    value = factor * points[kept]
    axes.plot([kept], [value], "o", markersize=10, fillstyle="none", color=INK, markeredgewidth=1.5)
    written = f"{value:.3g}" if factor == 1 else f"{value:.1f} %"
    axes.set_title(f"○ kept: epoch {kept}, {written}", loc="right", fontsize=8.5, color=INK)
