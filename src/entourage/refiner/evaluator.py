"""Ways to weigh neighbours, scored in rehearsals: in dense galleries, and in sparse ones that they must not harm."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from entourage.refiner.choice import Scored, Weighing, scored
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.rehearsal import SPARSE, Refined, RehearsalGraph, ValidationGallery
from entourage.refiner.relations import RELATIONS
from entourage.refiner.scorer import RelationScorer, estimated_purity
from entourage.refiner.scorer_training import fit_scorer
from entourage.refiner.settings import RefinerSettings
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.values import BoolArray, FloatArray

__all__ = [
    "Evaluator",
    "Galleries",
    "Graphs",
    "adapted_scorer",
    "mean_purity",
    "refined_by",
    "rehearsal_graphs",
    "unlearned_scorer",
]

_SCORER_EPOCHS = 4
_MOST_EDGES = 400_000

Graphs = list[RehearsalGraph]
Galleries = list[ValidationGallery]


class Evaluator:
    """Scores ways to weigh k neighbours, in the dense galleries of the rehearsals and in the sparse ones."""

    def __init__(
        self,
        settings: RefinerSettings,
        fallback: RelationalNetwork,
        k: int,
        dense: Galleries,
        sparse: Galleries,
    ) -> None:
        self.k, self.settings, self.fallback = k, settings, fallback
        self.dense, self.sparse = (rehearsal_graphs(galleries, k) for galleries in (dense, sparse))
        self.usual_purity = mean_purity(fallback, self.dense)
        self._shares = [self._network(fallback.scorer).share_in(each.graph) for each in self.sparse]
        self.harmless: list[Scored[Weighing]] = []
        """Those tried that in the sparse galleries lose at most a point to the base map alone."""
        self.scores = functools.cache(self._scores)
        self._unrefined = scored("base map alone", sparse, settings)
        self._refined = functools.lru_cache(maxsize=1)(self._refine)
        self._scorers = functools.cache(self._make_scorers)

    def _scores(self, tried: Weighing) -> Scored[Weighing]:
        """How a way to weigh k neighbours does in the dense galleries; noted if it is harmless in the sparse ones."""
        in_dense, in_sparse = (
            scored(tried, [refined(tried.blend, tried.pull, tried.n_steps) for refined in part], self.settings)
            for part in self._refined(tried.scorer, tried.sharpness)
        )
        if in_sparse.no_worse_than(self._unrefined):
            self.harmless.append(in_dense)
        return in_dense

    def _refine(self, name: str, sharpness: float) -> tuple[list[Refined], list[Refined]]:
        scorers = self._scorers(name)
        networks = [self._network(scorer, sharpness) for scorer in scorers for _ in SPARSE]
        in_sparse = map(self._refined_sparse, self.sparse, self._shares, networks)
        return refined_by(self.dense, scorers, sharpness), list(in_sparse)

    def _refined_sparse(self, sparse: RehearsalGraph, share: float, network: RelationalNetwork) -> Refined:
        """A sparse gallery as refined by the network and its fallback."""
        manner = network.manner(share)
        suited = replace(sparse, graph=sparse.graph.with_neighbors(manner.n_neighbors))
        refined = suited.refined(manner.scorer, manner.sharpness)

        def at(blend: float, pull: float, n_steps: int) -> ValidationGallery:
            between = replace(network, blend=blend, pull=pull).manner(share)
            return refined(between.blend, between.pull, n_steps)

        return at

    def _network(self, scorer: RelationScorer, sharpness: float = 1.0) -> RelationalNetwork:
        """A network with this scorer, before its blend and pull are chosen."""
        return RelationalNetwork(
            scorer, None, self.k, sharpness, fallback=self.fallback, usual_purity=self.usual_purity
        )

    def _make_scorers(self, name: str) -> list[RelationScorer]:
        """One for each rehearsal, which has no part in it."""
        if name != "adapted":
            return [unlearned_scorer(name, self.fallback)] * len(self.dense)
        others, seed = _all_but_one(self.dense, self.sparse), self.settings.random_state
        return [adapted_scorer(self.fallback.scorer, dense, sparse, seed) for dense, sparse in others]


def unlearned_scorer(name: str, universal: RelationalNetwork) -> RelationScorer:
    """The scorer of that name that is the same for all rehearsals."""
    return RelationScorer.of_similarity() if name == "similarity" else universal.scorer


def mean_purity(universal: RelationalNetwork, graphs: Graphs) -> float:
    """The mean purity of galleries as the universal network estimates it."""
    return float(np.mean([estimated_purity(universal.scorer, each.graph, universal.n_neighbors) for each in graphs]))


def _all_but_one(dense: Graphs, sparse: Graphs) -> list[tuple[Graphs, Graphs]]:
    """For each rehearsal the dense and the sparse graphs of the others."""
    n = len(SPARSE)
    return [
        (dense[:fold] + dense[fold + 1 :], sparse[: fold * n] + sparse[(fold + 1) * n :]) for fold in range(len(dense))
    ]


def rehearsal_graphs(galleries: Iterable[ValidationGallery], k: int) -> Graphs:
    return [RehearsalGraph.build(gallery, k) for gallery in galleries]


def refined_by(graphs: Graphs, scorers: Sequence[RelationScorer], sharpness: float) -> list[Refined]:
    return [graph.refined(scorer, sharpness) for graph, scorer in zip(graphs, scorers, strict=True)]


def adapted_scorer(
    universal: RelationScorer, dense: Graphs, sparse: Graphs, seed: int, progress: Progress | None = None
) -> RelationScorer:
    """The universal scorer trained further on edges of these graphs, a quarter of them from sparse galleries.

    The size of the gallery is blurred: here the sparse ones are small and the dense ones large, elsewhere they are not.
    """
    rng = generator(seed)
    drawn = [_edges(dense, _MOST_EDGES, rng)]
    drawn.append(_edges(sparse, len(drawn[0][0]) // 3, rng, fill=True))
    relations, same_class = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    relations[:, RELATIONS.index("size of the gallery")] += rng.normal(size=len(relations)).astype(np.float32)
    return fit_scorer(universal, relations, same_class, epochs=_SCORER_EPOCHS, seed=seed, progress=progress)


def _edges(graphs: Graphs, most: int, rng: np.random.Generator, *, fill: bool = False) -> tuple[FloatArray, BoolArray]:
    """At most so many edges of the graphs; with `fill` as many, drawn again and again."""
    relations, same_class = (np.concatenate(parts) for parts in zip(*(g.edges() for g in graphs), strict=True))
    if len(relations) and (fill or len(relations) > most):
        drawn = rng.choice(len(relations), most, replace=len(relations) < most)
        relations, same_class = relations[drawn], same_class[drawn]
    return relations, same_class
