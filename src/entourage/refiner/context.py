"""What each item attends to, with which weights, and how items move step by step.

    z_i^t = normalise(z_i^{t-1} + sum_j w_ij z_j^{t-1}),   z^0 = x
    y_i^t = normalise(b x_i + (1 - b) z_i^t)
    e_i^t = normalise(y_i^t + c sum_j v_ij y_j^t),   v_ij = trust_ij² (r_i1 / r_ij)^32,   r_ij² = |x_i - x_j|² + 0.001

The last line pulls an item to those neighbours that are far nearer than its others: steps bring whole classes together,
and would otherwise forget which two of their items were the closest.

Nodes of the graph attend to each other. Queries from outside attend to the nodes, which are refined further at the
same pace, so that refined queries are compared with the refined gallery. Their pull is four times as strong, as no node
is pulled to them in turn.

N items, G nodes, k neighbours, T steps, d dimensions.
"""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from entourage.neighbors import SearchIndex, search
from entourage.neighbors.choice import AUTO
from entourage.neighbors.given import GivenNeighbors
from entourage.refiner.gathering import gather_step, unit_sum
from entourage.refiner.graph import Graph
from entourage.refiner.relations import Surroundings, relation_features
from entourage.refiner.scorer import Scorer, trust, trust_of_queries
from entourage.values import Embeddings, Neighbors

__all__ = ["Context", "WeightedGraph", "blended", "pulls_of"]

_NEARER = 16  # the power of squared distances
_TRUSTED = 2  # the power of trust
_FROM_OUTSIDE = 4  # how much stronger queries are pulled
_ALIKE = 1e-3  # added to squared distances: those of vectors nearly alike are rounding


def blended(x: np.ndarray, z: np.ndarray, blend: float, *, out: np.ndarray | None = None) -> np.ndarray:
    """normalise(b x + (1 - b) z), each (N, d); out may be z."""
    return x if blend == 1 else unit_sum(blend, x, 1 - blend, z, out=out)


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """A graph whose edges are weighed by a scorer: w_ij = trust_ij^s."""

    graph: Graph
    scorer: Scorer
    sharpness: float
    """s, the power that weights are raised to."""
    blend: float
    """b, the share of the input in the result."""
    pull: float = 0.0
    """c, how strongly items are pulled to their closest neighbours at the end."""

    @functools.cached_property
    def trust(self) -> np.ndarray:
        """How far each node relies on each neighbour, of shape (G, k)."""
        return trust(self.scorer, self.graph)

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """The weight of each edge, of shape (G, k)."""
        return self.trust**self.sharpness

    @functools.cached_property
    def pulls(self) -> np.ndarray:
        """v_ij of each edge, of shape (G, k)."""
        return pulls_of(self.trust, self.graph.neighbors)

    @functools.cached_property
    def surroundings(self) -> Surroundings:
        """The statistics of the graph that the relations of queries depend on."""
        return Surroundings.of(self.graph.neighbors)

    @functools.cached_property
    def nodes(self) -> SearchIndex:
        """The nodes, made ready for queries to be searched among them."""
        return SearchIndex(self.graph.items)

    def knowing(self, trust: np.ndarray, surroundings: Surroundings) -> "WeightedGraph":
        """The same, with what is known of its edges already."""
        known = replace(self)
        vars(known).update(trust=trust, surroundings=surroundings)  # where they would be kept once computed
        return known

    def make_ready(self) -> None:
        """Compute now what the first queries would have to wait for."""
        if self.graph.neighbors.k:  # else there is one node, and nobody to attend to
            _ = self.weights, self.pulls, self.surroundings
        self.nodes.make_ready()

    def steps(self, n_steps: int, *, keep: bool = False) -> Iterator[np.ndarray]:
        """Yield z^0..z^T of the nodes, each (G, d); without `keep` each is overwritten after the next one."""
        z = self.graph.items.vectors
        yield z
        buffers = (None, None) if keep else (np.empty_like(z), np.empty_like(z))
        for t in range(n_steps):
            z = gather_step(z, z, self.graph.neighbors.rows, self.weights, out=buffers[t % 2])
            yield z

    def context_of_gallery(self) -> "Context":
        """Return the context of the gallery's own items, including copies."""
        node, none = self.graph.stands_for, self.graph.items.vectors[:0]
        return Context(self, node, self.graph.neighbors.rows[node], self.weights[node], self.pulls[node], none)

    def context_of_items(self, rows: np.ndarray) -> "Context":
        """Return the context of some of the gallery's own items, by row."""
        node, none = self.graph.stands_for[rows], self.graph.items.vectors[:0]
        return Context(self, node, self.graph.neighbors.rows[node], self.weights[node], self.pulls[node], none)

    def context_of_queries(
        self, queries: Embeddings, own_rows: np.ndarray, given: GivenNeighbors | None = None
    ) -> "Context":
        """Return the context of queries among the nodes.

        A query that is in the gallery, or is a copy of an item in it, is a node and has that node's context. One with
        the id of a gallery item but another vector is another view of that item: it comes from outside, but never
        attends to the item.

        Parameters
        ----------
        queries : Embeddings
            N items, through the base map if there is one.
        own_rows : ndarray of shape (N,)
            The gallery item that each query is, by its id, or -1.
        given : GivenNeighbors, optional
            Lists of gallery items near each query from elsewhere, to choose from instead of searching.

        Returns
        -------
        Context
            What each query attends to.
        """
        graph, k = self.graph, self.graph.neighbors.k
        own = graph.stands_for[own_rows]
        # One more than is attended to, as one of them may be the query itself.
        wanted, by = min(k + 1, len(graph.items)), None if given is None else given.standing_for(graph.stands_for)
        if by is not None and (own_rows < 0).all():
            wanted = min(wanted, max(by.usable(own_rows), k))
        found = search(Embeddings(queries.vectors), self.nodes, wanted, by=AUTO if by is None else by)
        node = np.where(found.similarities[:, 0] >= graph.copy_similarity, found.rows[:, 0], -1)
        alike = np.einsum("nd,nd->n", queries.vectors, graph.items.vectors[own]) >= graph.copy_similarity
        node = np.where((own_rows >= 0) & alike, own, node)
        outside = node < 0
        rows, weights, pulls = graph.neighbors.rows[node], self.weights[node], self.pulls[node]
        if outside.any() and k:
            others = _without(found, np.where(own_rows >= 0, own, -1), k)
            others = Neighbors(others.rows[outside], others.similarities[outside])
            relations = relation_features(others, self.surroundings, np.full(len(others), -1))
            trusted = trust_of_queries(self.scorer, relations)
            rows[outside], weights[outside] = others.rows, trusted**self.sharpness
            pulls[outside] = _FROM_OUTSIDE * pulls_of(trusted, others)
        return Context(self, node, rows, weights, pulls, queries.vectors[outside])


def pulls_of(trusted: np.ndarray, neighbors: Neighbors) -> np.ndarray:
    """v_ij = trust_ij² (r_i1 / r_ij)^32 of neighbours, nearest first; (N, k)."""
    squares = 2 - 2 * neighbors.similarities + _ALIKE
    return trusted**_TRUSTED * (squares[:, :1] / squares) ** _NEARER


def _without(found: Neighbors, own: np.ndarray, k: int) -> Neighbors:
    """The first k of each list that are not the item itself; found (N, k + 1), own (N,) rows or -1."""
    kept = np.argsort(found.rows == own[:, None], axis=1, kind="stable")[:, :k]
    rows, similarities = (np.take_along_axis(table, kept, axis=1) for table in (found.rows, found.similarities))
    return Neighbors(rows, similarities, found.method)


@dataclass(frozen=True, eq=False)
class Context:
    """What each of N items attends to in a weighted graph: as one of its nodes, or as a query from outside."""

    weighted: WeightedGraph
    node: np.ndarray
    """(N,) the node that stands for each item, -1 for queries from outside."""
    rows: np.ndarray
    """(N, k) nodes it attends to."""
    weights: np.ndarray
    """(N, k) the weight of each."""
    pulls: np.ndarray
    """(N, k) v_ij, how strongly each of them pulls the item at the end."""
    outside: np.ndarray
    """(n, d) vectors of the n queries from outside."""

    @property
    def attention(self) -> np.ndarray:
        """(N, k) the weights scaled to sum to 1."""
        return self.weights / np.maximum(self.weights.sum(axis=1, keepdims=True), 1e-30)

    def steps(self, node_steps: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield z^0..z^T of the queries from outside (n, d) beside those of the nodes (G, d), which it is given."""
        outside = self.node < 0
        rows, weights = self.rows[outside], self.weights[outside]
        z, before = self.outside, None
        for nodes in node_steps:
            if before is not None and len(z):
                z = gather_step(z, before, rows, weights)
            before = nodes
            yield z, nodes

    def refined(
        self,
        x: Embeddings,
        outside: np.ndarray,
        nodes: np.ndarray,
        *,
        blend: float | None = None,
        pull: float | None = None,
    ) -> np.ndarray:
        """Compute e^t of the items.

        Parameters
        ----------
        x : Embeddings
            The N items through the base map.
        outside : ndarray of shape (n, d)
            z^t of the queries from outside.
        nodes : ndarray of shape (G, d)
            z^t of the nodes.
        blend, pull : float, optional
            b and c, if not those of the weighted graph.

        Returns
        -------
        ndarray of shape (N, d)
            Unit vectors.
        """
        graph = self.weighted.graph
        blend = self.weighted.blend if blend is None else blend
        pull = self.weighted.pull if pull is None else pull
        z = nodes[self.node]
        z[self.node < 0] = outside
        y = blended(x.vectors, z, blend, out=z)
        if pull == 0 or blend == 1:
            return y
        pulls = np.float32(pull) * self.pulls
        if self.node is graph.stands_for and len(nodes) == len(y):  # all are nodes, and each is one
            return gather_step(y, y, self.rows, pulls)
        attended, rows = np.unique(self.rows, return_inverse=True)
        among = blended(graph.items.vectors[attended], nodes[attended], blend)
        return gather_step(y, among, rows.reshape(self.rows.shape), pulls)
