"""Ways to refine that can be tried on the page: raw, alpha query expansion, the universal scorer, the fitted refiner.

The graph of the pool is searched once, with more neighbours than the slider asks for; what a setting then costs is its
steps. M points of the pool, n queries, d dimensions.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from entourage.baselines.expansion import expand_queries
from entourage.errors import InputError
from entourage.explorer.scene import Scene, Weighing
from entourage.neighbors import SearchIndex, search
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.context import WeightedGraph
from entourage.refiner.graph import Graph, build_graph
from entourage.refiner.network import Manner
from entourage.refiner.universal import universal_network
from entourage.values import Embeddings, FloatArray, Neighbors

__all__ = ["MOST_REFINED", "Methods", "Refined", "Settings"]

_MOST_NEIGHBORS, _MOST_STEPS = 40, 8  # unless the run itself has more
MOST_REFINED = 200_000  # points of a pool that is refined again for a slider; a larger one takes minutes
_ALPHA = 3.0
_KEPT = 3  # refined pools: each is as large as the vectors


class Settings(NamedTuple):
    """A way to refine, as the page asks for it."""

    method: str
    k: int
    steps: int
    blend: float
    """How much of itself an item keeps, from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Refined:
    """The pool as a method leaves it, and queries likewise."""

    pool: SearchIndex
    refine: Callable[[Embeddings], Embeddings]
    """Queries (n, d) from outside the pool, refined against it."""
    weighing: Weighing | None = None
    """How it weighs neighbours, where it does."""


class Methods:
    """The methods that a scene offers.

    Parameters
    ----------
    scene : Scene
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._kept: OrderedDict[Settings, Refined] = OrderedDict()
        self._graphs: dict[str, tuple[Embeddings, Graph]] = {}

    @functools.cached_property
    def offered(self) -> dict[str, dict[str, Any]]:
        """By name, what each starts with; "kept" is the run as it was kept."""
        steps = self._scene.run.n_steps
        known: dict[str, dict[str, Any]] = {
            "raw": {"title": "Raw", "k": 1, "steps": 0, "blend": 1.0, "settings": []},
            "alpha-qe": {"title": "α-QE", "k": 8, "steps": 1, "blend": 0.0},
            "universal": {"title": "Universal"} | _defaults(universal_network().manner(), steps),
        }
        if self.own is not None:
            known[self.own] = {"title": self.own.capitalize()} | _defaults(self._own_manner, steps)
        sliders = ["k", "steps", "blend"]
        if len(self._scene.pool["before"]) > MOST_REFINED:
            known, sliders = {name: each for name, each in known.items() if name in ("raw", self.own)}, []
        return {name: {"settings": sliders} | each for name, each in known.items()}

    @functools.cached_property
    def most_neighbors(self) -> int:
        """The largest k that is offered: as many as the run has, if those are more than usual."""
        return _MOST_NEIGHBORS if self.own is None else max(_MOST_NEIGHBORS, self._own_manner.n_neighbors)

    @property
    def most_steps(self) -> int:
        """The largest number of steps that is offered, likewise."""
        return max(_MOST_STEPS, self._scene.run.n_steps)

    def check(self, settings: Settings) -> Settings:
        """Refuse what is not offered."""
        if settings.method not in self.offered:
            raise InputError(f"the method is {settings.method!r}; wanted one of {', '.join(self.offered)}")
        if settings.method == self.own and not self.offered[self.own]["settings"] and settings != self.kept:
            raise InputError(
                f"the pool has {len(self._scene.pool['before']):,} points, and is not refined again beyond "
                f"{MOST_REFINED:,}; wanted the settings of the run: {self.kept}"
            )
        if not 1 <= settings.k <= self.most_neighbors:
            raise InputError(f"k is {settings.k}; wanted 1 to {self.most_neighbors} neighbours")
        if not 0 <= settings.steps <= self.most_steps:
            raise InputError(f"steps is {settings.steps}; wanted 0 to {self.most_steps}")
        if not 0 <= settings.blend <= 1:
            raise InputError(f"blend is {settings.blend}; wanted a share, 0 to 1")
        return settings

    def refined(self, settings: Settings) -> Refined:
        """The pool refined so; kept for the next items that are looked at."""
        with self._scene.computing():
            if settings not in self._kept:
                self._kept[settings] = self._refined(self.check(settings))
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(settings)
            return self._kept[settings]

    def _refined(self, settings: Settings) -> Refined:
        pool = self._scene.pool["before"]
        if settings == self.kept:
            return self._as_kept(settings)
        if settings.method == "raw" or settings.steps == 0:
            return Refined(pool, lambda queries: queries)
        if settings.method == "alpha-qe":
            return self._expanded(settings)
        return self._by_manner(settings)

    @functools.cached_property
    def own(self) -> str | None:
        """What the run was refined by: "universal", "fitted", or None where its refiner weighs no neighbours."""
        if not self._scene.explains:
            return None
        network, shipped = self._scene.network, universal_network()
        mine, theirs = network.scorer.to_arrays(), shipped.scorer.to_arrays()
        same = all(np.array_equal(array, theirs[name]) for name, array in mine.items())
        usual = (network.sharpness, network.pull) == (shipped.sharpness, shipped.pull)
        return "universal" if same and usual and network.base_map is None else "fitted"

    @functools.cached_property
    def _own_manner(self) -> Manner:
        """How the run's own network weighs neighbours in this pool."""
        by = self._scene.weighted
        return Manner(by.scorer, by.graph.neighbors.k, by.sharpness, by.blend, by.pull)

    @property
    def kept(self) -> Settings | None:
        """The settings of the run as it was kept, where its refiner weighs neighbours."""
        if self.own is None:
            return None
        of = self.offered[self.own]
        return Settings(self.own, of["k"], of["steps"], of["blend"])

    def _as_kept(self, settings: Settings) -> Refined:
        """The pool as the run left it; its graph is known."""
        weighing = self._scene.weighing
        return Refined(self._scene.pool["after"], self._refining(weighing, settings.steps), weighing)

    def _refining(self, weighing: Weighing, steps: int) -> Callable[[Embeddings], Embeddings]:
        pool = self._scene.pool["before"]

        def refine(queries: Embeddings) -> Embeddings:
            context = weighing.context_of_queries(queries, pool)
            *_, last = context.steps(weighing.weighted.steps(steps))
            return queries.replace_vectors(context.refined(apply_base_map(queries, weighing.base_map), *last))

        return refine

    def _expanded(self, settings: Settings) -> Refined:
        pool, blend = self._scene.pool["before"].items, settings.blend
        inside = _first(self._nearest, settings.k)
        states = [pool]
        for _ in range(settings.steps):
            states.append(expand_queries(states[-1], states[-1], inside, _ALPHA))

        def blended(items: Embeddings, moved: Embeddings) -> Embeddings:
            return items.replace_vectors(_unit(blend * items.vectors + (1 - blend) * moved.vectors))

        def refine(queries: Embeddings) -> Embeddings:
            found = search(queries, self._scene.pool["before"], inside.k)
            moved = queries
            for among in states[:-1]:
                moved = expand_queries(moved, among, found, _ALPHA)
            return blended(queries, moved)

        return Refined(SearchIndex(blended(pool, states[-1])), refine)

    def _by_manner(self, settings: Settings) -> Refined:
        universal, pool = settings.method == "universal", self._scene.pool["before"]
        manner = universal_network().manner() if universal else self._own_manner
        base_map = None if universal else self._scene.network.base_map
        mapped, graph = self._graph(base_map)
        shorter = graph.shortened(settings.k) or build_graph(mapped, settings.k)
        weighted = WeightedGraph(shorter, manner.scorer, manner.sharpness, settings.blend, manner.pull)
        inside = weighted.context_of_gallery()
        *_, nodes = weighted.steps(settings.steps)
        vectors = inside.refined(mapped, inside.outside, nodes)
        weighing = Weighing(weighted, base_map)
        refined = SearchIndex(pool.items.replace_vectors(vectors))
        return Refined(refined, self._refining(weighing, settings.steps), weighing)

    @functools.cached_property
    def _nearest(self) -> Neighbors:
        pool = self._scene.pool["before"]
        return search(pool.items, pool, min(self.most_neighbors, len(pool) - 1))

    def _graph(self, base_map: FloatArray | None) -> tuple[Embeddings, Graph]:
        """The pool through a base map, and its graph with as many neighbours as may be asked for."""
        name = "raw" if base_map is None else "mapped"
        if name not in self._graphs:
            mapped = apply_base_map(self._scene.pool["before"].items, base_map)
            self._graphs[name] = mapped, build_graph(mapped, self.most_neighbors)
        return self._graphs[name]


def _defaults(manner: Manner, steps: int) -> dict[str, Any]:
    return {"k": manner.n_neighbors, "steps": steps, "blend": round(float(manner.blend), 3)}


def _first(found: Neighbors, k: int) -> Neighbors:
    return Neighbors(found.rows[:, :k], found.similarities[:, :k])


def _unit(vectors: FloatArray) -> FloatArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
