"""Every method on the same unseen classes: fit, apply, score, and what it cost."""

import gc
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from time import perf_counter
from typing import Any

import numpy as np

from entourage.baselines import with_random_state
from entourage.comparison.memory import peak_memory
from entourage.comparison.methods import BUDGET, MethodSpec, chosen_in_fit, select_methods
from entourage.comparison.results import Comparison, MethodResult, SeedResult
from entourage.comparison.splits import split_given, split_half
from entourage.comparison.tuning import MOST_BEYOND, Choice, choose_settings
from entourage.comparison.validation import LEAST_CLASSES, Validation
from entourage.errors import EntourageError, InputError
from entourage.evaluation import evaluate_ranking
from entourage.evaluation.bootstrap import resampled
from entourage.evaluation.names import check_cutoffs, check_depth
from entourage.refiner.rehearsal import FOLDS
from entourage.refiner.settings import LOSS_ALLOWED
from entourage.runtime.checks import check_whole
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller
from entourage.training.sampling import usable_classes
from entourage.values import Embeddings, as_embeddings, label_codes, labels_of, shared_codes

__all__ = ["compare", "compare_split"]

_MOST_SEEDS = 1_000  # with each of them every method is fitted anew


@shows_progress
def compare(
    X: Any,
    y: Any = None,
    methods: str | Sequence[str | MethodSpec] = "all",
    *,
    split: Any = "half",
    seeds: int = 1,
    at: int | Iterable[int] | None = None,
    progress: ShowProgress = None,
) -> Comparison:
    """Compare refiners with the alternatives, on classes that none of them was trained on.

    Every method, tuned on held-out training classes, is fitted on half of the classes; the items of the others are
    ranked among themselves.

    Parameters
    ----------
    X : Embeddings, array, DataFrame, column of lists or tensor of shape (N, d)
        Embeddings may carry their own labels.
    y : array-like of shape (N,), optional
        Labels, integers or texts.
    methods : "all", a name, names, or MethodSpecs
        An unknown name lists them all. Raw is always among them.
    split : "half" or array-like of shape (N,)
        "half" trains on the first half of the classes; or the word "train" or "test" for each item.
    seeds : int
        How many, counted from 0; scores are averaged over them.
    at : int or iterable of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k besides.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    Comparison
        `print` shows it as a table. Each of its warnings is also issued as an EntourageWarning.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(8), 6)
    >>> X = rng.normal(size=(8, 5))[y] + rng.normal(size=(48, 5))
    >>> comparison = compare(X, y, ["alpha-qe-8-3"])
    >>> [row["method"] for row in comparison.document()["methods"]]
    ['raw', 'alpha-qe-8-3']
    >>> comparison.table().splitlines()[0].split()[0]
    'method'
    """
    specs = select_methods(methods)  # before any work
    items = as_embeddings(X, y, name="X")
    if items.labels is None:
        raise InputError("there are no labels to learn from and to score by; wanted one per vector: compare(X, y)")
    half = isinstance(split, str) and split == "half"
    training, test = split_half(items) if half else split_given(items, split)
    described = "half of the classes" if half else "as given"
    comparison = compare_split(training, test, specs, seeds=seeds, at=at, split=described, progress=progress)
    for warning in comparison.warnings:
        warn_caller(warning)
    return comparison


def compare_split(
    training: Embeddings,
    test: Embeddings,
    methods: str | Sequence[str | MethodSpec] = "all",
    *,
    seeds: int = 1,
    at: int | Iterable[int] | None = None,
    split: str = "as given",
    progress: Progress | None = None,
) -> Comparison:
    """Fit every method on the training items, rank the test items among themselves, and compare with the raw vectors.

    A method that cannot work with these items is left out with its reason.

    Parameters
    ----------
    training, test : Embeddings of shapes (M, d) and (N, d)
        With labels.
    methods : "all", names from METHODS, or MethodSpecs
        Raw is always among them.
    seeds : int
        How many, counted from 0; a seed decides the classes held out for tuning and whatever is drawn in training.
    at : int or iterable of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k besides.
    split : str
        How the items were split, for the protocol.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    Comparison
        One result for each method.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(8), 6)
    >>> items = Embeddings.from_vectors(rng.normal(size=(8, 5))[labels] + rng.normal(size=(48, 5)), labels=labels)
    >>> seen = labels < 4
    >>> comparison = compare_split(items.take(seen), items.take(~seen), ["alpha-qe-8-3"])
    >>> [result.method for result in comparison.results]
    ['raw', 'alpha-qe-8-3']
    """
    specs = select_methods(methods)
    _check(training, test, seeds)
    cutoffs = None if at is None else check_cutoffs(at)
    check_depth(cutoffs or (), len(test) - 1)
    results, rehearsals = [], cache(partial(Validation, training))  # of a seed, shared by the methods that are tuned
    for number, spec in enumerate(specs):
        gc.collect()  # what the method before left behind is not to be counted as free for this one
        report = _reporter(progress, number, len(specs), seeds)
        results.append(_result(spec, training, test, seeds, cutoffs, rehearsals, report))
    if progress:
        progress("comparing", len(specs) * seeds, len(specs) * seeds)
    protocol = _protocol(training, test, seeds, split)
    return Comparison(
        protocol, tuple(results), test.ids, labels_of(test, "test items"), tuple(_warnings(training, test))
    )


def _result(
    spec: MethodSpec,
    training: Embeddings,
    test: Embeddings,
    seeds: int,
    at: tuple[int, ...] | None,
    rehearsals: Callable[[int], Validation],
    report: Callable[[str, int], None],
) -> MethodResult:
    results: list[SeedResult] = []
    described = partial(
        MethodResult, spec.name, settings_are=spec.settings_are, is_refiner=spec.is_refiner, is_trained=spec.is_trained
    )
    try:
        for seed in range(1 if spec.draws_nothing else seeds):
            report(spec.name, seed)
            results.append(_with_seed(spec, training, test, seed, at, rehearsals))
    except EntourageError as error:
        if spec.name == "raw":  # without it there is nothing to compare with
            raise
        return described(skipped=str(error))
    return described(tuple(results * seeds if spec.draws_nothing else results))


def _with_seed(
    spec: MethodSpec,
    training: Embeddings,
    test: Embeddings,
    seed: int,
    at: tuple[int, ...] | None,
    rehearsals: Callable[[int], Validation],
) -> SeedResult:
    with peak_memory() as peak:
        start = perf_counter()
        choice = Choice({})
        if spec.stages:
            choice = choose_settings(spec.build, spec.stages, rehearsals(seed), beyond=spec.beyond)
        settings = spec.fixed | choice.settings
        tuned = perf_counter()
        method = with_random_state(spec.build(**settings), seed).fit(training)
        fitted = perf_counter()
        per_query = evaluate_ranking(test, method.rank, at=at)
        applied = perf_counter()
    return SeedResult(
        per_query,
        settings | chosen_in_fit(method),
        tune_seconds=tuned - start,
        fit_seconds=fitted - start,
        apply_seconds=applied - fitted,
        peak_memory_mb=peak.mb,
        parameters=method.n_parameters_,
        extended=choice.extended,
        at_end=choice.at_end,
    )


def _reporter(progress: Progress | None, number: int, count: int, seeds: int) -> Callable[[str, int], None]:
    """Give report(name, seed), which says how many of all methods and seeds are done."""

    def report(name: str, seed: int) -> None:
        if progress:
            progress(f"comparing ({name}, seed {seed})", number * seeds + seed, count * seeds)

    return report


def _check(training: Embeddings, test: Embeddings, seeds: int) -> None:
    labels = labels_of(test, "test items")
    labels_of(training, "training items")
    if training.dim != test.dim:
        raise InputError(
            f"the training items have {training.dim} dimensions and the test items {test.dim}; "
            "both must come from the same encoder"
        )
    if len(np.unique(labels)) == len(test):
        raise InputError(
            f"each test item ({len(test)} in all) is alone in its class, so every score would be 0; check the labels: "
            "some classes must have two items or more"
        )
    check_whole("seeds", seeds, least=1, most=_MOST_SEEDS)


def _protocol(training: Embeddings, test: Embeddings, seeds: int, split: str) -> dict[str, Any]:
    codes = label_codes(labels_of(test, "test items"))
    return {
        "split": split,
        "training_items": len(training),
        "training_classes": len(np.unique(labels_of(training, "training items"))),
        "test_items": len(test),
        "test_classes": int(codes.max()) + 1,
        "test_classes_seen_in_training": _seen_classes(training, test),
        "search": "test items among themselves, never the item itself; cosine, exact, ties by id",
        "context": "transductive: the test items without their labels",
        "queries_without_match": int((np.bincount(codes) == 1).sum()),
        "without_match": "counted as 0",
        "settings": f"at most {BUDGET} per method, chosen in rehearsals on training classes, in {FOLDS} folds",
        "ranges": f"extended while their end is best, by at most {MOST_BEYOND} settings",
        "choice": f"highest MAP@R of those that lose at most {100 * LOSS_ALLOWED:.1f} points of R@1 to raw",
        "intervals": resampled(codes),
        "seeds": list(range(seeds)),
    }


def _warnings(training: Embeddings, test: Embeddings) -> list[str]:
    warnings, seen = [], _seen_classes(training, test)
    if len(np.unique(labels_of(test, "test items"))) == 1:
        warnings.append("all test items are of one class, so whatever is found is right")
    if seen:
        warnings.append(f"{seen} of the test classes are training classes too: this is not a zero-shot comparison")
    if len(usable_classes(labels_of(training))) < LEAST_CLASSES:
        few = f"fewer than {LEAST_CLASSES} training classes have two or more items"
        warnings.append(f"{few}, so all methods keep their default settings")
    return warnings


def _seen_classes(training: Embeddings, test: Embeddings) -> int:
    return len(np.intersect1d(*shared_codes(labels_of(training), labels_of(test))))
