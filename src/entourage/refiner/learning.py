"""Learning the relational recipe from labels: everything is chosen in rehearsals, on training classes alone.

In order, each with what was chosen before it: the base map (whitening by some shrinkage, then a head trained for some
steps, then the shrinkage again) with the universal scorer; how many neighbours to look at, with the universal scorer or
one adapted to the edges of other rehearsals; how sharply to weigh them and how much to keep of the item itself. Doing
nothing is among the candidates. The best MAP@R wins among those whose R@1 is not below that of doing nothing, and which
in sparse galleries lose at most a point of MAP@R. That makes 22 settings at most.
"""

import copy
import functools
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from entourage.refiner.network import RelationalNetwork, RelationScorer, build_graph, estimated_purity, fit_scorer
from entourage.refiner.rehearsal import (
    FOLDS,
    NO_MAP,
    SPARSE,
    Rehearsal,
    Stage,
    Trial,
    base_maps,
    make_rehearsals,
    mapped_by,
    score,
    sparse_stages,
)
from entourage.refiner.relations import RELATIONS
from entourage.refiner.universal import fit_universal, universal_network
from entourage.training.sampling import check_usable_classes, usable_classes
from entourage.values import Embeddings, label_codes

__all__ = ["Scored", "best_of", "fit_relational"]

SHRINKAGES = (1.0, 0.8, 0.5, 0.3)  # 1 is no whitening
HEAD_STEPS = (0, 60, 150, 300)  # 0 is no head
NEIGHBORS = (12, 32)
SHARPNESS = (2.0, 4.0, 8.0)
BLENDS = (0.1, 0.2, 0.35)

_SCORER_EPOCHS = 4
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


def fit_relational(settings, items: Embeddings, *, progress=None) -> tuple[RelationalNetwork, dict]:
    """Learn from labelled items by the settings of a ContextRefiner; (network, report)."""
    check_usable_classes(items.labels)
    universal = universal_network(settings.n_neighbors)
    codes = label_codes(items.labels)
    if len(usable_classes(codes)) < 2 * FOLDS:
        network, report, _ = fit_universal(settings, items, progress=progress)
        report["warnings"].append("too few classes to rehearse with: the universal scorer is used as it is")
        return network, report
    rehearsals = make_rehearsals(items, codes, settings.random_state, progress)
    network, chosen = _learn(settings, universal, rehearsals, progress)
    if chosen.base != NO_MAP:
        network.base = torch.from_numpy(
            base_maps(items.vectors, codes, [chosen.base], settings.random_state)[chosen.base]
        )
    return network, _report(settings, codes, chosen)


# ---- the base map --------------------------------------------------------------------------------------------------


def _choose_base(settings, universal: RelationalNetwork, rehearsals: list[Rehearsal], progress) -> tuple:
    """(the base map that the universal network refines best, its stages, how the raw vectors did)."""
    stages = {NO_MAP: [Stage(rehearsal.stage, np.ones(len(rehearsal.stage), bool)) for rehearsal in rehearsals]}
    raw = _average("raw", map(score, stages[NO_MAP]))
    tried, best = {}, NO_MAP
    rounds = (
        lambda: [(shrinkage, 0) for shrinkage in SHRINKAGES],
        lambda: [(best[0], steps) for steps in HEAD_STEPS],
        lambda: [(shrinkage, best[1]) for shrinkage in SHRINKAGES],
    )
    for number, candidates in enumerate(rounds):
        new = [candidate for candidate in candidates() if candidate not in tried]
        stages |= _mapped_stages(
            rehearsals, [candidate for candidate in new if candidate != NO_MAP], settings.random_state
        )
        for candidate in new:
            trials = [Trial(stage, int(universal.n_neighbors), settings.n_steps) for stage in stages[candidate]]
            refined = _refined(trials, [universal.scorer] * len(trials), float(universal.sharpness))
            tried[candidate] = _average(candidate, [score(r(float(universal.blend))) for r in refined])
        best = best_of(list(tried.values()), raw).settings
        stages = {best: stages[best]}
        _tell(progress, "choosing a base map", number + 1, len(rounds))
    return best, stages[best], raw


def _mapped_stages(rehearsals: list[Rehearsal], candidates: list[tuple], seed: int) -> dict[tuple, list[Stage]]:
    """The stage of every rehearsal under every candidate for the base map, learned from the taught classes."""
    mapped = {candidate: [] for candidate in candidates}
    for rehearsal in rehearsals if candidates else ():
        stage, taught = rehearsal.stage, rehearsal.taught
        for candidate, base in base_maps(taught.vectors, label_codes(taught.labels), candidates, seed).items():
            mapped[candidate].append(Stage(mapped_by(stage, base), np.ones(len(stage), bool)))
    return mapped


# ---- how to weigh --------------------------------------------------------------------------------------------------


def _learn(settings, universal: RelationalNetwork, rehearsals: list[Rehearsal], progress) -> tuple:
    """(network without its base map, what was chosen and how it did)."""
    base, dense, raw = _choose_base(settings, universal, rehearsals, progress)
    sparse = [stage for rehearsal in rehearsals for stage in sparse_stages(rehearsal, base, settings.random_state)]
    alone = (int(universal.n_neighbors), "universal", 1.0, 1.0)  # the base map without refinement
    unrefined = _average(alone, map(score, dense))
    nothing = max(raw, unrefined, key=lambda scored: scored.recall_at_1)
    best = _choose_weighing(settings, universal, dense, sparse, unrefined, nothing, progress)
    chosen = Chosen(base, *best.settings, raw, best)
    if best.map_at_r <= raw.map_at_r or best.recall_at_1 < raw.recall_at_1 - _SLACK:
        chosen = Chosen(NO_MAP, *alone, raw, raw)
    return _network(settings, universal, chosen, dense, sparse, progress), chosen


def _choose_weighing(settings, universal, dense, sparse, unrefined: Scored, nothing: Scored, progress) -> Scored:
    """First the neighbours and the scorer, with the middle of the other settings; then those, with what was chosen."""
    neighbors = NEIGHBORS if settings.n_neighbors is None else (int(settings.n_neighbors),)
    middle = (SHARPNESS[len(SHARPNESS) // 2], BLENDS[len(BLENDS) // 2])
    unrefined_sparse = _average("base map alone", map(score, sparse))
    views = [_View(settings, universal, k, dense, sparse) for k in neighbors]
    harmless, done = {}, 0
    for view in views:
        for name in ("universal", "adapted"):
            scored, in_sparse = view.scores(name, *middle)
            if in_sparse.no_worse_than(unrefined_sparse):
                harmless[scored] = view
            done += 1
            _tell(progress, "choosing neighbours and scorer", done, 2 * len(views))
    first = best_of(list(harmless), nothing) if harmless else None
    view, name = (harmless[first], first.settings[1]) if first else (views[0], "universal")
    candidates = [unrefined, *harmless]
    for number, (sharpness, blend) in enumerate(product(SHARPNESS, BLENDS)):
        if (sharpness, blend) != middle:
            scored, in_sparse = view.scores(name, sharpness, blend)
            candidates += [scored] if in_sparse.no_worse_than(unrefined_sparse) else []
        _tell(progress, "choosing how to weigh", number + 1, len(SHARPNESS) * len(BLENDS))
    return best_of(candidates, nothing)


class _View:
    """The rehearsals as seen with k neighbours: ways to weigh are scored in the dense galleries and the sparse ones."""

    def __init__(self, settings, universal: RelationalNetwork, k: int, dense: list[Stage], sparse: list[Stage]):
        self.k, self.settings, self.universal = k, settings, universal.scorer
        self.dense, self.sparse = ([Trial(stage, k, settings.n_steps) for stage in part] for part in (dense, sparse))
        self._refined = functools.lru_cache(maxsize=1)(self._refine)
        self._scorers = functools.cache(self._make_scorers)

    def scores(self, name: str, sharpness: float, blend: float) -> tuple[Scored, Scored]:
        chosen = (self.k, name, sharpness, blend)
        return tuple(_average(chosen, [score(r(blend)) for r in part]) for part in self._refined(name, sharpness))

    def _refine(self, name: str, sharpness: float) -> tuple[list, list]:
        scorers = self._scorers(name)
        return (
            _refined(self.dense, scorers, sharpness),
            _refined(self.sparse, np.repeat(scorers, len(SPARSE)), sharpness),
        )

    def _make_scorers(self, name: str) -> list[RelationScorer]:
        """One for each rehearsal, which has no part in it."""
        if name == "universal":
            return [self.universal] * len(self.dense)
        others = _all_but_one(self.dense, self.sparse)
        return [_adapted(self.universal, *trials, self.settings.random_state) for trials in others]


def _network(settings, universal: RelationalNetwork, chosen: Chosen, dense, sparse, progress) -> RelationalNetwork:
    """The network as chosen, still without its base map; an adapted scorer learns from all rehearsals."""
    scorer, caution = universal.scorer, {}
    if chosen.scorer == "adapted":
        trials, sparse_trials = (
            [Trial(stage, chosen.n_neighbors, settings.n_steps) for stage in part] for part in (dense, sparse)
        )
        scorer = _adapted(scorer, trials, sparse_trials, settings.random_state, progress)
        k = int(universal.n_neighbors)
        purity = [estimated_purity(universal.scorer, build_graph(stage.items, k), k) for stage in dense]
        caution = {"cautious": universal, "usual_purity": float(np.mean(purity))}
    return RelationalNetwork(
        scorer, n_neighbors=chosen.n_neighbors, sharpness=chosen.sharpness, blend=chosen.blend, **caution
    )


def best_of(candidates: list[Scored], nothing: Scored) -> Scored:
    """The highest MAP@R among those whose R@1 has not fallen below that of doing nothing, else the highest R@1."""
    safe = [scored for scored in candidates if scored.recall_at_1 >= nothing.recall_at_1 - _SLACK]
    return max(safe, key=lambda s: s.map_at_r) if safe else max(candidates, key=lambda s: s.recall_at_1)


def _all_but_one(trials: list, sparse_trials: list) -> list[tuple[list, list]]:
    """For each rehearsal the trials of the others."""
    n = len(SPARSE)
    return [
        (trials[:fold] + trials[fold + 1 :], sparse_trials[: fold * n] + sparse_trials[(fold + 1) * n :])
        for fold in range(len(trials))
    ]


def _refined(trials: list, scorers, sharpness: float) -> list:
    return [trial.refined(scorer, sharpness) for trial, scorer in zip(trials, scorers, strict=True)]


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
    if len(relations) and (fill or len(relations) > most):
        drawn = rng.choice(len(relations), most, replace=len(relations) < most)
        relations, same_class = relations[drawn], same_class[drawn]
    return relations, same_class


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
        "score": f"rehearsals on training classes in {FOLDS} folds, each mapped by what the others teach",
        "base_map": "none" if chosen.base == NO_MAP else _describe(chosen.base),
        "scorer": chosen.scorer,
        "neighbors": chosen.n_neighbors,
        "steps": int(settings.n_steps),
        "sharpness": chosen.sharpness,
        "blend": chosen.blend,
        "seed": int(settings.random_state),
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
