"""A sheet of queries with what they retrieve before and after: the biggest gains first, then the biggest losses."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from entourage.values import Images, Neighbors

__all__ = ["choose_queries", "draw_retrieval"]

RIGHT, WRONG = "#1a7f37", "#c4314b"
_CELL = 0.62  # inches
_SPLIT = 0.7  # cells between the three groups of a row


def choose_queries(gains: np.ndarray, n_best: int, n_worst: int) -> np.ndarray:
    """Rows of the queries that gained most and lost most, (n_best + n_worst,); ties by row.

    Queries that did not gain are never shown as gains, nor the reverse, so there may be fewer.

    >>> choose_queries(np.array([0.1, -0.2, 0.4, 0.0]), 2, 2).tolist()
    [2, 0, 1]
    """
    order = np.argsort(-gains, kind="stable")
    best = [row for row in order[:n_best] if gains[row] > 0]
    worst = [row for row in order[::-1][:n_worst] if gains[row] < 0]
    return np.array(best + worst, int)


def draw_retrieval(
    images: Images, before: Neighbors, after: Neighbors, queries: np.ndarray, gains: np.ndarray, title: str
) -> Figure:
    """One row per query: the query, its nearest items before, its nearest items after.

    before and after: neighbours of all N images, the first k of which are shown; gains (N,): change of each query's
    average precision, printed beside it.
    """
    k = before.k
    n_columns = 1 + 2 * k + 2 * _SPLIT
    width, height = _CELL * (n_columns + 3.6), _CELL * (len(queries) + 1.9)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-3.4, n_columns + 0.2), ylim=(len(queries) + 0.2, -1.7))
    axes.axis("off")
    starts = {"query": 0.0, "before": 1 + _SPLIT, "after": 1 + k + 2 * _SPLIT}
    axes.text(-3.2, -1.25, title, fontsize=13, fontweight="bold", va="center")
    for name, start in starts.items():
        axes.text(start + (0.5 if name == "query" else k / 2), -0.35, name, ha="center", va="center", fontsize=11)
    for line, query in enumerate(queries):
        sign = "▲" if gains[query] > 0 else "▼"
        caption = f"{images.labels[query]}\n{sign} {100 * gains[query]:+.0f} AP@R"
        axes.text(-0.2, line + 0.5, caption, ha="right", va="center", fontsize=9, linespacing=1.4)
        _thumbnail(axes, images.pixels[query], starts["query"], line, None)
        for name, found in (("before", before), ("after", after)):
            for place, row in enumerate(found.rows[query]):
                right = images.labels[row] == images.labels[query]
                _thumbnail(axes, images.pixels[row], starts[name] + place, line, right)
    return figure


def _thumbnail(axes, pixels, x: float, y: float, right: bool | None) -> None:
    """One picture in cell (x, y), framed by whether it is right; None: the query itself, without a frame."""
    inset = 0.07
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, extent=(x + inset, x + 1 - inset, y + 1 - inset, y + inset))
    if right is None:
        return
    colour = RIGHT if right else WRONG
    side = 1 - 2 * inset
    style = "solid" if right else (0, (2, 1))
    axes.add_patch(
        Rectangle((x + inset, y + inset), side, side, fill=False, edgecolor=colour, linewidth=2, linestyle=style)
    )
    badge = {"boxstyle": "circle,pad=0.12", "facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
    mark = "✓" if right else "✗"
    axes.text(x + 0.86, y + 0.14, mark, color="white", fontsize=6, ha="center", va="center", bbox=badge)
