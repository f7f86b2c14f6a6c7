"""Scores of methods in the rehearsals of some training items, with the work that methods share done once."""

from functools import cached_property

import numpy as np

from entourage.baselines import BaseMap, Chain, LinearHead, Method, Raw, with_random_state
from entourage.evaluation import evaluate_ranking
from entourage.refiner.base_map import learn_base_maps
from entourage.refiner.rehearsal import FOLDS, Rehearsal, make_rehearsals
from entourage.training.linear_maps import head_maps_by_epoch
from entourage.training.sampling import usable_classes
from entourage.values import Embeddings, label_codes, labels_of

__all__ = ["BASE_SHRINKAGES", "BASE_STEPS", "LEAST_CLASSES", "LONGEST_TRAINING", "Validation"]

LEAST_CLASSES = 4  # two folds of two classes
LONGEST_TRAINING = 18  # epochs of a linear head
# Base maps that are learned together: by one eigen-decomposition, and one training of a head for each shrinkage.
BASE_SHRINKAGES = (0.02, 0.1, 0.3, 0.5, 0.8, 1.0)
BASE_STEPS = (0, 60, 150, 300)


class Validation:
    """Scores methods in the rehearsals of some training items.

    Parameters
    ----------
    training : Embeddings of shape (N, d)
        With labels.
    seed : int
        Decides the classes held out and whatever is drawn in training.
    """

    def __init__(self, training: Embeddings, seed: int) -> None:
        codes = label_codes(labels_of(training))
        n_classes = len(usable_classes(codes))
        self.is_possible = n_classes >= LEAST_CLASSES
        folds = min(FOLDS, n_classes // 2)
        rehearsals = make_rehearsals(training, codes, seed, folds=folds) if self.is_possible else []
        self._folds = [_Fold(rehearsal, seed) for rehearsal in rehearsals]

    @cached_property
    def raw_recall(self) -> float:
        """R@1 of the raw vectors."""
        return self.scores(Raw())[0]

    def scores(self, method: Method) -> tuple[float, float]:
        """Mean R@1 and MAP@R of a method on the held-out classes of all folds."""
        recall, precision = np.mean([fold.scores(method) for fold in self._folds], axis=0)
        return float(recall), float(precision)


class _Fold:
    """Fits methods on the training classes of a rehearsal and scores them on the held-out ones.

    What trials share is computed once: the first part of a chain while it stays the same, one training for linear
    heads that differ in their epochs or steps, and one eigen-decomposition for base maps.
    """

    def __init__(self, rehearsal: Rehearsal, seed: int) -> None:
        self.seed, self._sides = seed, (rehearsal.training, rehearsal.held_out)
        self._last_applied: tuple[object, tuple[Embeddings, Embeddings]] = None, self._sides
        self._heads: dict[float, dict[int, np.ndarray]] = {}
        self._base_maps: dict[tuple[float, int], np.ndarray] = {}

    def scores(self, method: Method) -> tuple[float, float]:
        """Mean R@1 and MAP@R of a method on the held-out classes."""
        (seen, unseen), last = self._sides, method
        if isinstance(method, Chain):
            (seen, unseen), last = self._applied(method.first), method.second
        values = evaluate_ranking(unseen, self._fitted(last, seen).rank)
        return float(values["recall@1"].mean()), float(values["map@r"].mean())

    def _applied(self, first: Method) -> tuple[Embeddings, Embeddings]:
        """Training and held-out items, transformed by the first part of a chain."""
        known = type(first), repr(first)
        if known != self._last_applied[0]:
            fitted, (seen, unseen) = self._fitted(first, self._sides[0]), self._sides
            self._last_applied = known, (fitted.transform(seen), fitted.transform(unseen))
        return self._last_applied[1]

    def _fitted(self, method: Method, seen: Embeddings) -> Method:
        method = with_random_state(method, self.seed)
        if seen is self._sides[0] and isinstance(method, LinearHead):
            return method.fit_to(self._head(method.learning_rate, method.epochs))
        if seen is self._sides[0] and isinstance(method, BaseMap):
            return method.fit_to(self._maps_with(*method.settings))
        return method.fit(seen)

    def _head(self, rate: float, epochs: int) -> np.ndarray:
        if epochs not in self._heads.get(rate, {}):
            wanted = range(1 + max(epochs, LONGEST_TRAINING))
            heads = head_maps_by_epoch(*self._learned_from(), wanted, learning_rate=rate, seed=self.seed)
            self._heads = {rate: heads}  # of the last rate alone: they are large
        return self._heads[rate][epochs]

    def _maps_with(self, shrinkage: float, steps: int) -> dict[tuple[float, int], np.ndarray]:
        """Base maps, with the one asked for among them."""
        if (shrinkage, steps) not in self._base_maps:
            heads, whitenings = {*BASE_STEPS, steps}, {*BASE_SHRINKAGES, shrinkage}
            together = [(shrinkage, each) for each in heads] if steps else [(each, 0) for each in whitenings]
            self._base_maps |= learn_base_maps(*self._learned_from(), together, self.seed)
        return self._base_maps

    def _learned_from(self) -> tuple[np.ndarray, np.ndarray]:
        seen = self._sides[0]
        return seen.vectors, label_codes(labels_of(seen))
