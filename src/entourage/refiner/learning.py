"""Learning the relational recipe from labels: everything is chosen in rehearsals, on training classes alone.

In order, each with what was chosen before it: the base map (whitening by some shrinkage, then a head trained for some
steps, then the shrinkage again) with the universal scorer; how many neighbours to attend to, with the universal scorer
or one adapted to the edges of other rehearsals; how sharply to weigh them and how much to keep of the item itself; the
pull. What is chosen early is tried in two ways that differ much, so that it need not suit the later choices' defaults.
Doing nothing is among the candidates. The best MAP@R + R@1 / 2 wins among those whose R@1 is not below that of the raw
vectors, and which in sparse galleries lose at most a point of MAP@R. What a user protects must not fall either: where
it does, larger blends are tried, which keep more of the item itself.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from entourage.refiner.base_map import NO_MAP, apply_base_map, learn_base_maps
from entourage.refiner.choice import (
    BaseMap,
    Chosen,
    Scored,
    Weighing,
    best_of,
    check_enough_to_protect,
    check_reach,
    floors_of,
    report_on,
    scored,
)
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.rehearsal import (
    CLASSES_TO_LEARN_FROM,
    SPARSE,
    Refined,
    Rehearsal,
    RehearsalGraph,
    ValidationGallery,
    make_rehearsals,
    sparse_galleries,
)
from entourage.refiner.relations import RELATIONS
from entourage.refiner.scorer import RelationScorer, estimated_purity
from entourage.refiner.scorer_training import fit_scorer
from entourage.refiner.settings import RefinerSettings
from entourage.refiner.universal import fit_universal, universal_network
from entourage.refiner.voting import Votes, rehearse_votes
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.training.sampling import check_usable_classes, usable_classes
from entourage.values import BoolArray, Embeddings, FloatArray, label_codes, labels_of

__all__ = ["fit_relational"]

SHRINKAGES = (1.0, 0.8, 0.5, 0.3, 0.1, 0.03, 0.01)  # 1 is no whitening
HEAD_STEPS = (0, 60, 150, 300)  # 0 is no head
NEIGHBORS = (12, 32, 64, 128)  # each is tried if the one before was the best so far
SHARPNESS = (0.5, 1.0, 2.0, 4.0, 8.0)
BLENDS = (0.1, 0.2, 0.35, 0.5)
PULLS = (1.0, 0.0)
# Two ways to weigh, with which all else is chosen: few neighbours that are trusted, and many, hardly told apart.
FEW, MANY = (4.0, 0.35, 1.0), (1.0, 0.1, 0.0)  # sharpness, blend, pull
MANY_NEIGHBORS = 48
CAREFUL_BLENDS = (0.7, 0.85)  # tried where a smaller one lowers what is protected

_SCORER_EPOCHS = 4
_MOST_EDGES = 400_000

Graphs = list[RehearsalGraph]
Galleries = list[ValidationGallery]


def fit_relational(
    settings: RefinerSettings, items: Embeddings, progress: Progress | None = None
) -> tuple[RelationalNetwork, dict[str, Any], Votes | None]:
    """Learn a network from labelled items.

    Parameters
    ----------
    settings : RefinerSettings
    items : Embeddings
        N items with labels; two classes of two items or more at least.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    network : RelationalNetwork
    report : dict
        {"protocol", "metrics", "warnings"}.
    votes : Votes or None
        How new items of the same classes were classified in a rehearsal; None where there were too few to tell.
    """
    check_usable_classes(labels_of(items))
    universal = universal_network(settings.n_neighbors)
    codes = label_codes(labels_of(items))
    if len(usable_classes(codes)) < CLASSES_TO_LEARN_FROM:
        check_enough_to_protect(settings.protect, len(usable_classes(codes)))
        network, report, _ = fit_universal(settings, items, progress)
        report["warnings"].append("too few classes to rehearse with: the universal scorer is used as it is")
        votes = rehearse_votes(items, lambda _: network, settings)
        return network, _with_votes(report, votes), votes
    rehearsals = make_rehearsals(items, codes, settings.random_state, progress)
    check_reach(settings.protect, rehearsals)
    unmapped, chosen = _learn(settings, universal, rehearsals, progress)

    def mapped(teaching: Embeddings) -> RelationalNetwork:
        if chosen.base == NO_MAP:
            return unmapped
        codes = label_codes(labels_of(teaching))
        maps = learn_base_maps(teaching.vectors, codes, [chosen.base], settings.random_state)
        return replace(unmapped, base_map=maps[chosen.base])

    votes = rehearse_votes(items, mapped, settings)
    return mapped(items), _with_votes(report_on(settings, codes, chosen), votes), votes


def _with_votes(report: dict[str, Any], votes: Votes | None) -> dict[str, Any]:
    """The report of a fit, with how new items of the same classes are classified before and after refinement."""
    return report if votes is None else report | {"metrics": report["metrics"] | votes.metrics}


# ---- the base map --------------------------------------------------------------------------------------------------


def _choose_base(
    settings: RefinerSettings, universal: RelationalNetwork, rehearsals: list[Rehearsal], progress: Progress | None
) -> tuple[BaseMap, Galleries, Scored[Any], list[Scored[Any]]]:
    """(the base map that the universal network refines best, its galleries, how the raw vectors did, all scores)."""
    galleries: dict[BaseMap, Galleries] = {NO_MAP: [_all_queries(rehearsal.held_out) for rehearsal in rehearsals]}
    raw = scored("raw", galleries[NO_MAP], settings)
    floors = floors_of(settings, raw)
    many = MANY_NEIGHBORS if settings.n_neighbors is None else universal.n_neighbors
    probes = (universal.n_neighbors, FEW), (many, MANY)
    tried: list[Scored[BaseMap]] = []
    best: BaseMap = NO_MAP
    rounds = (
        lambda: [(shrinkage, 0) for shrinkage in SHRINKAGES],
        lambda: [(best[0], steps) for steps in HEAD_STEPS],
        lambda: [(shrinkage, best[1]) for shrinkage in _next_to(best[0])],
    )
    for number, candidates in enumerate(rounds):
        known = {each.settings for each in tried}
        new = [candidate for candidate in candidates() if candidate not in known]
        galleries |= _mapped_galleries(rehearsals, [c for c in new if c != NO_MAP], settings.random_state)
        for candidate in new:
            for k, (sharpness, *ending) in probes:
                graphs = _graphs(galleries[candidate], k, settings)
                refined = _refined(graphs, [universal.scorer] * len(graphs), sharpness)
                for blend, pull in _endings(settings, *ending):
                    tried.append(scored(candidate, [r(blend, pull) for r in refined], settings))
                    if tried[-1].keeps(floors):
                        break
        best = best_of(tried, floors).settings
        galleries = {best: galleries[best]}
        _show(progress, "choosing a base map", number + 1, len(rounds))
    return best, galleries[best], raw, tried


def _next_to(shrinkage: float) -> tuple[float, ...]:
    """It and what stands beside it: a head takes long to train for each."""
    place = SHRINKAGES.index(shrinkage)
    return SHRINKAGES[max(place - 1, 0) : place + 2]


def _careful_blends(settings: RefinerSettings) -> tuple[float, ...]:
    return CAREFUL_BLENDS if settings.protect else ()


def _endings(settings: RefinerSettings, blend: float, pull: float) -> list[tuple[float, float]]:
    """A blend and a pull, and with larger blends where something is protected."""
    return [(each, pull) for each in (blend, *_careful_blends(settings))]


def _mapped_galleries(rehearsals: list[Rehearsal], candidates: list[BaseMap], seed: int) -> dict[BaseMap, Galleries]:
    """The held-out items of every rehearsal under every candidate for the base map, learned from the other folds."""
    mapped: dict[BaseMap, Galleries] = {candidate: [] for candidate in candidates}
    for rehearsal in rehearsals if candidates else ():
        training = rehearsal.training
        maps = learn_base_maps(training.vectors, label_codes(labels_of(training)), candidates, seed)
        for candidate, base_map in maps.items():
            mapped[candidate].append(_all_queries(apply_base_map(rehearsal.held_out, base_map)))
    return mapped


def _all_queries(items: Embeddings) -> ValidationGallery:
    return ValidationGallery(items, np.ones(len(items), bool))


# ---- how to weigh --------------------------------------------------------------------------------------------------


def _learn(
    settings: RefinerSettings, universal: RelationalNetwork, rehearsals: list[Rehearsal], progress: Progress | None
) -> tuple[RelationalNetwork, Chosen]:
    """(network without its base map, what was chosen and how it did)."""
    base, dense, raw, with_bases = _choose_base(settings, universal, rehearsals, progress)
    sparse = [gallery for r in rehearsals for gallery in sparse_galleries(r, base, settings.random_state)]
    alone = Weighing(universal.n_neighbors, "universal", sharpness=1.0, blend=1.0)  # the base map without refinement
    unrefined = scored(alone, dense, settings)
    floors = floors_of(settings, raw)
    choose = functools.partial(best_of, floors=floors)
    candidates = [unrefined, *_weighings(settings, universal, dense, sparse, choose, progress)]
    best = choose(candidates)
    unprotected = best_of([*candidates, *with_bases], {"recall@1": floors["recall@1"]})
    chosen = Chosen(base, best.settings, raw, best, unprotected)
    if best.map_at_r <= raw.map_at_r or not best.keeps(floors):
        chosen = Chosen(NO_MAP, alone, raw, raw, unprotected)
    return _network(settings, universal, chosen, dense, sparse, progress), chosen


def _weighings(
    settings: RefinerSettings,
    universal: RelationalNetwork,
    dense: Galleries,
    sparse: Galleries,
    choose: Callable[[list[Scored[Weighing]]], Scored[Weighing]],
    progress: Progress | None,
) -> list[Scored[Weighing]]:
    """Ways to weigh that do no harm in sparse galleries.

    First neighbours and scorers, with few and many neighbours weighed; then sharpness, blend and pull, each with the
    best so far.
    """
    neighbors = NEIGHBORS if settings.n_neighbors is None else (int(settings.n_neighbors),)
    blends = BLENDS + _careful_blends(settings)
    evaluators: list[_Evaluator] = []
    for number, k in enumerate(neighbors):
        evaluators.append(_Evaluator(settings, universal, k, dense, sparse))
        for name in ("universal", "adapted"):
            for sharpness, *ending in (FEW, MANY):
                for blend, pull in _endings(settings, *ending):
                    evaluators[-1].scores(name, sharpness, blend, pull)
        _show(progress, "choosing neighbours and scorer", number + 1, len(neighbors))
        best = _best(evaluators, choose)
        if best and best.settings.n_neighbors != k:
            break
    best = _best(evaluators, choose)
    chosen = best.settings if best else Weighing(evaluators[0].k, "universal", *FEW)
    evaluator = next(each for each in evaluators if each.k == chosen.n_neighbors)
    for number, (name, values) in enumerate({"sharpness": SHARPNESS, "blend": blends, "pull": PULLS}.items()):
        for value in values:
            way = chosen._asdict() | {name: value}
            evaluator.scores(way["scorer"], way["sharpness"], way["blend"], way["pull"])
        best = _best([evaluator], choose)
        chosen = best.settings if best else chosen
        _show(progress, "choosing how to weigh", number + 1, 3)
    return [each for evaluator in evaluators for each in evaluator.harmless]


def _best(
    evaluators: "list[_Evaluator]", choose: Callable[[list[Scored[Weighing]]], Scored[Weighing]]
) -> Scored[Weighing] | None:
    harmless = [each for evaluator in evaluators for each in evaluator.harmless]
    return choose(harmless) if harmless else None


class _Evaluator:
    """Scores ways to weigh k neighbours, in the dense galleries of the rehearsals and in the sparse ones."""

    def __init__(
        self,
        settings: RefinerSettings,
        universal: RelationalNetwork,
        k: int,
        dense: Galleries,
        sparse: Galleries,
    ) -> None:
        self.k, self.settings, self.universal = k, settings, universal
        self.dense, self.sparse = (_graphs(galleries, k, settings) for galleries in (dense, sparse))
        self.usual_purity = _purity(universal, self.dense)
        self._shares = [self._network(universal.scorer).share_in(each.graph) for each in self.sparse]
        self.harmless: list[Scored[Weighing]] = []
        """Those tried that in the sparse galleries lose at most a point to the base map alone."""
        self.scores = functools.cache(self._scores)
        self._unrefined = scored("base map alone", sparse, settings)
        self._refined = functools.lru_cache(maxsize=1)(self._refine)
        self._scorers = functools.cache(self._make_scorers)

    def _scores(self, name: str, sharpness: float, blend: float, pull: float) -> Scored[Weighing]:
        """How the scorer of that name does in the dense galleries; noted if it is harmless in the sparse ones."""
        tried = Weighing(self.k, name, sharpness, blend, pull)
        in_dense, in_sparse = (
            scored(tried, [refined(blend, pull) for refined in part], self.settings)
            for part in self._refined(name, sharpness)
        )
        if in_sparse.no_worse_than(self._unrefined):
            self.harmless.append(in_dense)
        return in_dense

    def _refine(self, name: str, sharpness: float) -> tuple[list[Refined], list[Refined]]:
        scorers = self._scorers(name)
        networks = [self._network(scorer, sharpness) for scorer in scorers for _ in SPARSE]
        in_sparse = map(self._refined_sparse, self.sparse, self._shares, networks)
        return _refined(self.dense, scorers, sharpness), list(in_sparse)

    def _refined_sparse(self, sparse: RehearsalGraph, share: float, network: RelationalNetwork) -> Refined:
        """A sparse gallery as refined by the network and its fallback."""
        manner = network.manner(share)
        suited = replace(sparse, graph=sparse.graph.with_neighbors(manner.n_neighbors))
        refined = suited.refined(manner.scorer, manner.sharpness)

        def at(blend: float, pull: float) -> ValidationGallery:
            between = replace(network, blend=blend, pull=pull).manner(share)
            return refined(between.blend, between.pull)

        return at

    def _network(self, scorer: RelationScorer, sharpness: float = 1.0) -> RelationalNetwork:
        """A network with this scorer, before its blend and pull are chosen."""
        return RelationalNetwork(
            scorer, None, self.k, sharpness, fallback=self.universal, usual_purity=self.usual_purity
        )

    def _make_scorers(self, name: str) -> list[RelationScorer]:
        """One for each rehearsal, which has no part in it."""
        universal = self.universal.scorer
        if name == "universal":
            return [universal] * len(self.dense)
        others = _all_but_one(self.dense, self.sparse)
        return [_adapted(universal, dense, sparse, self.settings.random_state) for dense, sparse in others]


def _network(
    settings: RefinerSettings,
    universal: RelationalNetwork,
    chosen: Chosen,
    dense: Galleries,
    sparse: Galleries,
    progress: Progress | None,
) -> RelationalNetwork:
    """The network as chosen, still without its base map; an adapted scorer learns from all rehearsals."""
    k, scorer, sharpness, blend, pull = chosen.weighing
    network = RelationalNetwork(universal.scorer, n_neighbors=k, sharpness=sharpness, blend=blend, pull=pull)
    if blend == 1:
        return network
    graphs = _graphs(dense, k, settings)
    network = replace(network, fallback=universal, usual_purity=_purity(universal, graphs))
    if scorer != "adapted":
        return network
    adapted = _adapted(universal.scorer, graphs, _graphs(sparse, k, settings), settings.random_state, progress)
    return replace(network, scorer=adapted)


def _purity(universal: RelationalNetwork, graphs: Graphs) -> float:
    """The mean purity of galleries as the universal network estimates it."""
    return float(np.mean([estimated_purity(universal.scorer, each.graph, universal.n_neighbors) for each in graphs]))


def _all_but_one(dense: Graphs, sparse: Graphs) -> list[tuple[Graphs, Graphs]]:
    """For each rehearsal the dense and the sparse graphs of the others."""
    n = len(SPARSE)
    return [
        (dense[:fold] + dense[fold + 1 :], sparse[: fold * n] + sparse[(fold + 1) * n :]) for fold in range(len(dense))
    ]


def _graphs(galleries: Iterable[ValidationGallery], k: int, settings: RefinerSettings) -> Graphs:
    return [RehearsalGraph.build(gallery, k, settings.n_steps) for gallery in galleries]


def _refined(graphs: Graphs, scorers: Sequence[RelationScorer], sharpness: float) -> list[Refined]:
    return [graph.refined(scorer, sharpness) for graph, scorer in zip(graphs, scorers, strict=True)]


def _adapted(
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


def _show(progress: Progress | None, title: str, done: int, total: int) -> None:
    if progress:
        progress(title, done, total)
