"""Rehearsals: some training classes are held out and stand in for the unseen ones.

The classes are dealt into folds; the classes of a fold are mapped by base maps learned from the other folds and
searched among themselves. A fold has fewer classes than the whole, and an encoder may know the training classes by
heart, so this alone would be too easy to tell good settings from bad. Each item is therefore moved away from the mean c
of its class, normalise(c + a (e - c)), with an a from 1 to 6 for which its 8 nearest are of its class about as often as
in the whole training set (and about 9 times in 10 at most). What is learned must also do in galleries that are sparser
than the training set, so the same classes are tried again where every class has only a few items.

N items, d dimensions.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from entourage.evaluation.hits import Hits
from entourage.evaluation.names import depth_for, measured
from entourage.neighbors import search, search_blocks
from entourage.refiner.base_map import NO_MAP, apply_base_map, learn_base_maps
from entourage.refiner.context import WeightedGraph
from entourage.refiner.graph import Graph, build_graph
from entourage.refiner.scorer import Scorer
from entourage.refiner.settings import PURITY_OF
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.training.linear_maps import class_means
from entourage.training.sampling import usable_classes
from entourage.values import BoolArray, Embeddings, FloatArray, IntArray, LabelArray, label_codes, labels_of

__all__ = [
    "CLASSES_TO_LEARN_FROM",
    "FOLDS",
    "SPARSE",
    "Refined",
    "Rehearsal",
    "RehearsalGraph",
    "ValidationGallery",
    "make_rehearsals",
    "score",
    "sparse_galleries",
]

FOLDS = 2  # as many classes to learn from as in the gallery
CLASSES_TO_LEARN_FROM = 2 * FOLDS  # two in each fold, to be told apart
SPARSE = (2, 5, 12)  # items a class in sparse galleries

_HARDEST = 0.9
_MOST_ITEMS = 8_000  # in all rehearsals together; more tell nothing new
_FEWEST_CLASSES = 24  # if there are so many; of large ones, some items take part
_MOST_QUERIES = 1_000  # of each rehearsal


@dataclass(frozen=True, eq=False)
class ValidationGallery:
    """A gallery on which candidates are scored, and which of its items are queries."""

    items: Embeddings
    is_query: BoolArray
    """(N,) bool, whether each item is a query."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A fold of the training classes in the role of unseen ones."""

    held_out: Embeddings
    """The items of this fold, made as hard as the whole."""
    training: Embeddings
    """The items of the other folds."""


# ---- the classes that are held out ---------------------------------------------------------------------------------


def make_rehearsals(
    items: Embeddings, codes: IntArray, seed: int, progress: Progress | None = None, *, folds: int = FOLDS
) -> list[Rehearsal]:
    """Deal the training classes into folds.

    Parameters
    ----------
    items : Embeddings
        N training items; of very many, some whole classes take part, or some items of each where classes are few.
    codes : ndarray of shape (N,)
        Their classes, 0..C-1.
    seed : int
        Decides which class goes where.
    progress : callable, optional
        Called as progress(title, done, total).
    folds : int
        How many.

    Returns
    -------
    list of Rehearsal
        One for each fold.
    """
    rng = generator(seed)
    classes = rng.permutation(usable_classes(codes))
    sizes = np.bincount(codes)[classes]
    classes = classes[: max(_FEWEST_CLASSES, int((np.cumsum(sizes) <= _MOST_ITEMS).sum()))]
    known = np.flatnonzero(np.isin(codes, classes))
    if len(known) > _MOST_ITEMS:  # a few huge classes
        known = known[thinned(codes[known], max(2, _MOST_ITEMS // len(classes)), seed)]
    items = Embeddings(items.vectors[known], items.ids[known], codes[known])
    target = min(_purity(items), _HARDEST)
    rehearsals = []
    for fold in range(folds):
        held_out = np.isin(labels_of(items), classes[fold::folds])
        rehearsals.append(Rehearsal(_as_hard_as(items.take(held_out), target), items.take(~held_out)))
        if progress:
            progress("preparing rehearsals", fold + 1, folds)
    return rehearsals


def _purity(items: Embeddings) -> float:
    """How often the nearest 8 are of an item's class, out of what is possible."""
    found = search(items, k=min(PURITY_OF, len(items) - 1))
    codes = label_codes(labels_of(items))
    possible = np.minimum(np.bincount(codes)[codes] - 1, found.k)
    hits = (codes[found.rows] == codes[:, None]).sum(axis=1)
    return float(np.minimum(hits / np.maximum(possible, 1), 1)[possible > 0].mean())


def _as_hard_as(items: Embeddings, purity: float) -> Embeddings:
    """The items moved away from their class means until they are no purer than that; by bisection."""
    if _purity(items) <= purity:
        return items
    codes = label_codes(labels_of(items))
    centres = class_means(items.vectors, codes)[0][codes].astype(np.float32)

    def moved(factor: float) -> Embeddings:
        vectors = centres + np.float32(factor) * (items.vectors - centres)
        return items.replace_vectors(Embeddings.from_vectors(vectors).vectors)

    low, high = 1.0, 6.0
    for _ in range(5):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _purity(moved(middle)) > purity else (low, middle)
    return moved((low * high) ** 0.5)


def sparse_galleries(rehearsal: Rehearsal, base: tuple[float, int], seed: int) -> list[ValidationGallery]:
    """The held-out classes among all others where every class has only a few items; only held-out ones are queries.

    Parameters
    ----------
    rehearsal : Rehearsal
    base : (shrinkage, steps)
        Which base map is learned from the training classes and applied.
    seed : int
        Decides which items stay.

    Returns
    -------
    list of ValidationGallery
        One for each number of items in SPARSE.
    """
    held_out, training = rehearsal.held_out, rehearsal.training
    labels, ids, vectors = (
        np.concatenate([getattr(part, name) for part in (held_out, training)]) for name in ("labels", "ids", "vectors")
    )
    items = Embeddings(vectors, ids, labels)
    if base != NO_MAP:
        maps = learn_base_maps(training.vectors, label_codes(labels_of(training)), [base], seed)
        items = apply_base_map(items, maps[base])
    is_query = np.arange(len(items)) < len(held_out)
    galleries = []
    for size in SPARSE:
        rows = thinned(labels, size, seed)
        galleries.append(ValidationGallery(items.take(rows), is_query[rows]))
    return galleries


def thinned(labels: LabelArray, size: int, seed: int) -> IntArray:
    """Return the rows of at most that many items of each class, in order."""
    order = generator(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    first = np.searchsorted(labels[order], labels[order])
    return np.sort(order[np.arange(len(labels)) - first < size])


# ---- candidates ----------------------------------------------------------------------------------------------------


Refined = Callable[[float, float, int], ValidationGallery]
"""A refined gallery as a function of the blend, the pull and the number of steps."""


@dataclass(frozen=True, eq=False)
class RehearsalGraph:
    """A validation gallery with its neighbourhood graph, on which scorers learn and settings are tried."""

    gallery: ValidationGallery
    graph: Graph

    @classmethod
    def build(cls, gallery: ValidationGallery, n_neighbors: int) -> "RehearsalGraph":
        """Search a gallery for its graph with so many neighbours."""
        return cls(gallery, build_graph(gallery.items, n_neighbors))

    def edges(self) -> tuple[FloatArray, BoolArray]:
        """Relations (E, 22) of the edges that start at queries, and whether both ends are of one class (E,)."""
        graph = self.graph
        is_query = np.zeros(len(graph.items), bool)
        is_query[graph.stands_for[self.gallery.is_query]] = True
        labels, rows = labels_of(graph.items), graph.neighbors.rows[is_query]
        relations = graph.relations[is_query]
        return relations.reshape(-1, relations.shape[-1]), (labels[rows] == labels[is_query][:, None]).ravel()

    def refined(self, scorer: Scorer, sharpness: float) -> Refined:
        """The refined gallery as a function of the blend, the pull and the number of steps."""
        weighted = WeightedGraph(self.graph, scorer, sharpness, blend=0.0)
        context, x = weighted.context_of_gallery(), self.gallery.items

        @functools.cache
        def nodes(n_steps: int) -> FloatArray:
            *_, last = weighted.steps(n_steps)
            return last

        def refined(blend: float, pull: float, n_steps: int) -> ValidationGallery:
            vectors = context.refined(x, context.outside, nodes(n_steps), blend=blend, pull=pull)
            return ValidationGallery(x.replace_vectors(vectors), self.gallery.is_query)

        return refined


def score(gallery: ValidationGallery, names: Sequence[str]) -> dict[str, float]:
    """Score the queries among all items by the named metrics; where there are many, an even selection of queries."""
    items, codes = gallery.items, label_codes(labels_of(gallery.items))
    rows = np.flatnonzero(gallery.is_query)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(_MOST_QUERIES, len(rows))).astype(int))]
    matches = np.bincount(codes)[codes[rows]] - 1
    depth = depth_for(names, most_matches=int(matches.max()), longest=len(items) - 1)
    values: dict[str, list[FloatArray]] = {name: [] for name in names}
    for block, found in search_blocks(items.take(rows), items, k=depth):
        hits = Hits.from_ranking(codes[found.rows] == codes[rows[block], None])
        for name in names:
            values[name].append(measured(name, hits, matches[block]))
    return {name: float(np.concatenate(parts).mean()) for name, parts in values.items()}
