"""A gallery at one moment: its items, their graph and their refined vectors; a change makes another one.

A state is never edited. Whoever reads keeps the one they began with, and waits for nobody.

M items in order of id, G distinct ones (the nodes of the graph), k neighbours, T steps, d dimensions.
"""

import functools
from dataclasses import dataclass

import numpy as np

from entourage.neighbors import SearchIndex
from entourage.neighbors.copies import copy_similarity
from entourage.neighbors.quantised import Codes
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.confidence import GalleryConfidence
from entourage.refiner.context import WeightedGraph
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.gallery.copies import NOBODY, representatives, represented_anew
from entourage.refiner.gallery.lists import Lists
from entourage.refiner.gallery.steps import LEAST, Steps
from entourage.refiner.gallery.trusts import Trusts
from entourage.refiner.graph import Graph, most_neighbors
from entourage.refiner.network import Manner, RelationalNetwork
from entourage.refiner.rerank import Reranker
from entourage.refiner.serving import PreparedGallery
from entourage.refiner.universal import LEAST_ITEMS
from entourage.runtime.threads import blocks
from entourage.values import BoolArray, Embeddings, FloatArray, IntArray

__all__ = ["Recipe", "State"]

_MUCH = 4  # where more than one of so many items changes, all are searched again


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a gallery is refined, which no change of its items changes."""

    network: RelationalNetwork
    n_neighbors: int
    n_steps: int

    @property
    def most_neighbors(self) -> int:
        """The longest lists that either the network or its fallback asks for."""
        fallback = self.network.fallback
        return max(self.n_neighbors, 0 if fallback is None else fallback.n_neighbors)

    def mapped(self, items: Embeddings) -> Embeddings:
        """The items through the base map; in double precision, so that a vector's company does not round it."""
        base_map = self.network.base_map
        if base_map is None:
            return items
        vectors, wide = np.empty_like(items.vectors), base_map.astype(np.float64)
        for rows in blocks(len(items), 4096):
            mapped = items.vectors[rows].astype(np.float64) @ wide
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                vectors[rows] = mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
        if not np.isfinite(vectors).all():
            return apply_base_map(items, base_map)  # which says what is wrong
        return items.replace_vectors(vectors)

    def reranker(self) -> Reranker:
        """What re-ranks lists with the same network."""
        refiner = ContextRefiner()
        refiner.network_, refiner.n_features_in_ = self.network, None  # type: ignore[assignment]
        return Reranker(refiner)

    def weighted(self, graph: Graph) -> WeightedGraph:
        """The graph as the network weighs it, by degrees as its fallback where that suits the gallery better.

        A few items are left as they are, and a few more refined by degrees: a new gallery has nobody to learn from.
        """
        share = self.network.share_in(graph.with_neighbors(self.n_neighbors))
        suited = _manner(self.network, share, self.n_neighbors)
        enough = min(max(len(graph.items) / LEAST_ITEMS - 1, 0.0), 1.0)
        blend, pull = 1 - enough * (1 - suited.blend), enough * suited.pull
        return WeightedGraph(graph.with_neighbors(suited.n_neighbors), suited.scorer, suited.sharpness, blend, pull)


@functools.lru_cache(maxsize=16)
def _manner(network: RelationalNetwork, share: float, n_neighbors: int) -> Manner:
    """The same for the same share, so that what was computed with its scorer is known to hold."""
    return network.manner(share, n_neighbors)


@dataclass(frozen=True, eq=False)
class State:
    """What is known of M ≥ 1 items."""

    recipe: Recipe
    items: Embeddings
    """The M items as they came, in order of id."""
    mapped: Embeddings
    """The same through the base map."""
    represented_by: IntArray
    """(M,) the row of the item that stands for each."""
    lists: Lists
    """Of the G nodes."""
    trusts: Trusts | None
    """Of their edges; None if there are none."""
    weighted: WeightedGraph
    steps: Steps
    refined: Embeddings
    """(M, d)"""
    codes: "tuple[Codes | None, Codes | None]"
    """Of the mapped and of the refined vectors, for single queries."""
    taken: int
    """How many nodes took a step again in the change that led to this state."""

    @classmethod
    def of(cls, recipe: Recipe, items: Embeddings, known: "tuple[IntArray, Lists] | None" = None) -> "State":
        """Compute everything from scratch.

        Parameters
        ----------
        recipe : Recipe
        items : Embeddings
            M items in order of id.
        known : tuple, optional
            Who stands for whom (M,) and the lists of the nodes, if they were kept.

        Returns
        -------
        State
        """
        mapped = recipe.mapped(items)
        if known is None:
            represented_by = representatives(mapped.vectors, copy_similarity(mapped))
            nodes = _nodes(represented_by)
            known = represented_by, Lists.of(mapped.vectors[nodes], recipe.most_neighbors)
        weighted = recipe.weighted(_graph(recipe, mapped, *known))
        trusts = Trusts.of(weighted.scorer, weighted.graph) if weighted.graph.neighbors.k else None
        weighted = weighted if trusts is None else trusts.told_to(weighted)
        steps = Steps.of(weighted, recipe.n_steps)
        refined = mapped.replace_vectors(_refined(mapped, weighted, steps))
        codes = Codes.of(mapped.vectors), Codes.of(refined.vectors)
        return cls(recipe, items, mapped, *known, trusts, weighted, steps, refined, codes, len(steps.rows))

    def after(self, items: Embeddings, came_from: IntArray) -> "State":
        """The state after some items have gone and others have come.

        Parameters
        ----------
        items : Embeddings
            M' ≥ 1 items in order of id.
        came_from : ndarray of shape (M',)
            The row that each of them had here, or -1 if it, or its vector, is new.

        Returns
        -------
        State
            What `State.of(recipe, items)` would be, up to rounding.
        """
        stayed = came_from >= 0
        if _MUCH * max((~stayed).sum(), len(self.items) - stayed.sum()) > len(items):
            return State.of(self.recipe, items)
        mapped = self._mapped_after(items, came_from)
        represented_by = self._represented_after(mapped, came_from)
        nodes, node_came_from = self._nodes_after(represented_by, came_from)
        lists = self.lists.after(mapped.vectors[nodes], node_came_from, self.recipe.most_neighbors)
        weighted = self.recipe.weighted(_graph(self.recipe, mapped, represented_by, lists))
        if self.trusts is None or not weighted.graph.neighbors.k:
            return State.of(self.recipe, items)
        trusts = self.trusts.after(weighted.scorer, weighted.graph, node_came_from)
        weighted = trusts.told_to(weighted)
        if weighted.graph.neighbors.k == self.steps.rows.shape[1]:
            steps, touched, taken = self.steps.after(weighted, node_came_from)
            reached = self._reached(weighted, touched, came_from, node_came_from, represented_by)
        else:
            steps, taken = Steps.of(weighted, self.recipe.n_steps), len(nodes)
            reached = np.arange(len(items))
        refined, codes = self._refined_after(mapped, weighted, steps, reached, came_from)
        kept = represented_by, lists, trusts, weighted, steps
        return State(self.recipe, items, mapped, *kept, refined, codes, taken)

    def _reached(
        self,
        weighted: WeightedGraph,
        touched: BoolArray,
        came_from: IntArray,
        node_came_from: IntArray,
        represented_by: IntArray,
    ) -> IntArray:
        """(n,) the items that may end elsewhere, if touched (G',) says which nodes do, or are pulled otherwise."""
        before, rows = self.weighted, weighted.graph.neighbors.rows
        if (before.blend, before.pull) != (weighted.blend, weighted.pull):
            return np.arange(len(came_from))
        pulled = (weighted.pulls != before.pulls[node_came_from]).any(axis=1)
        nodes = touched | touched[rows].any(axis=1) | pulled
        others = self._now(came_from)[self.represented_by[came_from]] != represented_by
        return np.flatnonzero(nodes[weighted.graph.stands_for] | (came_from < 0) | others)

    def _refined_after(
        self, mapped: Embeddings, weighted: WeightedGraph, steps: Steps, reached: IntArray, came_from: IntArray
    ) -> "tuple[Embeddings, tuple[Codes | None, Codes | None]]":
        """The refined items, of which those stay that are where they were, and the codes of mapped and refined."""
        new, kept = came_from < 0, self.refined.vectors[came_from]
        moved = new.copy()
        if len(reached):
            vectors = _refined(mapped, weighted, steps, reached)
            off = vectors - kept[reached]
            moved[reached] |= np.einsum("nd,nd->n", off, off) > LEAST**2
            kept[reached[moved[reached]]] = vectors[moved[reached]]
        of_mapped, of_refined = self.codes
        if of_mapped is None or of_refined is None:
            return mapped.replace_vectors(kept), (None, None)
        codes = of_mapped.after(mapped.vectors, came_from, new), of_refined.after(kept, came_from, moved)
        return mapped.replace_vectors(kept), codes

    def _mapped_after(self, items: Embeddings, came_from: IntArray) -> Embeddings:
        if self.recipe.network.base_map is None:
            return items
        vectors, new = self.mapped.vectors[came_from], came_from < 0
        if new.any():
            vectors[new] = self.recipe.mapped(items.take(new)).vectors
        return items.replace_vectors(vectors)

    def _represented_after(self, mapped: Embeddings, came_from: IntArray) -> IntArray:
        """(M',) who stands for whom."""
        stayed = came_from >= 0
        current = np.where(stayed, self._now(came_from)[self.represented_by[came_from]], NOBODY)
        concerned = current == NOBODY
        similarity = copy_similarity(mapped)
        if similarity != self.weighted.graph.copy_similarity:
            has_copy = self._nearest_after(came_from) >= np.float32(similarity)
            concerned |= (current != np.arange(len(current))) | has_copy
        if not concerned.any():
            return current
        return represented_anew(mapped.vectors, current, np.flatnonzero(concerned), similarity)

    def _now(self, came_from: IntArray) -> IntArray:
        """(M,) the row that each item has after a change, or NOBODY if it is gone."""
        stayed, now = came_from >= 0, np.full(len(self.items), NOBODY)
        now[came_from[stayed]] = np.flatnonzero(stayed)
        return now

    def _nearest_after(self, came_from: IntArray) -> FloatArray:
        """(M',) the similarity of each item that was a node to the node that was nearest; -2 for others."""
        nearest = np.full(len(self.items), -2, np.float32)
        nearest[_nodes(self.represented_by)] = self.lists.similarities[:, 0]
        return np.where(came_from >= 0, nearest[came_from], np.float32(-2))

    def _nodes_after(self, represented_by: IntArray, came_from: IntArray) -> tuple[IntArray, IntArray]:
        """The items that are nodes now (G',), and the node that each was here, or -1 (G',)."""
        nodes = _nodes(represented_by)
        node_of_item = np.full(len(self.items) + 1, -1)  # the last place is for new items
        before = _nodes(self.represented_by)
        node_of_item[before] = np.arange(len(before))
        return nodes, node_of_item[came_from[nodes]]

    @functools.cached_property
    def prepared(self) -> PreparedGallery:
        """What refines queries."""
        index = SearchIndex(self.items)
        return PreparedGallery(index, self.recipe.network.base_map, self.mapped, self.weighted, self.steps.nodes)

    @functools.cached_property
    def confidence(self) -> GalleryConfidence:
        """What tells how sure one can be that queries have a match; computed when first asked for."""
        return GalleryConfidence(self.prepared.gallery)

    @functools.cached_property
    def refined_index(self) -> SearchIndex:
        """The refined vectors, to be searched."""
        return SearchIndex(self.refined)

    def make_ready(self) -> None:
        """Compute now what the first queries would have to wait for."""
        of_mapped, of_refined = self.codes
        nodes = None
        if of_mapped is not None:
            alone = len(self.weighted.graph.items) == len(self.items)
            nodes = of_mapped if alone else of_mapped.take(_nodes(self.represented_by))
        self.weighted.nodes.make_ready(nodes)
        self.weighted.make_ready()
        self.refined_index.make_ready(of_refined)
        self.prepared.gallery.make_ready(of_mapped if self.recipe.network.base_map is None else None)


def _nodes(represented_by: IntArray) -> IntArray:
    """(G,) the items that stand for themselves, ascending."""
    return np.flatnonzero(represented_by == np.arange(len(represented_by)))


def _graph(recipe: Recipe, mapped: Embeddings, represented_by: IntArray, lists: Lists) -> Graph:
    """The graph that `build_graph` would search for, with the longest lists that are needed."""
    nodes = _nodes(represented_by)
    k = min(recipe.most_neighbors, most_neighbors(len(nodes)), len(nodes) - 1)
    items = mapped if len(nodes) == len(mapped) else mapped.take(nodes)
    return Graph(items, np.searchsorted(nodes, represented_by), lists.first(k), copy_similarity(mapped))


def _refined(mapped: Embeddings, weighted: WeightedGraph, steps: Steps, some: IntArray | None = None) -> FloatArray:
    """(M, d), or (n, d) of some items."""
    context = weighted.context_of_gallery() if some is None else weighted.context_of_items(some)
    return context.refined(mapped if some is None else mapped.take(some), context.outside, steps.nodes[-1])
