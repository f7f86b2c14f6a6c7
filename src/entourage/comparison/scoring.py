"""One method after the other: fitted on the training items with every seed, then scored on every task."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from time import perf_counter

import numpy as np

from entourage.baselines import Method, with_random_state
from entourage.comparison.memory import peak_memory
from entourage.comparison.methods import MethodSpec, chosen_in_fit
from entourage.comparison.protocols import Task
from entourage.comparison.results import MethodResult, SeedResult
from entourage.comparison.tuning import Choice, choose_settings
from entourage.comparison.validation import Validation
from entourage.errors import EntourageError
from entourage.evaluation import evaluate_in_gallery, evaluate_ranking
from entourage.runtime.progress import Progress
from entourage.runtime.sharing import SharedWork, sharing
from entourage.values import Embeddings, brief

__all__ = ["score_methods", "scored_queries"]

Rehearsals = Callable[[int], Validation]


@dataclass(frozen=True)
class Work:
    """What every method is fitted on and scored by."""

    training: Embeddings
    tasks: Sequence[Task]
    seeds: int
    at: tuple[int, ...] | None
    rehearsals: Rehearsals
    """The rehearsals of a seed, shared by the methods that are tuned."""
    split: int

    __repr__ = brief


def score_methods(
    specs: Sequence[MethodSpec],
    training: Embeddings,
    tasks: Sequence[Task],
    *,
    seeds: int = 1,
    at: tuple[int, ...] | None = None,
    split: int = 0,
    progress: Progress | None = None,
) -> Iterator[list[MethodResult]]:
    """Fit and score methods, one by one, so that whoever asks can keep what is measured as it comes.

    Parameters
    ----------
    specs : sequence of MethodSpec
    training : Embeddings of shape (M, d)
        With labels.
    tasks : sequence of Task
    seeds : int
        How many, counted from 0.
    at : tuple of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k besides.
    split : int
        Which class split this is, for the results.
    progress : callable, optional
        Called as progress(title, done, total).

    Yields
    ------
    list of MethodResult
        Of one method, a result for each task. One that cannot work with these items is left out with its reason.
    """
    work = Work(training, tasks, seeds, at, cache(partial(Validation, training)), split)
    kept = SharedWork()
    for number, spec in enumerate(specs):
        gc.collect()  # what the method before left behind is not to be counted as free for this one
        with sharing(kept):
            results = _results(spec, work, _reporter(progress, number, len(specs), seeds))
        yield results
    if progress:
        progress("comparing", len(specs) * seeds, len(specs) * seeds)


def scored_queries(task: Task) -> Embeddings:
    """The queries whose rankings are scored: all but those of which no match is in the gallery on purpose."""
    return task.queries if task.known is None else task.queries.take(task.known)


def _results(spec: MethodSpec, work: Work, report: Callable[[str, int], None]) -> list[MethodResult]:
    measured: list[list[SeedResult]] = [[] for _ in work.tasks]
    skipped: list[str | None] = [None for _ in work.tasks]
    for seed in range(1 if spec.draws_nothing else work.seeds):
        report(spec.name, seed)
        for place, result in enumerate(_with_seed(spec, work, seed)):
            if isinstance(result, EntourageError):
                if spec.name == "raw":  # without it there is nothing to compare with
                    raise result
                skipped[place] = str(result)
            else:
                measured[place].append(result)
    described = partial(
        MethodResult, spec.name, settings_are=spec.settings_are, is_refiner=spec.is_refiner, is_trained=spec.is_trained
    )
    return [
        described(skipped=reason) if reason else described(_for_every_seed(results, work.seeds))
        for reason, results in zip(skipped, measured, strict=True)
    ]


def _for_every_seed(results: list[SeedResult], seeds: int) -> tuple[SeedResult, ...]:
    """The results, or the only one once for each seed, where every seed gives the same."""
    if len(results) == seeds:
        return tuple(results)
    return tuple(replace(results[0], seed=seed) for seed in range(seeds))


def _with_seed(spec: MethodSpec, work: Work, seed: int) -> list[SeedResult | EntourageError]:
    """The result for each task, or why there is none."""
    with peak_memory() as peak:
        start = perf_counter()
        try:
            choice = Choice({})
            if spec.stages:
                choice = choose_settings(spec.build, spec.stages, work.rehearsals(seed), beyond=spec.beyond)
            settings = spec.fixed | choice.settings
            tuned = perf_counter()
            method = with_random_state(spec.build(**settings), seed).fit(work.training)
        except EntourageError as error:
            return [error for _ in work.tasks]
        fitted = perf_counter()
        scored = [_scored(method, task, work.at) for task in work.tasks]
    results: list[SeedResult | EntourageError] = []
    for each in scored:
        if isinstance(each, EntourageError):
            results.append(each)
            continue
        per_query, confidence, seconds = each
        result = SeedResult(
            per_query,
            settings | chosen_in_fit(method),
            tune_seconds=tuned - start,
            fit_seconds=fitted - start,
            apply_seconds=seconds,
            peak_memory_mb=peak.mb,
            parameters=method.n_parameters_,
            extended=choice.extended,
            at_end=choice.at_end,
            confidence=confidence,
            seed=seed,
            split=work.split,
        )
        results.append(result)
    return results


def _scored(
    method: Method, task: Task, at: tuple[int, ...] | None
) -> tuple[dict[str, np.ndarray], np.ndarray | None, float] | EntourageError:
    """Scores by name of the queries that have a match, the confidence in all queries if some have none, and seconds."""
    start, confidence = perf_counter(), None
    try:
        if task.gallery is None:
            per_query = evaluate_ranking(task.queries, method.rank, at=at)
        else:
            per_query, best = evaluate_in_gallery(task.queries, task.gallery, method.rank_in, at=at)
            if task.known is not None:
                confidence = method.confidence(task.queries.without_labels(), task.gallery.without_labels(), best)
                per_query = {name: values[task.known] for name, values in per_query.items()}
    except EntourageError as error:
        return error
    return per_query, confidence, perf_counter() - start


def _reporter(progress: Progress | None, number: int, count: int, seeds: int) -> Callable[[str, int], None]:
    """Give report(name, seed), which says how many of all methods and seeds are done."""

    def report(name: str, seed: int) -> None:
        if progress:
            progress(f"comparing ({name}, seed {seed})", number * seeds + seed, count * seeds)

    return report
