"""The nearest neighbours of every node of a graph, kept up to date as nodes come and go.

Each list is the beginning of the node's whole ranking: nearest first, of equally similar nodes the lower row first. It
holds some neighbours in reserve, so that one that goes leaves no gap; only a list that runs short is searched again.

G nodes in order of id, L places a list, d dimensions.
"""

from dataclasses import dataclass

import numpy as np

from entourage.neighbors import search
from entourage.neighbors.choice import EXACT
from entourage.refiner.gallery.similar import pairs_above, similarities_of
from entourage.values import Embeddings, FloatArray, IntArray, Neighbors

__all__ = ["RESERVE", "Lists"]

RESERVE = 8
_NONE = -1
_BELOW_ANY = np.float32(-2)


@dataclass(frozen=True, eq=False)
class Lists:
    """Neighbours of G nodes among each other."""

    rows: IntArray
    """(G, L) int64; places that are not in use come last and hold -1."""
    similarities: FloatArray
    """(G, L) float32; -2 where a place is not in use."""

    @classmethod
    def of(cls, vectors: FloatArray, n_neighbors: int) -> "Lists":
        """Search all nodes among each other.

        Parameters
        ----------
        vectors : ndarray of shape (G, d)
            Unit vectors, float32.
        n_neighbors : int
            How many neighbours will be asked for.

        Returns
        -------
        Lists
            With L = n_neighbors and those in reserve; places stay free where there are not as many nodes.
        """
        rows = np.full((len(vectors), n_neighbors + RESERVE), _NONE)
        lists = cls(rows, np.full(rows.shape, _BELOW_ANY))
        lists._search(np.arange(len(vectors)), vectors)
        return lists

    @property
    def lengths(self) -> IntArray:
        """(G,) how many neighbours each list holds."""
        return (self.rows >= 0).sum(axis=1)

    def first(self, k: int) -> Neighbors:
        """The k nearest of each node."""
        return Neighbors(self.rows[:, :k], self.similarities[:, :k])

    def after(self, vectors: FloatArray, came_from: IntArray, n_neighbors: int) -> "Lists":
        """The lists after some nodes have gone and others have come.

        Parameters
        ----------
        vectors : ndarray of shape (G', d)
            Of the nodes that are there now.
        came_from : ndarray of shape (G',)
            The row that each of them had here, ascending, or -1 if it is new.
        n_neighbors : int
            How many neighbours will be asked for.

        Returns
        -------
        Lists
            What `Lists.of(vectors, n_neighbors)` would find, with more or fewer in reserve.
        """
        stayed, new = came_from >= 0, np.flatnonzero(came_from < 0)
        lists = self._without_gone(came_from)
        lists._insert(new, stayed, vectors)
        short = np.flatnonzero(lists.lengths < min(n_neighbors, len(vectors) - 1))
        lists._search(short, vectors)
        return lists

    def _without_gone(self, came_from: IntArray) -> "Lists":
        """New lists in which nodes have the rows they have now, those that went are left out and new ones are empty."""
        stayed = came_from >= 0
        now = np.full(len(self.rows) + 1, _NONE)  # the last place is what -1 stays
        now[came_from[stayed]] = np.flatnonzero(stayed)
        rows = np.full((len(came_from), self.rows.shape[1]), _NONE)
        similarities = np.full(rows.shape, _BELOW_ANY)
        rows[stayed], similarities[stayed] = now[self.rows[came_from[stayed]]], self.similarities[came_from[stayed]]
        similarities[rows < 0] = _BELOW_ANY
        torn = np.flatnonzero((np.diff((rows < 0).astype(np.int8), axis=1) < 0).any(axis=1))
        order = np.argsort(rows[torn] < 0, axis=1, kind="stable")
        rows[torn] = np.take_along_axis(rows[torn], order, axis=1)
        similarities[torn] = np.take_along_axis(similarities[torn], order, axis=1)
        return Lists(rows, similarities)

    def _insert(self, new: IntArray, stayed: np.ndarray, vectors: FloatArray) -> None:
        """Put new nodes into the lists of those that stayed, wherever they are nearer than the last one there."""
        lengths = self.lengths
        last = np.where(lengths > 0, self.similarities[np.arange(len(lengths)), lengths - 1], np.inf)
        bars = np.where(stayed, last, np.inf).astype(np.float32)  # whoever is not nearer than the last stands nowhere
        newcomers, rows, similarities = pairs_above(vectors, new, bars)
        if not len(rows):
            return
        touched, place = np.unique(rows, return_inverse=True)
        old_rows, old_similarities = self.rows[touched], self.similarities[touched]
        used = old_rows >= 0
        node = np.concatenate([np.nonzero(used)[0], place])
        other = np.concatenate([old_rows[used], newcomers])
        similarity = np.concatenate([old_similarities[used], similarities])
        order = np.lexsort((other, -similarity, node))
        node, other, similarity = node[order], other[order], similarity[order]
        rank = np.arange(len(node)) - np.searchsorted(node, node)
        # A newcomer that ties with the last one and comes after it by row is not known to be next.
        last_rows = old_rows[np.arange(len(touched)), lengths[touched] - 1]
        known = (similarity > last[touched][node]) | (other <= last_rows[node])
        kept = (rank < self.rows.shape[1]) & known
        self.rows[touched], self.similarities[touched] = _NONE, _BELOW_ANY
        self.rows[touched[node[kept]], rank[kept]] = other[kept]
        self.similarities[touched[node[kept]], rank[kept]] = similarity[kept]

    def _search(self, nodes: IntArray, vectors: FloatArray) -> None:
        """Fill the lists of some nodes by a search among all."""
        k = min(self.rows.shape[1], len(vectors) - 1)
        if not len(nodes) or not k:
            return
        gallery = Embeddings(vectors, np.arange(len(vectors)))
        found = search(gallery if len(nodes) == len(gallery) else gallery.take(nodes), gallery, k, by=EXACT)
        similarities = similarities_of(vectors, np.repeat(nodes, k), found.rows.ravel()).reshape(-1, k)
        order = np.lexsort((found.rows, -similarities), axis=1)
        self.rows[nodes, :k] = np.take_along_axis(found.rows, order, axis=1)
        self.similarities[nodes, :k] = np.take_along_axis(similarities, order, axis=1)
