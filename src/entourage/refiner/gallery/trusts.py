"""How far each node of a graph relies on each neighbour, computed again only where a change reaches.

The features of an edge depend on the lists of both ends and of their neighbours, so a list that changes reaches the
nodes that list it, those that list these, and, as a neighbour's own view counts too, one more.

G nodes, k neighbours.
"""

from dataclasses import dataclass

import numpy as np

from entourage.refiner.context import WeightedGraph
from entourage.refiner.graph import Graph
from entourage.refiner.relations import Surroundings, relation_features
from entourage.refiner.scorer import Scorer, trust_of
from entourage.values import FloatArray, IntArray, Neighbors

__all__ = ["Trusts"]


@dataclass(frozen=True, eq=False)
class Trusts:
    """What a scorer makes of the edges of a graph with k ≥ 1 neighbours."""

    scorer: Scorer
    surroundings: Surroundings
    chances: FloatArray
    """(G, k) how likely both ends of each edge are of one class."""
    trust: FloatArray
    """(G, k) the same, with the neighbour's view of it."""

    @classmethod
    def of(cls, scorer: Scorer, graph: Graph) -> "Trusts":
        """Compute all of them."""
        surroundings, everyone = Surroundings.of(graph.neighbors), np.arange(len(graph.neighbors))
        chances = _chances(scorer, surroundings, everyone)
        return cls(scorer, surroundings, chances, trust_of(chances, graph.neighbors.rows, everyone))

    def after(self, scorer: Scorer, graph: Graph, came_from: IntArray) -> "Trusts":
        """Those of a graph of which some nodes are new and some lists are others.

        Parameters
        ----------
        scorer : Scorer
        graph : Graph
            G' nodes.
        came_from : ndarray of shape (G',)
            The row that each node had here, or -1 if it is new.

        Returns
        -------
        Trusts
            What `Trusts.of(scorer, graph)` would give, up to rounding.
        """
        rows = graph.neighbors.rows
        if scorer is not self.scorer or graph.neighbors.k != self.chances.shape[1]:
            return Trusts.of(scorer, graph)
        surroundings, reached = self.surroundings.after(graph.neighbors, came_from)
        chances = self.chances[came_from]
        again = np.flatnonzero(reached)
        chances[again] = _chances(scorer, surroundings, again)
        trust, again = self.trust[came_from], np.flatnonzero(reached | reached[rows].any(axis=1))
        trust[again] = trust_of(chances, rows, again)
        return Trusts(scorer, surroundings, chances, trust)

    def told_to(self, weighted: WeightedGraph) -> WeightedGraph:
        """A weighted graph that need not compute them."""
        return weighted.knowing(self.trust, self.surroundings)


def _chances(scorer: Scorer, surroundings: Surroundings, nodes: IntArray) -> FloatArray:
    """(n, k) for the edges of some nodes."""
    lists = surroundings.lists
    some = Neighbors(lists.rows[nodes], lists.similarities[nodes])
    return scorer.probabilities(relation_features(some, surroundings, nodes))
