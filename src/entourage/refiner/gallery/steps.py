"""The steps of refinement, taken again only where something moved.

A vector is replaced only if it is off by more than LEAST, and weights only if their sum is off by as much: a change
echoes through the graph ever more faintly, and would reach every node otherwise. What is kept is compared with what it
should be, not with what it was before, so that errors do not add up from one change to the next.

G nodes, k neighbours, T steps, d dimensions.
"""

from dataclasses import dataclass

import numpy as np

from entourage.refiner.context import WeightedGraph
from entourage.refiner.gathering import gather_step
from entourage.values import BoolArray, FloatArray, IntArray

__all__ = ["LEAST", "Steps"]

LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Steps:
    """Where the nodes of a weighted graph are after each step."""

    rows: IntArray
    """(G, k) the neighbours of each node."""
    weights: FloatArray
    """(G, k) the weights that the steps were taken with."""
    nodes: list[FloatArray]
    """z^0..z^T, each (G, d)."""

    @classmethod
    def of(cls, weighted: WeightedGraph, n_steps: int) -> "Steps":
        """Take all steps of all nodes."""
        return cls(weighted.graph.neighbors.rows, weighted.weights, list(weighted.steps(n_steps, keep=True)))

    def after(self, weighted: WeightedGraph, came_from: IntArray) -> "tuple[Steps, BoolArray, int]":
        """The steps in a graph of which some nodes are new, and some edges and weights are others.

        Parameters
        ----------
        weighted : WeightedGraph
            G' nodes with as many neighbours as here.
        came_from : ndarray of shape (G',)
            The row that each node had here, or -1 if it is new.

        Returns
        -------
        steps : Steps
            What `Steps.of(weighted, T)` would give, up to rounding.
        touched : ndarray of shape (G',)
            Which nodes are new, attend to others or otherwise, or end elsewhere.
        taken : int
            How many nodes took a step again.
        """
        rows, new = weighted.graph.neighbors.rows, came_from < 0
        changed = self._changed(rows, weighted.weights, came_from)
        weights = np.where(changed[:, None], weighted.weights, self.weights[came_from])
        moved, nodes, again = new, [weighted.graph.items.vectors], changed.copy()
        for before in self.nodes[1:]:
            todo = np.flatnonzero(changed | moved | moved[rows].any(axis=1))
            again[todo] = True
            moved, z = _step(nodes[-1], rows, weights, todo, before, came_from)
            nodes.append(z)
        return Steps(rows, weights, nodes), changed | moved, int(again.sum())

    def _changed(self, rows: IntArray, weights: FloatArray, came_from: IntArray) -> BoolArray:
        """(G',) whether a node is new, or attends to others, or to the same with other weights."""
        now = np.full(len(self.rows), -1)
        now[came_from[came_from >= 0]] = np.flatnonzero(came_from >= 0)
        others = (now[self.rows[came_from]] != rows).any(axis=1)
        return (came_from < 0) | others | (np.abs(weights - self.weights[came_from]).sum(axis=1) > LEAST)


def _step(
    z: FloatArray, rows: IntArray, weights: FloatArray, todo: IntArray, before: FloatArray, came_from: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Which nodes are elsewhere after this step than they were, (G',), and where all are, (G', d)."""
    result = before[came_from]
    taken = gather_step(z[todo], z, rows[todo], weights[todo])
    off = taken - result[todo]
    elsewhere = (np.einsum("nd,nd->n", off, off) > LEAST**2) | (came_from[todo] < 0)
    result[todo[elsewhere]] = taken[elsewhere]
    moved = np.zeros(len(rows), bool)
    moved[todo[elsewhere]] = True
    return moved, result
