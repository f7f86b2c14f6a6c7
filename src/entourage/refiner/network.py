"""The relational recipe: attention by how two items sit in the neighbourhood graph.

    x = normalise(e M)                                  a learned base map M, or the vectors as they are
    p_ij = sigmoid(f(relations_ij))                     a small scorer: are i and its neighbour j of one class?
    w_ij = (0.85 p_ij + 0.15 p_ji)^s                    p_ji = 0 where i is not among the neighbours of j
    z_i^t = normalise(z_i^{t-1} + sum_j w_ij z_j^{t-1}),   z^0 = x,   t = 1..T
    y_i^t = normalise(b x_i + (1 - b) z_i^t)
    e_i^t = normalise(y_i^t + c sum_j v_ij y_j^t)       v_ij: how much nearer than the others j is; see context.py

The step is attention over the item itself and its k neighbours: a softmax of the logits 0 for itself and
log w_ij for j, values as they are. Relations (relations.py) mean the same for any encoder, so a scorer carries
over to classes, and to encoders, that it has not seen. With s large or p small the step does nothing; with w_ij a
power of the similarity it is alpha query expansion.

Applying needs numpy and compiled kernels alone; learning.py chooses and trains, with torch.

N items, M gallery items, G distinct ones (the nodes of the graph), k neighbours, T steps, d dimensions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from entourage.errors import InputError, few
from entourage.neighbors import SearchIndex, own_gallery_rows
from entourage.neighbors.given import GivenNeighbors, KnownNeighbors
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.context import WeightedGraph
from entourage.refiner.graph import Graph, build_graph
from entourage.refiner.scorer import MixedScorer, RelationScorer, Scorer, estimated_purity, frozen_float32
from entourage.refiner.serving import PreparedGallery
from entourage.refiner.settings import MOST_NEIGHBORS
from entourage.runtime.checks import check_not_negative, check_positive, check_share, check_whole
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray, IntArray, brief

__all__ = ["Manner", "RelationalNetwork"]

_MUCH_SPARSER, _HARDLY_SPARSER = 0.5, 0.85  # shares of the usual purity: the fallback alone, and none of it
_NUMBERS = ("n_neighbors", "sharpness", "blend", "pull", "usual_purity")


class Manner(NamedTuple):
    """How the neighbours in one gallery are weighed; the fields as those of RelationalNetwork."""

    scorer: Scorer
    n_neighbors: int
    sharpness: float
    blend: float
    pull: float


@dataclass(frozen=True, eq=False)
class RelationalNetwork:
    """What refines: a value, of which `dataclasses.replace` makes another one.

    What was chosen for one density of items can do harm in a much sparser gallery. Where the scorer of the fallback, a
    network for any gallery, finds one less pure than usual_purity, the fallback takes over by degrees: a gallery that
    grows goes from one to the other without a leap.
    """

    scorer: RelationScorer
    base_map: FloatArray | None = None
    """M (d, d), or None: the vectors as they are."""
    n_neighbors: int = 12
    """k, how many neighbours to attend to."""
    sharpness: float = 3.5
    """s, how sharply to weigh them."""
    blend: float = 0.5
    """b, how much of itself an item keeps; 1 returns the mapped vectors."""
    pull: float = 1.0
    """c, how strongly items are pulled to their closest neighbours at the end."""
    fallback: "RelationalNetwork | None" = None
    """The network for sparser galleries; None if this one serves all."""
    usual_purity: float = 0.0
    """The estimated purity of the galleries that this one was chosen for."""

    __repr__ = brief

    def __post_init__(self) -> None:
        if self.base_map is not None:
            if self.base_map.ndim != 2 or len(set(self.base_map.shape)) != 1:
                raise ValueError(f"the base map has shape {self.base_map.shape}; wanted (d, d)")
            object.__setattr__(self, "base_map", frozen_float32(self.base_map))
        check_whole("n_neighbors", self.n_neighbors, 1, MOST_NEIGHBORS)
        check_positive("sharpness", self.sharpness)
        check_share("blend", self.blend)
        check_not_negative("pull", self.pull)
        check_not_negative("usual_purity", self.usual_purity)

    # ---- to and from files -----------------------------------------------------------------------------------

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "RelationalNetwork":
        """A network from what `to_arrays` gives; a missing or unknown name is a ValueError."""
        groups: dict[str, dict[str, np.ndarray]] = {"scorer": {}, "fallback": {}, "": {}}
        for name, array in arrays.items():
            prefix = name.partition(".")[0]
            group = prefix if prefix in groups else ""
            groups[group][name.removeprefix(f"{group}.")] = array
        single = {"pull": np.zeros(1)} | groups[""]  # models of before there was one
        if single.keys() - {"base_map"} != set(_NUMBERS):
            differing = few(sorted((single.keys() - {"base_map"}) ^ set(_NUMBERS)), "names")
            raise ValueError(f"a network has the numbers {', '.join(_NUMBERS)}; missing or unknown: {differing}")
        for name in _NUMBERS:
            if single[name].size != 1 or single[name].dtype.kind not in "fiu":
                raise ValueError(f"{name} is {single[name].dtype} of shape {single[name].shape}; wanted a number")
        return cls(
            RelationScorer.from_arrays(groups["scorer"]),
            single.get("base_map"),
            fallback=cls.from_arrays(groups["fallback"]) if groups["fallback"] else None,
            **{name: single[name].item() for name in _NUMBERS},
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All that it is made of, by name, for a file of safetensors."""
        arrays = {name: np.array(getattr(self, name)) for name in _NUMBERS}
        arrays |= {f"scorer.{name}": array for name, array in self.scorer.to_arrays().items()}
        if self.base_map is not None:
            arrays["base_map"] = self.base_map
        if self.fallback is not None:
            arrays |= {f"fallback.{name}": array for name, array in self.fallback.to_arrays().items()}
        return arrays

    @property
    def n_parameters(self) -> int:
        """How many numbers were learned: those of the scorer and of the base map."""
        return self.scorer.n_parameters + (0 if self.base_map is None else self.base_map.size)

    # ---- refining --------------------------------------------------------------------------------------------

    def refine(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        last_only: bool = False,
        graph: Graph | None = None,
        known: KnownNeighbors | None = None,
    ) -> Iterator[tuple[FloatArray, FloatArray | None, IntArray]]:
        """Refine items as every RefiningNetwork does; see there.

        The graph of the gallery as the base map leaves it, with these n_neighbors, is not searched for again if it is
        given.
        """
        x = self._mapped(items)
        if last_only and self.blend == 1 and self.fallback is None:  # whatever the neighbours are
            yield x.vectors, None, np.empty((len(x), 0), np.int64)
            return
        mapped = x if gallery is items else self._mapped(gallery)
        known = known or KnownNeighbors()
        weighted = self.weighted_graph(mapped, n_neighbors, progress, graph, known.of_gallery)
        if gallery is items:
            context = weighted.context_of_gallery()
        else:
            context = weighted.context_of_queries(x, own_gallery_rows(items, gallery), known.of_items)
        rows, attention = weighted.graph.gallery_rows[context.rows], context.attention
        for t, z in enumerate(context.steps(weighted.steps(n_steps))):
            if t == n_steps or not last_only:
                yield (context.refined(x, *z), attention, rows) if t else (x.vectors, None, rows)
            if progress and t:
                progress("refining", t, n_steps)

    def refine_both(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        graph: Graph | None = None,
        known: KnownNeighbors | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Refine queries (N, d) and the gallery (M, d) they are searched in, by the one graph of the gallery."""
        x, mapped = self._mapped(items), self._mapped(gallery)
        if not n_steps:  # as `refine` has it: nothing has been blended yet
            return x.vectors, mapped.vectors
        known = known or KnownNeighbors()
        weighted = self.weighted_graph(mapped, n_neighbors, progress, graph, known.of_gallery)
        queries = weighted.context_of_queries(x, own_gallery_rows(items, gallery), known.of_items)
        inside = weighted.context_of_gallery()
        for t, z in enumerate(queries.steps(weighted.steps(n_steps))):
            outside, nodes = z
            if progress and t:
                progress("refining", t, n_steps)
        return queries.refined(x, outside, nodes), inside.refined(mapped, inside.outside, nodes)

    def prepare(
        self,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        known: KnownNeighbors | None = None,
    ) -> PreparedGallery:
        """Keep what queries will need of a gallery: its graph, and its nodes at every step, T + 1 times its size."""
        mapped = self._mapped(gallery)
        weighted = self.weighted_graph(mapped, n_neighbors, progress, given=known.of_gallery if known else None)
        node_steps = []
        for t, z in enumerate(weighted.steps(n_steps, keep=True)):
            node_steps.append(z)
            if progress and t:
                progress("refining", t, n_steps)
        weighted.make_ready()
        return PreparedGallery(SearchIndex(gallery), self.base_map, mapped, weighted, node_steps)

    def _mapped(self, items: Embeddings) -> Embeddings:
        return apply_base_map(items, self.base_map)

    def weighted_graph(
        self,
        mapped: Embeddings,
        n_neighbors: int,
        progress: Progress | None = None,
        graph: Graph | None = None,
        given: GivenNeighbors | None = None,
    ) -> WeightedGraph:
        """Weigh the graph of a gallery as the network does that suits it.

        Parameters
        ----------
        mapped : Embeddings
            M items, through the base map if there is one.
        n_neighbors : int
            How many neighbours each item gets.
        progress : callable, optional
            Called as progress(title, done, total).
        graph : Graph, optional
            The graph of these items with these n_neighbors; it is built if it is not given.
        given : GivenNeighbors, optional
            Lists of each item's neighbours from elsewhere, to build it of.

        Returns
        -------
        WeightedGraph
        """
        if graph is None:
            graph = build_graph(mapped, n_neighbors, progress, given)
        elif len(graph.stands_for) != len(mapped):
            raise InputError(
                f"the graph is of {len(graph.stands_for)} items and the gallery has {len(mapped)}; "
                "give the graph of this gallery, or none"
            )
        share = self.share_in(graph)
        suited = self.manner(share, n_neighbors)
        if suited.n_neighbors != n_neighbors:
            graph = graph.shortened(suited.n_neighbors) or build_graph(mapped, suited.n_neighbors, progress)
        return WeightedGraph(graph, suited.scorer, suited.sharpness, suited.blend, suited.pull)

    def share_in(self, graph: Graph) -> float:
        """How far this network suits a gallery, from 0, where it is much sparser than usual, to 1; in hundredths."""
        if self.fallback is None:
            return 1.0
        return self.share_of(estimated_purity(self.fallback.scorer, graph, self.fallback.n_neighbors))

    def share_of(self, purity: float) -> float:
        """How far this network suits a gallery whose purity its fallback has estimated; as `share_in`."""
        place = (purity / max(self.usual_purity, 1e-6) - _MUCH_SPARSER) / (_HARDLY_SPARSER - _MUCH_SPARSER)
        return round(min(max(place, 0.0), 1.0), 2)

    def manner(self, share: float = 1.0, n_neighbors: int | None = None) -> Manner:
        """How this network weighs neighbours, or for a share below 1 something between it and its fallback.

        A fallback that leaves items as they are weighs no neighbours: it only makes them move less. n_neighbors are
        those that are asked for, if not the network's own.
        """
        own = Manner(self.scorer, n_neighbors or self.n_neighbors, self.sharpness, self.blend, self.pull)
        if self.fallback is None or share == 1:
            return own
        if self.fallback.blend == 1:
            return own._replace(blend=1 - share * (1 - self.blend), pull=share * self.pull)
        other = self.fallback.manner()
        scorer = (
            self.scorer
            if self.scorer is self.fallback.scorer
            else MixedScorer(self.scorer, self.fallback.scorer, share)
        )

        def between(a: float, b: float) -> float:
            return share * a + (1 - share) * b

        return Manner(
            scorer if share else other.scorer,
            round(math.exp(between(math.log(own.n_neighbors), math.log(other.n_neighbors)))),
            math.exp(between(math.log(own.sharpness), math.log(other.sharpness))),
            between(own.blend, other.blend),
            between(own.pull, other.pull),
        )
