"""Learning the relational recipe from labels: everything is chosen in rehearsals, on training classes alone.

In order, each with what was chosen before it: the base map (whitening by some shrinkage, then a head trained for some
steps, then the shrinkage again) with the universal scorer; how many neighbours to attend to, and by which scorer: the
universal one, one adapted to the edges of other rehearsals, or the similarity alone; how many steps to take, how
sharply to weigh neighbours and how much to keep of the item itself; the pull. What is chosen early is tried in two ways
that differ much, so that it need not suit the defaults of later choices.
Doing nothing is among the candidates, and so is what is done without labels. The best MAP@R + R@1 / 2 wins among those
whose R@1 is not below that of the raw vectors, and which in sparse galleries lose at most a point of MAP@R. What a user
protects must not fall either: where it does, larger blends are tried, which keep more of the item itself.
"""

import functools
from collections.abc import Callable, Sequence
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
from entourage.refiner.evaluator import (
    Evaluator,
    Galleries,
    adapted_scorer,
    mean_purity,
    refined_by,
    rehearsal_graphs,
    unlearned_scorer,
)
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.rehearsal import (
    CLASSES_TO_LEARN_FROM,
    Rehearsal,
    ValidationGallery,
    make_rehearsals,
    sparse_galleries,
)
from entourage.refiner.settings import LOSS_ALLOWED, LOSS_WITHOUT_LABELS, RefinerSettings
from entourage.refiner.universal import fit_universal, universal_network
from entourage.refiner.voting import Votes, rehearse_votes
from entourage.runtime.progress import Progress
from entourage.training.sampling import check_usable_classes, usable_classes
from entourage.values import Embeddings, label_codes, labels_of

__all__ = ["fit_relational"]

SHRINKAGES = (1.0, 0.8, 0.5, 0.3, 0.1, 0.03, 0.01, 0.003)  # 1 is no whitening
HEAD_STEPS = (0, 60, 150, 300)  # 0 is no head
SCORERS = ("universal", "adapted", "similarity")
CLASSES_TO_ADAPT = 12  # a scorer adapted to fewer knows these alone, while the rehearsals, as few, may praise it
NEIGHBORS = (12, 32, 64, 128, 256)  # each is tried by all scorers if the one before was the best so far
STEPS = (1, 2, 3, 5)  # more gain nothing for certain, and in uneven galleries bring small classes into large ones
SHARPNESS = (0.5, 1.0, 2.0, 4.0, 8.0)
BLENDS = (0.1, 0.2, 0.35, 0.5)
PULLS = (1.0, 0.0)
# Two ways to weigh, with which all else is chosen: few neighbours that are trusted, and many, hardly told apart.
FEW, MANY = (4.0, 0.35, 1.0), (1.0, 0.1, 0.0)  # sharpness, blend, pull
ALIKE = (2.0, 0.1, 0.0, 2)  # by the similarity alone, which brings all together if it is followed for long; 2 steps
MANY_NEIGHBORS = 48
IN_SPARSE = ((0.75, 0.5), (0.9, 0.2), (1.0, 0.0))  # blends and pulls for sparser galleries, besides the usual ones
CAREFUL_BLENDS = (0.7, 0.85)  # tried where a smaller one lowers what is protected


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
    codes = label_codes(labels_of(items))
    if len(usable_classes(codes)) < CLASSES_TO_LEARN_FROM:
        check_enough_to_protect(settings.protect, len(usable_classes(codes)))
        network, report, _ = fit_universal(settings, items, progress)
        report["warnings"].append("too few classes to rehearse with: the universal scorer is used as it is")
        votes = rehearse_votes(items, lambda _: network, settings)
        return network, _with_votes(report, votes), votes
    universal = universal_network(settings.n_neighbors)
    rehearsals = make_rehearsals(items, codes, settings.random_state, progress)
    check_reach(settings.protect, rehearsals)
    unmapped, chosen = _learn(settings, universal, rehearsals, progress)

    def mapped(teaching: Embeddings) -> RelationalNetwork:
        if chosen.base == NO_MAP:
            return unmapped
        codes = label_codes(labels_of(teaching))
        maps = learn_base_maps(teaching.vectors, codes, [chosen.base], settings.random_state)
        return replace(unmapped, base_map=maps[chosen.base])

    votes = rehearse_votes(items, mapped, replace(settings, n_steps=chosen.weighing.n_steps))
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
            for k, way in probes:
                graphs = rehearsal_graphs(galleries[candidate], k)
                refined = refined_by(graphs, [universal.scorer] * len(graphs), way[0])
                for each in _ways(settings, k, "universal", *way):
                    ended = [r(each.blend, each.pull, each.n_steps) for r in refined]
                    tried.append(scored(candidate, ended, settings))
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


def _ways(
    settings: RefinerSettings,
    k: int,
    scorer: str,
    sharpness: float,
    blend: float,
    pull: float,
    n_steps: int = RefinerSettings.n_steps,
) -> list[Weighing]:
    """A way to weigh, and with larger blends where something is protected; with the steps that were asked for."""
    n_steps = settings.n_steps if settings.steps_asked_for else n_steps
    blends = (blend, *_careful_blends(settings))
    return [Weighing(k, scorer, sharpness, each, pull, n_steps) for each in blends]


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
    # the base map without refinement
    alone = Weighing(universal.n_neighbors, "universal", sharpness=1.0, blend=1.0, n_steps=settings.n_steps)
    unrefined = scored(alone, dense, settings)
    floors = floors_of(settings, raw)
    choose = functools.partial(best_of, floors=floors)
    fallback = _fallback(settings, universal, sparse)
    candidates = [unrefined, *_weighings(settings, fallback, dense, sparse, choose, progress)]
    best = choose(candidates)
    unprotected = best_of([*candidates, *with_bases], {"recall@1": floors["recall@1"]})
    chosen = Chosen(base, best.settings, raw, best, unprotected)
    unlearned = _scored_universal(settings, universal, rehearsals)
    if best.map_at_r <= raw.map_at_r or not best.keeps(floors):
        best, chosen = raw, Chosen(NO_MAP, alone, raw, raw, unprotected)
    # Labels from which nothing is learned must not make it worse than no labels.
    allowed = LOSS_ALLOWED if best is not raw or settings.protect else LOSS_WITHOUT_LABELS
    if unlearned.keeps(floors, allowed) and unlearned.worth >= best.worth:
        return universal, Chosen(NO_MAP, unlearned.settings, raw, unlearned, unprotected)
    return _network(settings, fallback, chosen, dense, sparse, progress), chosen


def _fallback(settings: RefinerSettings, universal: RelationalNetwork, sparse: Galleries) -> RelationalNetwork:
    """What takes over in sparser galleries: the universal scorer, moving items as far as does best there."""
    graphs = rehearsal_graphs(sparse, universal.n_neighbors)
    refined = refined_by(graphs, [universal.scorer] * len(graphs), universal.sharpness)
    ways = [(universal.blend, universal.pull), *IN_SPARSE]
    tried = [scored(way, [each(*way, settings.n_steps) for each in refined], settings) for way in ways]
    blend, pull = max(tried, key=lambda each: each.worth).settings
    return replace(universal, blend=blend, pull=pull)


def _scored_universal(
    settings: RefinerSettings, universal: RelationalNetwork, rehearsals: list[Rehearsal]
) -> Scored[Weighing]:
    """How the universal network does, as it is used without labels."""
    _, k, sharpness, blend, pull = universal.manner()
    graphs = rehearsal_graphs([_all_queries(rehearsal.held_out) for rehearsal in rehearsals], k)
    refined = refined_by(graphs, [universal.scorer] * len(graphs), sharpness)
    galleries = [each(blend, pull, settings.n_steps) for each in refined]
    return scored(Weighing(k, "universal", sharpness, blend, pull, settings.n_steps), galleries, settings)


def _weighings(
    settings: RefinerSettings,
    fallback: RelationalNetwork,
    dense: Galleries,
    sparse: Galleries,
    choose: Callable[[list[Scored[Weighing]]], Scored[Weighing]],
    progress: Progress | None,
) -> list[Scored[Weighing]]:
    """Ways to weigh that do no harm in sparse galleries.

    First neighbours and scorers, with few and many neighbours weighed; then steps, sharpness, blend and pull, each with
    the best so far.
    """
    neighbors = NEIGHBORS if settings.n_neighbors is None else (int(settings.n_neighbors),)
    blends = BLENDS + _careful_blends(settings)
    evaluators: list[Evaluator] = []
    enough = len({label for gallery in dense for label in labels_of(gallery.items)}) >= CLASSES_TO_ADAPT
    scorers = tuple(name for name in SCORERS if enough or name != "adapted")
    for number, k in enumerate(neighbors):
        best = _best(evaluators, choose)
        if number and k == NEIGHBORS[-1] and best and best.settings.n_neighbors != neighbors[number - 1]:
            _show(progress, "choosing neighbours and scorer", len(neighbors), len(neighbors))
            break  # as long as that is worth its time only where nothing shorter is enough
        evaluators.append(Evaluator(settings, fallback, k, dense, sparse))
        for name in scorers:
            for way in (FEW, ALIKE if name == "similarity" else MANY):
                for each in _ways(settings, k, name, *way):
                    evaluators[-1].scores(each)
        _show(progress, "choosing neighbours and scorer", number + 1, len(neighbors))
        best = _best(evaluators, choose)
        if best and best.settings.n_neighbors != k:
            scorers = ("similarity",)  # the others take long to try, and have been at their best
    best = _best(evaluators, choose)
    chosen = best.settings if best else _ways(settings, evaluators[0].k, "universal", *FEW)[0]
    evaluator = next(each for each in evaluators if each.k == chosen.n_neighbors)
    steps = (settings.n_steps,) if settings.steps_asked_for else STEPS
    stages: dict[str, Sequence[Any]] = {"n_steps": steps, "sharpness": SHARPNESS, "blend": blends, "pull": PULLS}
    for number, (name, values) in enumerate(stages.items()):
        for value in values:
            evaluator.scores(chosen._replace(**{name: value}))
        best = _best([evaluator], choose)
        chosen = best.settings if best else chosen
        _show(progress, "choosing how to weigh", number + 1, len(stages))
    return [each for evaluator in evaluators for each in evaluator.harmless]


def _best(
    evaluators: "list[Evaluator]", choose: Callable[[list[Scored[Weighing]]], Scored[Weighing]]
) -> Scored[Weighing] | None:
    harmless = [each for evaluator in evaluators for each in evaluator.harmless]
    return choose(harmless) if harmless else None


def _network(
    settings: RefinerSettings,
    fallback: RelationalNetwork,
    chosen: Chosen,
    dense: Galleries,
    sparse: Galleries,
    progress: Progress | None,
) -> RelationalNetwork:
    """The network as chosen, still without its base map; an adapted scorer learns from all rehearsals."""
    k, scorer, sharpness, blend, pull, _ = chosen.weighing
    network = RelationalNetwork(
        unlearned_scorer(scorer, fallback), n_neighbors=k, sharpness=sharpness, blend=blend, pull=pull
    )
    if blend == 1:
        return network
    graphs = rehearsal_graphs(dense, k)
    network = replace(network, fallback=fallback, usual_purity=mean_purity(fallback, graphs))
    if scorer != "adapted":
        return network
    adapted = adapted_scorer(fallback.scorer, graphs, rehearsal_graphs(sparse, k), settings.random_state, progress)
    return replace(network, scorer=adapted)


def _show(progress: Progress | None, title: str, done: int, total: int) -> None:
    if progress:
        progress(title, done, total)
