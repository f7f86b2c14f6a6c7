"""The neighbourhood graph of the distinct items of a gallery.

Copies share one node: a crowd of near-identical items must not be anyone's whole neighbourhood.

M gallery items, G distinct ones, k neighbours.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from entourage.errors import InputError
from entourage.neighbors.copies import copy_similarity, search_distinct
from entourage.neighbors.given import GivenNeighbors
from entourage.refiner.relations import RELATIONS, relation_features
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray, IntArray, Neighbors

__all__ = ["Graph", "build_graph", "most_neighbors"]


@dataclass(frozen=True, eq=False)
class Graph:
    """The distinct items of a gallery, their neighbours among themselves and the relations of each pair."""

    items: Embeddings
    """The G distinct items: the nodes."""
    stands_for: IntArray
    """(M,) the node that stands for each gallery item."""
    neighbors: Neighbors
    """(G, k) the nearest nodes of each node, never itself."""
    copy_similarity: float
    """The similarity from which on an item is a copy of another."""

    @functools.cached_property
    def relations(self) -> FloatArray:
        """(G, k, 22) float32, features of each edge; see relations.py. They depend on the length of the lists."""
        if not self.neighbors.k:
            return np.empty((len(self.neighbors), 0, len(RELATIONS)), np.float32)
        return relation_features(self.neighbors)

    @property
    def gallery_rows(self) -> IntArray:
        """(G,) the gallery item that each node is."""
        return np.unique(self.stands_for, return_index=True)[1]

    def with_neighbors(self, n_neighbors: int) -> "Graph":
        """The same nodes with their first neighbours alone.

        Parameters
        ----------
        n_neighbors : int
            How many neighbours each node keeps, at most.

        Returns
        -------
        Graph
            This graph if it has no more neighbours than that; otherwise one with shorter lists.
        """
        if n_neighbors >= self.neighbors.k:
            return self
        return replace(self, neighbors=self.neighbors.first(n_neighbors))

    def shortened(self, n_neighbors: int) -> "Graph | None":
        """What `build_graph` would find with fewer neighbours, if this graph shows it.

        Parameters
        ----------
        n_neighbors : int
            As in `build_graph`.

        Returns
        -------
        Graph or None
            None where the gallery has to be searched again: for longer lists, and among copies, which show in the lists
            themselves, so that shorter ones might have shown others.
        """
        copies = len(self.items) < len(self.stands_for)
        longest = most_neighbors(len(self.items))
        enough = self.neighbors.k >= min(n_neighbors, longest)
        return self.with_neighbors(n_neighbors) if enough and not copies else None


def most_neighbors(count: int) -> int:
    """How many neighbours an item gets at most among so many: a quarter of them, so that they stay neighbours."""
    return max(count // 4, 1)


def build_graph(
    gallery: Embeddings, n_neighbors: int, progress: Progress | None = None, given: GivenNeighbors | None = None
) -> Graph:
    """Search a gallery for its neighbourhood graph.

    Parameters
    ----------
    gallery : Embeddings
        M items, already through the base map if there is one.
    n_neighbors : int
        How many neighbours each item gets; in a small gallery no more than a quarter of the items.
    progress : callable, optional
        Called as progress(title, done, total).
    given : GivenNeighbors, optional
        Lists of each item's neighbours from elsewhere, to choose from instead of searching.

    Returns
    -------
    Graph
        The graph of the G ≤ M distinct items.
    """
    if len(gallery) == 1:
        rows: IntArray = np.zeros(1, np.int64)
        stands_for: IntArray = rows
        found = Neighbors(np.empty((1, 0)), np.empty((1, 0)))
    else:
        k = min(n_neighbors, most_neighbors(len(gallery)))
        if given is not None and given.usable(np.arange(len(gallery))) < k:
            raise InputError(
                f"most lists of neighbours name {given.usable(np.arange(len(gallery)))} others; wanted at least {k}, "
                f"better {2 * k}: ask your index for more, or leave them out"
            )
        rows, stands_for, found = search_distinct(gallery, k, progress=progress, given=given)
    nodes = gallery if len(rows) == len(gallery) else gallery.take(rows)
    neighbors = found.first(most_neighbors(len(nodes)))
    return Graph(nodes, stands_for, neighbors, copy_similarity(gallery))
