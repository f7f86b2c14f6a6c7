"""The neighbours of points before and after, how ranks moved, and what the refiner looked at.

n points, M points of the pool, k neighbours shown, a neighbours attended to.
"""

from typing import Any, NamedTuple

import numpy as np

from entourage.neighbors import SearchIndex, own_gallery_rows, search
from entourage.refiner.context import Context
from entourage.runtime.threads import blocks
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["SHOWN", "Attended", "Ranked", "attended", "moved_ranks", "ranked"]

_COMPARED = 2**27  # neighbours of neighbours that are compared at once

SHOWN = 12


class Ranked(NamedTuple):
    """The nearest of n points."""

    rows: IntArray
    """(n, k) points."""
    similarities: FloatArray
    """(n, k)"""
    others: IntArray
    """(n, k) the rank of each, from 1, in the other ranking."""


class Attended(NamedTuple):
    """What n points attend to."""

    rows: IntArray
    """(n, a) points."""
    weights: FloatArray
    """(n, a) attention, which sums to 1; the same in every step."""
    trust: FloatArray
    """(n, a) how likely the refiner holds both to be of one class."""
    shared: IntArray
    """(n, a) how many neighbours both have in common, among their first a."""
    mine: IntArray
    """(n, a) at which rank, from 1, the point has the other."""
    theirs: IntArray
    """(n, a) at which rank the other has the point; 0 beyond its first a."""

    def document(self) -> dict[str, Any]:
        """The one point it is of."""
        fields = {name: np.asarray(values[0]).tolist() for name, values in self._asdict().items()}
        return {name: _rounded(values) for name, values in fields.items()}


def ranked(queries: Embeddings, pool: SearchIndex, start: int, k: int = SHOWN) -> tuple[IntArray, FloatArray]:
    """The nearest of the pool, as points (n, k), and their similarities; `start` is the pool's first point."""
    available = len(pool) - bool((own_gallery_rows(queries, pool) >= 0).any())
    if available < 1:
        return np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32)
    found = search(queries, pool, min(k, available))
    return found.rows + start, found.similarities


def moved_ranks(queries: Embeddings, pool: SearchIndex, rows: IntArray) -> IntArray:
    """At which rank, from 1, each of the pool's rows (n, k) stands for its query; the query itself is not counted."""
    own = own_gallery_rows(queries, pool)
    ranks = np.empty(rows.shape, np.int64)
    vectors = pool.items.vectors
    for start in range(0, len(rows), 512):  # few enough for their similarities to fit into memory
        block = slice(start, start + 512)
        similar = queries.vectors[block] @ vectors.T  # (n, M)
        itself = own[block]
        inside = np.flatnonzero(itself >= 0)
        similar[inside, itself[inside]] = -np.inf
        wanted = np.take_along_axis(similar, rows[block], axis=1)
        for column in range(rows.shape[1]):
            ranks[block, column] = 1 + (similar > wanted[:, column : column + 1]).sum(axis=1)
    return ranks


def attended(context: Context, start: int) -> Attended:
    """What n points or queries attend to; `start` is the pool's first point."""
    graph = context.weighted.graph
    lists, similarities = graph.neighbors.rows, graph.neighbors.similarities  # (G, a)
    found = context.rows
    own = np.where(context.node < 0, -1, context.node)
    mapped = graph.items.vectors[own]
    outside = own < 0
    mapped[outside] = context.outside
    similar = np.einsum("nd,nad->na", mapped, graph.items.vectors[found])
    theirs = 1 + (similarities[found] > similar[..., None] + 1e-6).sum(axis=2)
    length = found.shape[1]
    shared = np.empty(found.shape, np.int64)
    for part in blocks(len(found), max(1, _COMPARED // max(length, 1) ** 3)):
        shared[part] = (lists[found[part]][..., None] == found[part, None, None, :]).any(axis=3).sum(axis=2)
    return Attended(
        graph.gallery_rows[found] + start,
        context.attention,
        context.weights ** (1 / context.weighted.sharpness),
        shared,
        np.broadcast_to(np.arange(1, length + 1), found.shape),
        np.where(theirs <= length, theirs, 0),
    )


def _rounded(values: list[Any]) -> list[Any]:
    return [round(value, 4) if isinstance(value, float) else value for value in values]
