"""Learning the relational recipe: everything is chosen in rehearsals of the test, on training classes alone.

A rehearsal plays the test with some training classes in the role of the unseen ones. The classes are dealt into
folds; the classes of a fold are mapped by base maps learned from the other folds and searched among themselves. A
fold has fewer classes than the whole, and an encoder may know the training classes by heart, so this alone would be
too easy to tell good settings from bad. Each item is therefore moved away from the mean c of its class,
normalise(c + a (e - c)), with a ≥ 1 such that its 8 nearest are of its class no more often than they are in the whole
training set (and at most 9 times in 10).

In order: the base map (whitening by some shrinkage, then a head trained for some steps) with the universal scorer;
the scorer, as it is or adapted to the edges of other rehearsals; how sharply to weigh and how much to keep of the item
itself. Doing nothing is among the candidates. The best MAP@R wins among those whose R@1 is not below that of doing
nothing, and which do no harm in sparse galleries, where every class has only 2, 5 or 12 items.

N items, d dimensions.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from entourage import metrics
from entourage.linear_maps import class_means, eigen, head_maps, inverse_roots, within_class_covariance
from entourage.neighbors import search, search_blocks
from entourage.relations import RELATIONS
from entourage.sampling import check_usable_classes, usable_classes
from entourage.systems.context_refiner.relational import (
    RelationalNetwork,
    RelationScorer,
    blended,
    build_graph,
    estimated_purity,
    fit_scorer,
    step,
)
from entourage.systems.context_refiner.universal import fit_universal, universal_network
from entourage.values import Embeddings, label_codes

__all__ = ["fit_relational"]

SHRINKAGES = (1.0, 0.8, 0.5, 0.3)  # 1 is no whitening
HEAD_STEPS = (0, 60, 150, 300)  # 0 is no head
NEIGHBORS = (12, 32)
SPARSE = (2, 5, 12)  # items a class in sparse galleries
SHARPNESS = (2.0, 4.0, 8.0)
BLENDS = (0.1, 0.2, 0.35)
NO_MAP = (1.0, 0)

_FOLDS = 3
_HARDEST = 0.9
_PURITY_OF = 8
_SCORER_EPOCHS = 4
_MOST_ITEMS = 8_000  # in all rehearsals together; more tell nothing new
_MOST_QUERIES = 1_000  # of each rehearsal
_MOST_EDGES = 400_000
_SPARSE_SLACK = 0.01
_SLACK = 0.002  # how far R@1 may fall below that of doing nothing: two queries in a thousand


@dataclass(frozen=True)
class Scored:
    """A candidate and how it did, averaged over the rehearsals."""

    settings: tuple
    recall_at_1: float
    map_at_r: float

    def no_worse_than(self, other: "Scored") -> bool:
        return self.map_at_r >= other.map_at_r - _SPARSE_SLACK


@dataclass(frozen=True)
class Chosen:
    """What the rehearsals decided."""

    base: tuple[float, int]
    """Shrinkage of the whitening and steps of the head."""
    n_neighbors: int
    scorer: str
    sharpness: float
    blend: float
    raw: Scored
    best: Scored


@dataclass(frozen=True)
class Stage:
    """A gallery, and which of its items are asked about."""

    items: Embeddings
    asked: np.ndarray
    """(N,) bool."""


@dataclass(frozen=True)
class Rehearsal:
    """Some training classes in the role of unseen ones."""

    stage: Embeddings
    """The items of this fold, made as hard as the whole."""
    taught: Embeddings
    """The items of the other folds."""


def fit_relational(settings, items: Embeddings, *, progress=None) -> tuple[RelationalNetwork, dict]:
    """Learn from labelled items by the settings of a ContextRefiner; (network, report)."""
    check_usable_classes(items.labels)
    universal = universal_network()
    codes = label_codes(items.labels)
    if len(usable_classes(codes)) < 2 * _FOLDS:
        network, report = fit_universal(settings, items, progress=progress)
        report["warnings"].append("too few classes to rehearse with: the universal scorer is used as it is")
        return network, report
    rehearsals = _rehearsals(items, codes, settings.seed, progress)
    network, chosen = _learn(settings, universal, rehearsals, progress)
    if chosen.base != NO_MAP:
        network.base = torch.from_numpy(base_maps(items.vectors, codes, [chosen.base], settings.seed)[chosen.base])
    return network, _report(settings, codes, chosen)


# ---- the stage -----------------------------------------------------------------------------------------------------


def _rehearsals(items: Embeddings, codes: np.ndarray, seed: int, progress) -> list[Rehearsal]:
    rng = np.random.default_rng(seed)
    classes = rng.permutation(usable_classes(codes))
    sizes = np.bincount(codes)[classes]
    classes = classes[: max(2 * _FOLDS, int((np.cumsum(sizes) <= _MOST_ITEMS).sum()))]
    known = np.flatnonzero(np.isin(codes, classes))
    if len(known) > 2 * _MOST_ITEMS:  # a few huge classes
        known = known[_thinned(codes[known], max(2, _MOST_ITEMS // len(classes)), seed)]
    items = Embeddings(items.vectors[known], items.ids[known], codes[known])
    target = min(_purity(items), _HARDEST)
    rehearsals = []
    for fold in range(_FOLDS):
        played = np.isin(items.labels, classes[fold::_FOLDS])
        rehearsals.append(Rehearsal(_as_hard_as(items.take(played), target), items.take(~played)))
        if progress:
            progress("preparing rehearsals", fold + 1, _FOLDS)
    return rehearsals


def _purity(items: Embeddings) -> float:
    """How often the nearest 8 are of an item's class, out of what is possible."""
    found = search(items, k=min(_PURITY_OF, len(items) - 1))
    codes = label_codes(items.labels)
    possible = np.minimum(np.bincount(codes)[codes] - 1, found.k)
    hits = (codes[found.rows] == codes[:, None]).sum(axis=1)
    return float(np.minimum(hits / np.maximum(possible, 1), 1)[possible > 0].mean())


def _as_hard_as(items: Embeddings, purity: float) -> Embeddings:
    """The items moved away from their class means until they are no purer than that; by bisection."""
    if _purity(items) <= purity:
        return items
    codes = label_codes(items.labels)
    centres = class_means(items.vectors, codes)[0][codes].astype(np.float32)

    def moved(factor: float) -> Embeddings:
        vectors = centres + np.float32(factor) * (items.vectors - centres)
        return items.replace_vectors(Embeddings.from_vectors(vectors).vectors)

    low, high = 1.0, 6.0
    for _ in range(5):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _purity(moved(middle)) > purity else (low, middle)
    return moved((low * high) ** 0.5)


# ---- the choice ----------------------------------------------------------------------------------------------------


def _learn(settings, universal: RelationalNetwork, rehearsals: list[Rehearsal], progress) -> tuple:
    """(network without its base map, what was chosen and how it did)."""
    mapped = _mapped_stages(rehearsals, settings.seed, progress)
    raw = _average("raw", map(_score, mapped[NO_MAP]))
    k = settings.n_neighbors or int(universal.n_neighbors)
    bases = []
    for number, (candidate, stages) in enumerate(mapped.items()):
        refined = [
            Trial(s, k, settings.n_blocks_).refined(universal.scorer, float(universal.sharpness)) for s in stages
        ]
        bases.append(_average(candidate, [_score(r(float(universal.blend))) for r in refined]))
        _tell(progress, "choosing a base map", number + 1, len(mapped))
    base = best_of(bases, raw)

    stages = mapped[base.settings]
    sparse = [s for rehearsal in rehearsals for s in _sparse_stages(rehearsal, base.settings, settings.seed)]
    alone = (int(k), "universal", 1.0, 1.0)  # the base map without refinement
    unrefined, unrefined_sparse = (_average(alone, map(_score, part)) for part in (stages, sparse))
    weighings, harmless = [unrefined], [unrefined]
    neighbors = NEIGHBORS if settings.n_neighbors is None else (int(settings.n_neighbors),)
    total = 2 * len(neighbors) * len(SHARPNESS) * len(BLENDS)
    for k in neighbors:
        trials = [Trial(stage, k, settings.n_blocks_) for stage in stages]
        sparse_trials = [Trial(stage, k, settings.n_blocks_) for stage in sparse]
        for name in ("universal", "adapted"):
            scorers = [
                universal.scorer if name == "universal" else _adapted(universal.scorer, *others, settings.seed)
                for others in _all_but_one(trials, sparse_trials)
            ]
            for sharpness in SHARPNESS:
                refined = _refined(trials, scorers, sharpness)
                refined_sparse = _refined(sparse_trials, np.repeat(scorers, len(SPARSE)), sharpness)
                for blend in BLENDS:
                    weighings.append(_average((k, name, sharpness, blend), [_score(r(blend)) for r in refined]))
                    if _average("sparse", [_score(r(blend)) for r in refined_sparse]).no_worse_than(unrefined_sparse):
                        harmless.append(weighings[-1])
                _tell(progress, "choosing how to weigh", len(weighings) - 1, total)
    best = best_of(harmless, max(raw, unrefined, key=lambda scored: scored.recall_at_1))
    chosen = Chosen(base.settings, *best.settings, raw, best)
    if best.map_at_r <= raw.map_at_r or best.recall_at_1 < raw.recall_at_1 - _SLACK:
        chosen = Chosen(NO_MAP, *alone, raw, raw)
    scorer, caution = universal.scorer, {}
    if chosen.scorer == "adapted":
        trials = [Trial(stage, chosen.n_neighbors, settings.n_blocks_) for stage in (*stages, *sparse)]
        scorer = _adapted(scorer, trials[: len(stages)], trials[len(stages) :], settings.seed, progress)
        k = int(universal.n_neighbors)
        purity = [estimated_purity(universal.scorer, build_graph(stage.items, k), k) for stage in stages]
        caution = {"cautious": universal, "usual_purity": float(np.mean(purity))}
    network = RelationalNetwork(
        scorer, n_neighbors=chosen.n_neighbors, sharpness=chosen.sharpness, blend=chosen.blend, **caution
    )
    return network, chosen


def _all_but_one(trials: list, sparse_trials: list) -> list[tuple[list, list]]:
    """For each rehearsal the trials of the others."""
    n = len(SPARSE)
    return [
        (trials[:fold] + trials[fold + 1 :], sparse_trials[: fold * n] + sparse_trials[(fold + 1) * n :])
        for fold in range(len(trials))
    ]


def _refined(trials: list, scorers, sharpness: float) -> list:
    return [trial.refined(scorer, sharpness) for trial, scorer in zip(trials, scorers, strict=True)]


def _sparse_stages(rehearsal: Rehearsal, base: tuple, seed: int) -> list[Stage]:
    """The same classes among all others where every class has only a few items; nothing is asked about the others."""
    stage, taught = rehearsal.stage, rehearsal.taught
    labels = np.concatenate([stage.labels, taught.labels])
    items = Embeddings(np.concatenate([stage.vectors, taught.vectors]), np.concatenate([stage.ids, taught.ids]), labels)
    if base != NO_MAP:
        taught_codes = label_codes(taught.labels)
        items = _mapped(items, base_maps(taught.vectors, taught_codes, [base], seed)[base])
    played = np.arange(len(items)) < len(stage)
    parts = []
    for size in SPARSE:
        rows = _thinned(labels, size, seed)
        parts.append(Stage(items.take(rows), played[rows]))
    return parts


def _thinned(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Rows of at most that many items of each class, in order."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    first = np.searchsorted(labels[order], labels[order])
    return np.sort(order[np.arange(len(labels)) - first < size])


def best_of(candidates: list[Scored], nothing: Scored) -> Scored:
    """The highest MAP@R among those whose R@1 has not fallen below that of doing nothing, else the highest R@1."""
    safe = [scored for scored in candidates if scored.recall_at_1 >= nothing.recall_at_1 - _SLACK]
    return max(safe, key=lambda s: s.map_at_r) if safe else max(candidates, key=lambda s: s.recall_at_1)


def _mapped_stages(rehearsals: list[Rehearsal], seed: int, progress) -> dict[tuple, list[Stage]]:
    """The stage of every rehearsal under every candidate for the base map, learned from the taught classes."""
    candidates = [(shrinkage, steps) for shrinkage in SHRINKAGES for steps in HEAD_STEPS]
    mapped = {candidate: [] for candidate in candidates}
    for number, rehearsal in enumerate(rehearsals):
        stage, taught = rehearsal.stage, rehearsal.taught
        for candidate, base in base_maps(taught.vectors, label_codes(taught.labels), candidates, seed).items():
            items = stage if candidate == NO_MAP else _mapped(stage, base)
            mapped[candidate].append(Stage(items, np.ones(len(stage), bool)))
        _tell(progress, "learning base maps", number + 1, len(rehearsals))
    return mapped


def _mapped(items: Embeddings, base: np.ndarray) -> Embeddings:
    return items.replace_vectors(F.normalize(torch.from_numpy(items.vectors @ base), dim=1).numpy())


def base_maps(vectors, codes, candidates, seed: int) -> dict[tuple, np.ndarray]:
    """{(shrinkage, steps): map (d, d) float32}: whitening with that shrinkage, then a head trained so long."""
    values, axes = eigen(within_class_covariance(vectors, codes))
    values = values if values.any() else np.ones_like(values)  # classes of one vector each: nothing to whiten
    maps = {}
    for shrinkage in dict.fromkeys(shrinkage for shrinkage, _ in candidates):
        whitening = (axes * (inverse_roots(values, shrinkage) * values.mean() ** 0.5) @ axes.T).astype(np.float32)
        whitened = F.normalize(torch.from_numpy(vectors @ whitening), dim=1).numpy()
        steps = [steps for other, steps in candidates if other == shrinkage]
        maps |= {(shrinkage, n): whitening @ head for n, head in head_maps(whitened, codes, steps, seed=seed).items()}
    return maps


class Trial:
    """A stage with its graph, on which scorers and settings are tried."""

    def __init__(self, stage: Stage, n_neighbors: int, n_steps: int):
        self.stage, self.graph, self.n_steps = stage, build_graph(stage.items, n_neighbors), n_steps

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Relations (E, 22) of the edges of items asked about, and whether both ends are of one class (E,)."""
        graph = self.graph
        asked = np.zeros(len(graph.items), bool)
        asked[graph.stands_for[self.stage.asked]] = True
        labels, rows = graph.items.labels, graph.found.rows[asked]
        relations = graph.relations[asked]
        return relations.reshape(-1, relations.shape[-1]), (labels[rows] == labels[asked][:, None]).ravel()

    def refined(self, scorer: RelationScorer, sharpness: float):
        """The refined stage as a function of the blend."""
        weights = scorer.probabilities(self.graph.relations) ** sharpness
        z = self.graph.items.vectors
        for _ in range(self.n_steps):
            z = step(z, z, self.graph.found.rows, weights)
        x, z = self.stage.items, z[self.graph.stands_for]
        return lambda blend: Stage(x.replace_vectors(blended(x.vectors, z, blend)), self.stage.asked)


def _adapted(universal: RelationScorer, dense: list[Trial], sparse: list[Trial], seed: int, progress=None):
    """The universal scorer trained further on edges of these trials, a quarter of them from sparse galleries.

    The size of the gallery is blurred: here the sparse ones are small and the dense ones large, elsewhere they are not.
    """
    rng = np.random.default_rng(seed)
    drawn = [_edges(dense, _MOST_EDGES, rng)]
    drawn.append(_edges(sparse, len(drawn[0][0]) // 3, rng, fill=True))
    relations, same_class = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    relations[:, RELATIONS.index("size of the gallery")] += rng.normal(size=len(relations)).astype(np.float32)
    return fit_scorer(
        copy.deepcopy(universal), relations, same_class, epochs=_SCORER_EPOCHS, seed=seed, progress=progress
    )


def _edges(trials: list[Trial], most: int, rng, *, fill: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """At most so many edges of the trials; with `fill` as many, drawn again and again."""
    relations, same_class = (np.concatenate(parts) for parts in zip(*(t.edges() for t in trials), strict=True))
    if fill or len(relations) > most:
        drawn = rng.choice(len(relations), most, replace=len(relations) < most)
        relations, same_class = relations[drawn], same_class[drawn]
    return relations, same_class


def _score(stage: Stage) -> tuple[float, float]:
    """R@1 and MAP@R of the items asked about, among all; of an even choice of them where there are many."""
    items, codes = stage.items, label_codes(stage.items.labels)
    rows = np.flatnonzero(stage.asked)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(_MOST_QUERIES, len(rows))).astype(int))]
    matches = np.bincount(codes)[codes[rows]] - 1
    first, precision = [], []
    for block, found in search_blocks(items.take(rows), items, k=int(min(max(matches.max(), 1), len(items) - 1))):
        hits = codes[found.rows] == codes[rows[block], None]
        first.append(metrics.recall_at(hits, 1))
        precision.append(metrics.average_precision_at_r(hits, matches[block]))
    return float(np.concatenate(first).mean()), float(np.concatenate(precision).mean())


def _average(settings, scores) -> Scored:
    return Scored(settings, *(float(value) for value in np.mean(list(scores), axis=0)))


def _tell(progress, title: str, done: int, total: int) -> None:
    if progress:
        progress(title, done, total)


# ---- the report ----------------------------------------------------------------------------------------------------


def _report(settings, codes: np.ndarray, chosen: Chosen) -> dict:
    """What was learned from, what was chosen, and how it did in the rehearsals."""
    protocol = {
        "recipe": "relational",
        "items": len(codes),
        "classes": int(codes.max()) + 1,
        "classes_with_one_item": int((np.bincount(codes) == 1).sum()),
        "context": "exact neighbours among distinct items, ties by id, never the item itself",
        "score": f"rehearsals on training classes in {_FOLDS} folds, each mapped by what the others teach",
        "base_map": "none" if chosen.base == NO_MAP else _describe(chosen.base),
        "scorer": chosen.scorer,
        "neighbors": chosen.n_neighbors,
        "steps": int(settings.n_blocks_),
        "sharpness": chosen.sharpness,
        "blend": chosen.blend,
        "seed": int(settings.seed),
    }
    rehearsed = {}
    for name, scored in (("raw", chosen.raw), ("refined", chosen.best)):
        rehearsed |= {f"rehearsal_recall@1_{name}": scored.recall_at_1, f"rehearsal_map@r_{name}": scored.map_at_r}
    idle = chosen.blend == 1.0 and chosen.base == NO_MAP
    warning = "in the rehearsals nothing was better than the raw vectors: they are returned as they are"
    return {"protocol": protocol, "metrics": rehearsed, "warnings": [warning] if idle else []}


def _describe(base: tuple) -> str:
    shrinkage, steps = base
    whitening = [f"within-class whitening, shrinkage {shrinkage}"] if shrinkage < 1 else []
    return ", then ".join(whitening + ([f"head, {steps} steps"] if steps else []))
