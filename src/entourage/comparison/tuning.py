"""The settings of a method, chosen in rehearsals: on training classes that the method was not fitted on.

Test classes have no part in this. The rehearsals are those in which the relational refiner chooses its own settings: in
each of three folds a method is fitted on the other classes and scored on these, made as hard as the whole training set
and searched among themselves as the test classes will be. All methods are tuned by this one protocol.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.baselines import Chain, LinearHead, Method, Raw, with_random_state
from entourage.evaluation import evaluate_ranking
from entourage.refiner.rehearsal import FOLDS, Rehearsal, make_rehearsals
from entourage.training.linear_maps import head_maps_by_epoch
from entourage.training.sampling import usable_classes
from entourage.values import Embeddings, label_codes, labels_of

__all__ = ["LEAST_CLASSES", "Choice", "Trial", "Validation", "best_trial", "choose_settings"]

LEAST_CLASSES = 4  # two folds of two classes; three folds from six on
RECALL_LOSS_ALLOWED = 0.002
LONGEST_TRAINING = 18  # epochs of a linear head


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and what they scored on the held-out classes."""

    settings: dict[str, Any]
    recall_at_1: float
    map_at_r: float


@dataclass(frozen=True)
class Choice:
    """The settings chosen, and all that were tried; none where there was nothing to choose, or too few classes."""

    settings: dict[str, Any]
    trials: tuple[Trial, ...] = ()


def choose_settings(
    build: Callable[..., Method], stages: Sequence[Sequence[dict[str, Any]]], training: Embeddings, *, seed: int = 0
) -> Choice:
    """Choose the best settings of a method, stage by stage: each tries its changes on the best settings so far.

    Best is the highest MAP@R without a worse R@1 than the raw vectors; see `best_trial`.

    Parameters
    ----------
    build : callable
        build(**settings) gives the method, unfitted.
    stages : lists of changes
        Settings to try, stage by stage.
    training : Embeddings of shape (N, d)
        With labels.
    seed : int
        Decides the classes held out and whatever is drawn in training.

    Returns
    -------
    Choice
        Empty where fewer than four training classes have two items or more: then build's own defaults stay.

    >>> training = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(24, 4)), labels=np.arange(24) % 6)
    >>> from entourage.baselines import QueryExpansion
    >>> choice = choose_settings(QueryExpansion, [[{"k": 1}, {"k": 2}], [{"alpha": 0}]], training)
    >>> [trial.settings for trial in choice.trials[:2]], choice.trials[2].settings["alpha"]
    ([{'k': 1}, {'k': 2}], 0)
    """
    if not stages or not (validation := Validation(training, seed)).is_possible:
        return Choice({})
    raw_recall, _ = validation.scores(Raw())
    settings: dict[str, Any] = {}
    trials: list[Trial] = []
    for stage in stages:
        for change in stage:
            candidate = settings | change
            trials.append(Trial(candidate, *validation.scores(build(**candidate))))
        settings = best_trial(trials, raw_recall).settings
    return Choice(settings, tuple(trials))


def best_trial(trials: Sequence[Trial], raw_recall: float) -> Trial:
    """Choose the highest MAP@R among trials that lose at most 0.2 points of R@1 to raw; if all lose more, the best R@1.

    Parameters
    ----------
    trials : sequence of Trial
        At least one; ties go to the first.
    raw_recall : float
        R@1 of the raw vectors on the same classes.

    Returns
    -------
    Trial

    >>> trials = [Trial({"k": 4}, 0.90, 0.50), Trial({"k": 8}, 0.80, 0.60)]
    >>> best_trial(trials, raw_recall=0.90).settings, best_trial(trials, raw_recall=0.80).settings
    ({'k': 4}, {'k': 8})
    """
    harmless = [trial for trial in trials if trial.recall_at_1 >= raw_recall - RECALL_LOSS_ALLOWED]
    if harmless:
        return max(harmless, key=lambda trial: trial.map_at_r)
    return max(trials, key=lambda trial: trial.recall_at_1)


class Validation:
    """Scores methods in the rehearsals of some training items."""

    def __init__(self, training: Embeddings, seed: int) -> None:
        codes = label_codes(labels_of(training))
        n_classes = len(usable_classes(codes))
        self.is_possible = n_classes >= LEAST_CLASSES
        folds = min(FOLDS, n_classes // 2)
        rehearsals = make_rehearsals(training, codes, seed, folds=folds) if self.is_possible else []
        self._folds = [_Fold(rehearsal, seed) for rehearsal in rehearsals]

    def scores(self, method: Method) -> tuple[float, float]:
        """Mean R@1 and MAP@R of a method on the held-out classes of all folds."""
        recall, precision = np.mean([fold.scores(method) for fold in self._folds], axis=0)
        return float(recall), float(precision)


class _Fold:
    """Fits methods on the training classes of a rehearsal and scores them on the held-out ones.

    What trials share is computed once: the first part of a chain while it stays the same, and one training for linear
    heads that differ in their epochs.
    """

    def __init__(self, rehearsal: Rehearsal, seed: int) -> None:
        self.seed, self._sides = seed, (rehearsal.training, rehearsal.held_out)
        self._last_applied = "", self._sides
        self._heads: dict[float, dict[int, np.ndarray]] = {}

    def scores(self, method: Method) -> tuple[float, float]:
        """Mean R@1 and MAP@R of a method on the held-out classes."""
        (seen, unseen), last = self._sides, method
        if isinstance(method, Chain):
            (seen, unseen), last = self._applied(method.first), method.second
        values = evaluate_ranking(unseen, self._fitted(last, seen).rank)
        return float(values["recall@1"].mean()), float(values["map@r"].mean())

    def _applied(self, first: Method) -> tuple[Embeddings, Embeddings]:
        """Training and held-out items, transformed by the first part of a chain."""
        if repr(first) != self._last_applied[0]:
            fitted = self._fitted(first, self._sides[0])
            self._last_applied = repr(first), tuple(map(fitted.transform, self._sides))
        return self._last_applied[1]

    def _fitted(self, method: Method, seen: Embeddings) -> Method:
        method = with_random_state(method, self.seed)
        if not isinstance(method, LinearHead) or seen is not self._sides[0]:
            return method.fit(seen)
        rate = method.learning_rate
        if method.epochs not in self._heads.get(rate, {}):
            epochs = range(1 + max(method.epochs, LONGEST_TRAINING))
            codes = label_codes(labels_of(seen))
            self._heads[rate] = head_maps_by_epoch(seen.vectors, codes, epochs, learning_rate=rate, seed=self.seed)
        return method.fit_to(self._heads[rate][method.epochs])
