"""Every method on the same unseen classes, under one protocol or several, on one class split or several."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from entourage.comparison.methods import BUDGET, MethodSpec, select_methods
from entourage.comparison.open_set import OpenSet
from entourage.comparison.pooling import pooled
from entourage.comparison.protocols import Task, check_protocols, tasks_of
from entourage.comparison.results import Comparison, MethodResult
from entourage.comparison.scoring import score_methods, scored_queries
from entourage.comparison.splits import queries_given, split_given, split_numbered
from entourage.comparison.tuning import MOST_BEYOND
from entourage.comparison.validation import LEAST_CLASSES
from entourage.errors import InputError
from entourage.evaluation.bootstrap import resampled
from entourage.evaluation.names import check_cutoffs, check_depth
from entourage.refiner.rehearsal import FOLDS
from entourage.refiner.settings import LOSS_ALLOWED
from entourage.runtime.checks import check_whole
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller
from entourage.training.sampling import usable_classes
from entourage.values import BoolArray, Embeddings, as_embeddings, labels_of, shared_codes

__all__ = ["check_single", "compare", "compare_halves", "compare_split"]

_MOST_SEEDS = 1_000  # or class splits: with each of them every method is fitted anew


@shows_progress
def compare(
    X: Any,
    y: Any = None,
    methods: str | Sequence[str | MethodSpec] = "all",
    *,
    split: Any = "half",
    splits: int = 1,
    protocol: str | Iterable[str] | None = None,
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
        "half" trains on the first half of the classes; or a word for each item: "train" or "test", or "train", "query"
        or "gallery".
    splits : int
        How many class splits: after the first half, random halves of the classes. Scores are means over the queries of
        all of them.
    protocol : str or iterable of str, optional
        How test items are used: "together" (all look at each other), "served" (queries one at a time in a gallery that
        stands), "open" (half of the queries' classes are not in it), "sparse" (few items a class, distractors). By
        default together or, where the split names queries, served.
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
    options: dict[str, Any] = {"protocol": protocol, "seeds": seeds, "at": at, "progress": progress}
    if isinstance(split, str) and split == "half":
        comparison = compare_halves(items, specs, splits=splits, **options)
    else:
        check_single(splits)
        comparison = compare_split(*split_given(items, split), specs, queries=queries_given(split), **options)
    for warning in comparison.warnings:
        warn_caller(warning)
    return comparison


def check_single(splits: int) -> None:
    """Refuse several class splits of items whose split is given."""
    if splits != 1:
        raise InputError(f"splits is {splits}, but the split is given; wanted 1: leave one of them out")


def compare_halves(
    items: Embeddings, methods: str | Sequence[str | MethodSpec] = "all", *, splits: int = 1, **options: Any
) -> Comparison:
    """Compare methods on one or more class splits of labelled items: the first half of the classes, then random halves.

    Parameters
    ----------
    items : Embeddings of shape (N, d)
        With labels.
    methods : "all", names from METHODS, or MethodSpecs
    splits : int
        How many.
    **options
        As of `compare_split`.

    Returns
    -------
    Comparison
        Of the queries of all splits.
    """
    check_whole("splits", splits, least=1, most=_MOST_SEEDS)
    described = (
        "half of the classes"
        if splits == 1
        else f"the first half of the classes and {splits - 1} random {'half' if splits == 2 else 'halves'}"
    )
    return pooled(
        [
            compare_split(*split_numbered(items, number), methods, split=described, number=number, **options)
            for number in range(splits)
        ]
    )


def compare_split(
    training: Embeddings,
    test: Embeddings,
    methods: str | Sequence[str | MethodSpec] = "all",
    *,
    protocol: str | Iterable[str] | None = None,
    seeds: int = 1,
    at: int | Iterable[int] | None = None,
    queries: BoolArray | None = None,
    split: str = "as given",
    number: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Fit every method on the training items, let the test items be found, and compare with the raw vectors.

    A method that cannot work with these items is left out with its reason.

    Parameters
    ----------
    training, test : Embeddings of shapes (M, d) and (N, d)
        With labels.
    methods : "all", names from METHODS, or MethodSpecs
        Raw is always among them.
    protocol : str or iterable of str, optional
        How the test items are used, see protocols.py; methods are fitted once for all. By default together or, where
        queries are given, served.
    queries : array of bool, shape (N,), optional
        Which test items are queries, and the others their gallery; by default protocols draw them.
    seeds : int
        How many, counted from 0; a seed decides the classes held out for tuning and whatever is drawn in training.
    at : int or iterable of int, optional
        At which k to measure recall@k, precision@k, nDCG@k and MRR@k besides.
    split : str
        How the items were split, for the protocol.
    number : int
        Which class split this is; the seed of the queries that are drawn.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    Comparison
        One result for each method, under the first protocol; `further` has the others.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(8), 6)
    >>> items = Embeddings.from_vectors(rng.normal(size=(8, 5))[labels] + rng.normal(size=(48, 5)), labels=labels)
    >>> seen = labels < 4
    >>> comparison = compare_split(items.take(seen), items.take(~seen), ["alpha-qe-8-3"])
    >>> [result.method for result in comparison.results]
    ['raw', 'alpha-qe-8-3']
    """
    usual = "together" if queries is None else "served"
    specs, protocols = select_methods(methods), check_protocols(usual if protocol is None else protocol)
    _check(training, test, seeds)
    tasks = tasks_of(protocols, training, test, number, queries=queries)
    if not tasks:
        raise InputError(
            f"no two of the test classes have the two items that the protocol {protocols[0]} needs; add items, or "
            "leave it out"
        )
    cutoffs = None if at is None else check_cutoffs(at)
    for task in tasks:
        check_depth(cutoffs or (), task.depth)
    every = list(score_methods(specs, training, tasks, seeds=seeds, at=cutoffs, split=number, progress=progress))
    parts = [
        _comparison(task, results, _protocol(training, test, task, seeds, split))
        for task, results in zip(tasks, zip(*every, strict=True), strict=True)
    ]
    return replace(parts[0], warnings=tuple(_warnings(training, test)), further=tuple(parts[1:]))


def _comparison(task: Task, results: Sequence[MethodResult], protocol: dict[str, Any]) -> Comparison:
    queries = scored_queries(task)
    open_set = None if task.known is None else OpenSet((labels_of(task.queries),), (task.known,))
    return Comparison(protocol, tuple(results), queries.ids, labels_of(queries), task=task.name, open_set=open_set)


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


def _protocol(training: Embeddings, test: Embeddings, task: Task, seeds: int, split: str) -> dict[str, Any]:
    queries = scored_queries(task)
    return {
        "protocol": task.protocol,
        **({"gallery": task.kind} if task.kind else {}),
        "split": split,
        "training_items": len(training),
        "training_classes": len(np.unique(labels_of(training, "training items"))),
        "test_items": len(test),
        "test_classes": len(np.unique(labels_of(test))),
        "test_classes_seen_in_training": _seen_classes(training, test),
        **_searched(task),
        "queries_without_match": _without_match(queries, task.gallery),
        "without_match": "counted as 0",
        "settings": f"at most {BUDGET} per method, chosen in rehearsals on training classes, in {FOLDS} folds",
        "ranges": f"extended while their end is best, by at most {MOST_BEYOND} settings",
        "choice": f"highest MAP@R + R@1 / 2 of those that lose at most {100 * LOSS_ALLOWED:.1f} points of R@1 to raw",
        "intervals": resampled(labels_of(queries)),
        "seeds": list(range(seeds)),
    }


def _searched(task: Task) -> dict[str, Any]:
    """Who is searched in what."""
    if task.gallery is None:
        return {
            "search": "test items among themselves, never the item itself; cosine, exact, ties by id",
            "context": "transductive: the test items without their labels",
        }
    found = {
        "search": "queries one at a time in a gallery prepared without them; cosine, exact, ties by id",
        "context": "the gallery without its labels, never another query",
        "drawn": task.note,
        "queries": len(task.queries),
    }
    if task.known is not None:
        found["scores"] = "of queries with a match; AUROC and FPR of known against unknown, by the method's confidence"
    return found


def _without_match(queries: Embeddings, gallery: Embeddings | None) -> int:
    codes, others = shared_codes(labels_of(queries), labels_of(queries if gallery is None else gallery))
    return int((np.bincount(others, minlength=codes.max() + 1)[codes] <= (gallery is None)).sum())


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
