"""Rehearsals: some training classes play the unseen ones.

The classes are dealt into folds; the classes of a fold are mapped by base maps learned from the other folds and
searched among themselves. A fold has fewer classes than the whole, and an encoder may know the training classes by
heart, so this alone would be too easy to tell good settings from bad. Each item is therefore moved away from the mean c
of its class, normalise(c + a (e - c)), with an a from 1 to 6 for which its 8 nearest are of its class about as often as
in the whole training set (and about 9 times in 10 at most). What is learned must also do in galleries that are sparser
than the training set, so the same classes are played again where every class has only a few items.

N items, d dimensions.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from entourage.evaluation import metrics
from entourage.neighbors import search, search_blocks
from entourage.refiner.gathering import gather_step
from entourage.refiner.network import RelationScorer, blended, build_graph, trust
from entourage.runtime.randomness import generator
from entourage.training.linear_maps import class_means, eigen, head_maps, inverse_roots, within_class_covariance
from entourage.training.sampling import usable_classes
from entourage.values import Embeddings, label_codes

__all__ = [  # noqa: RUF022
    "FOLDS",
    "NO_MAP",
    "Rehearsal",
    "SPARSE",
    "Stage",
    "Trial",
    "base_maps",
    "make_rehearsals",
    "mapped_by",
    "score",
    "sparse_stages",
]

FOLDS = 3
SPARSE = (2, 5, 12)  # items a class in sparse galleries
NO_MAP = (1.0, 0)  # no whitening and no head

_HARDEST = 0.9
_PURITY_OF = 8
_MOST_ITEMS = 8_000  # in all rehearsals together; more tell nothing new
_MOST_QUERIES = 1_000  # of each rehearsal


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


# ---- the classes that are played -----------------------------------------------------------------------------------


def make_rehearsals(
    items: Embeddings, codes: np.ndarray, seed: int, progress=None, *, folds: int = FOLDS
) -> list[Rehearsal]:
    """One for each fold of the classes; of many items some whole classes take part."""
    rng = generator(seed)
    classes = rng.permutation(usable_classes(codes))
    sizes = np.bincount(codes)[classes]
    classes = classes[: max(2 * folds, int((np.cumsum(sizes) <= _MOST_ITEMS).sum()))]
    known = np.flatnonzero(np.isin(codes, classes))
    if len(known) > 2 * _MOST_ITEMS:  # a few huge classes
        known = known[thinned(codes[known], max(2, _MOST_ITEMS // len(classes)), seed)]
    items = Embeddings(items.vectors[known], items.ids[known], codes[known])
    target = min(_purity(items), _HARDEST)
    rehearsals = []
    for fold in range(folds):
        played = np.isin(items.labels, classes[fold::folds])
        rehearsals.append(Rehearsal(_as_hard_as(items.take(played), target), items.take(~played)))
        if progress:
            progress("preparing rehearsals", fold + 1, folds)
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


def sparse_stages(rehearsal: Rehearsal, base: tuple, seed: int) -> list[Stage]:
    """The same classes among all others where every class has only a few items; nothing is asked about the others."""
    stage, taught = rehearsal.stage, rehearsal.taught
    labels = np.concatenate([stage.labels, taught.labels])
    items = Embeddings(np.concatenate([stage.vectors, taught.vectors]), np.concatenate([stage.ids, taught.ids]), labels)
    if base != NO_MAP:
        taught_codes = label_codes(taught.labels)
        items = mapped_by(items, base_maps(taught.vectors, taught_codes, [base], seed)[base])
    played = np.arange(len(items)) < len(stage)
    parts = []
    for size in SPARSE:
        rows = thinned(labels, size, seed)
        parts.append(Stage(items.take(rows), played[rows]))
    return parts


def thinned(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Rows of at most that many items of each class, in order."""
    order = generator(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    first = np.searchsorted(labels[order], labels[order])
    return np.sort(order[np.arange(len(labels)) - first < size])


# ---- base maps -----------------------------------------------------------------------------------------------------


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


def mapped_by(items: Embeddings, base: np.ndarray) -> Embeddings:
    return items.replace_vectors(F.normalize(torch.from_numpy(items.vectors @ base), dim=1).numpy())


# ---- trying --------------------------------------------------------------------------------------------------------


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
        weights = trust(scorer, self.graph) ** sharpness
        z = self.graph.items.vectors
        for _ in range(self.n_steps):
            z = gather_step(z, z, self.graph.found.rows, weights)
        x, z = self.stage.items, z[self.graph.stands_for]
        return lambda blend: Stage(x.replace_vectors(blended(x.vectors, z, blend)), self.stage.asked)


def score(stage: Stage) -> tuple[float, float]:
    """R@1 and MAP@R of the items asked about, among all; of an even choice of them where there are many."""
    items, codes = stage.items, label_codes(stage.items.labels)
    rows = np.flatnonzero(stage.asked)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(_MOST_QUERIES, len(rows))).astype(int))]
    matches = np.bincount(codes)[codes[rows]] - 1
    first, precision = [], []
    for block, found in search_blocks(items.take(rows), items, k=int(min(max(matches.max(), 1), len(items) - 1))):
        hits = metrics.Hits.from_ranking(codes[found.rows] == codes[rows[block], None])
        first.append(metrics.recall_at(hits, 1))
        precision.append(metrics.average_precision_at_r(hits, matches[block]))
    return float(np.concatenate(first).mean()), float(np.concatenate(precision).mean())
