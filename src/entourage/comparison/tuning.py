"""The settings of a method, chosen in rehearsals: on training classes that the method was not fitted on.

Test classes have no part in this. The rehearsals are those in which the relational refiner chooses its own settings: in
each of two folds a method is fitted on the other classes and scored on these, made as hard as the whole training set
and searched among themselves as the test classes will be. All methods are tuned by this one protocol.

No method is held back by its range: where the value chosen is the first or last that was tried, the next is tried too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entourage.baselines import Method
from entourage.comparison.validation import Validation
from entourage.refiner.settings import LOSS_ALLOWED

__all__ = ["MOST_BEYOND", "Choice", "Trial", "best_trial", "choose_settings"]

MOST_BEYOND = 32  # settings tried beyond the ranges of a method: with these, as many as `relational` tries


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
    extended: tuple[str, ...] = ()
    """Settings whose range was extended, as its end was best."""
    at_end: tuple[str, ...] = ()
    """Settings of which the last value that could be tried was best: one beyond it may be better still."""


def choose_settings(
    build: Callable[..., Method],
    stages: Sequence[Sequence[dict[str, Any]]],
    validation: Validation,
    *,
    beyond: Mapping[str, Sequence[Any]] | None = None,
) -> Choice:
    """Choose the best settings of a method, stage by stage: each tries its changes on the best settings so far.

    Best is the highest MAP@R without a worse R@1 than the raw vectors; see `best_trial`.

    Parameters
    ----------
    build : callable
        build(**settings) gives the method, unfitted.
    stages : lists of changes
        Settings to try, stage by stage.
    validation : Validation
        The rehearsals, which several methods may share.
    beyond : name -> values in order, optional
        How far a range may be extended: as long as the best value of a setting is the first or the last that was tried,
        the next of these is tried, at most 32 in all.

    Returns
    -------
    Choice
        Empty where fewer than four training classes have two items or more: then build's own defaults stay.

    >>> import numpy as np
    >>> from entourage.baselines import QueryExpansion
    >>> from entourage.values import Embeddings
    >>> training = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(24, 4)), labels=np.arange(24) % 6)
    >>> stages = [[{"k": 1}, {"k": 2}], [{"alpha": 0}]]
    >>> choice = choose_settings(QueryExpansion, stages, Validation(training, seed=0))
    >>> [trial.settings for trial in choice.trials[:2]], choice.trials[2].settings["alpha"]
    ([{'k': 1}, {'k': 2}], 0)
    """
    if not stages or not validation.is_possible:
        return Choice({})
    tuner = _Tuner(build, validation)
    for stage in stages:
        for change in stage:
            tuner.attempt(change)
        tuner.settle()
    extended = tuner.extend(beyond or {})
    at_end = tuple(name for name, values in (beyond or {}).items() if tuner.ends_at(name, values))
    return Choice(tuner.settings, tuple(tuner.trials), extended, at_end)


def best_trial(trials: Sequence[Trial], raw_recall: float) -> Trial:
    """Choose the highest MAP@R + R@1 / 2 among trials that lose no more R@1 than LOSS_ALLOWED.

    If all lose more, the best R@1. It is the rule by which the relational refiner chooses.

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
    harmless = [trial for trial in trials if trial.recall_at_1 >= raw_recall - LOSS_ALLOWED]
    if harmless:
        return max(harmless, key=lambda trial: trial.map_at_r + trial.recall_at_1 / 2)
    return max(trials, key=lambda trial: trial.recall_at_1)


class _Tuner:
    """What was tried of a method so far, and the best of it."""

    def __init__(self, build: Callable[..., Method], validation: Validation) -> None:
        self._build, self._validation = build, validation
        self.settings: dict[str, Any] = {}
        self.trials: list[Trial] = []

    def attempt(self, change: dict[str, Any]) -> None:
        """Score a change of the best settings."""
        candidate = self.settings | change
        self.trials.append(Trial(candidate, *self._validation.scores(self._build(**candidate))))

    def settle(self) -> None:
        """Take the best of all trials for what the next ones change."""
        self.settings = best_trial(self.trials, self._validation.raw_recall).settings

    def extend(self, beyond: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """Try values beyond a range as long as its end is best; the names of the settings that it was done for."""
        extended: dict[str, None] = {}
        for _ in range(MOST_BEYOND):
            nexts = ((name, self._next(name, values)) for name, values in beyond.items())
            name, value = next(((name, value) for name, value in nexts if value is not None), (None, None))
            if name is None:
                break
            extended[name] = None
            self.attempt({name: value})
            self.settle()
        return tuple(extended)

    def ends_at(self, name: str, values: Sequence[Any]) -> bool:
        """Whether the best value is the last that may be tried, and none that nothing could lie beyond (0 and 1)."""
        best = self.settings.get(name)
        return best in (values[0], values[-1]) and best not in (0, 1)

    def _next(self, name: str, values: Sequence[Any]) -> Any:
        """The value to try beyond those tried, if the best is at their end and there is one."""
        tried: set[Any] = {trial.settings.get(name) for trial in self.trials} - {None}
        best = self.settings.get(name)
        if best is None or len(tried) < 2:  # nothing was chosen
            return None
        if best == max(tried):
            return next((value for value in values if value > best), None)
        return next((value for value in reversed(values) if value < best), None) if best == min(tried) else None
