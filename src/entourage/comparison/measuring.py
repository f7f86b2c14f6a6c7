"""Every method on the same unseen classes: fit, apply, score, and what it cost."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np

from entourage.baselines import with_random_state
from entourage.comparison.memory import peak_memory
from entourage.comparison.methods import BUDGET, MethodSpec, chosen_in_fit, select_methods
from entourage.comparison.splits import labels_of
from entourage.comparison.tuning import LEAST_CLASSES, choose_settings
from entourage.errors import EntourageError, InputError
from entourage.evaluation import evaluate_ranking
from entourage.evaluation.bootstrap import RESAMPLES, harm, paired_bootstraps
from entourage.refiner.rehearsal import FOLDS
from entourage.runtime.config import check_name
from entourage.runtime.progress import Progress
from entourage.training.sampling import usable_classes
from entourage.values import Embeddings, label_codes, shared_codes

__all__ = ["Comparison", "MethodResult", "SeedResult", "compare"]


@dataclass(frozen=True)
class SeedResult:
    """The result of one method with one seed."""

    per_query: dict[str, np.ndarray]
    """recall@1, r-precision and map@r of each test item, (N,)."""
    settings: dict[str, Any]
    """Given, chosen by tuning, and chosen by the method itself."""
    tune_seconds: float
    """Time to choose the settings."""
    fit_seconds: float
    """Time to choose the settings and to fit."""
    apply_seconds: float
    """Time from the test vectors to their scored ranking."""
    peak_memory_mb: float | None
    """Peak memory of tuning, fitting and applying; None where the system does not measure it."""
    parameters: int
    """How many numbers were learned."""


@dataclass(frozen=True)
class MethodResult:
    """The result of one method with every seed, or why it was left out."""

    method: str
    """Its name."""
    seeds: tuple[SeedResult, ...] = ()
    """Results with seeds 0, 1, ..."""
    skipped: str | None = None
    """Why it was left out; None where it was not."""

    @property
    def per_query(self) -> dict[str, np.ndarray]:
        """Scores of each test item, averaged over the seeds; name -> (N,)."""
        return {
            name: np.mean([each.per_query[name] for each in self.seeds], axis=0) for name in self.seeds[0].per_query
        }

    def document(self, raw: "MethodResult") -> dict[str, Any]:
        """Summarise the result for JSON, with differences to that of the raw vectors."""
        if self.skipped:
            return {"method": self.method, "skipped": self.skipped}
        own, reference = self.per_query, raw.per_query
        intervals = paired_bootstraps({name: own[name] for name in ("recall@1", "map@r")}, reference)
        versus = {f"{name}_vs_raw": interval.document() for name, interval in intervals.items()}
        memory = [each.peak_memory_mb for each in self.seeds if each.peak_memory_mb is not None]
        seconds = ("fit_seconds", "tune_seconds", "apply_seconds")
        return {
            "method": self.method,
            **{name: float(own[name].mean()) for name in ("recall@1", "map@r", "r-precision")},
            **versus,
            "settings": [each.settings for each in self.seeds],
            **{name: float(np.mean([getattr(each, name) for each in self.seeds])) for name in seconds},
            "peak_memory_mb": max(memory, default=None),
            "parameters": max(each.parameters for each in self.seeds),
            "seeds": [
                {"seed": seed, **{name: float(each.per_query[name].mean()) for name in ("recall@1", "map@r")}}
                for seed, each in enumerate(self.seeds)
            ],
        }


@dataclass(frozen=True)
class Comparison:
    """Results of all methods, raw first, on the same test items."""

    protocol: dict[str, Any]
    """How they were measured."""
    results: tuple[MethodResult, ...]
    """One for each method."""
    ids: np.ndarray
    """Ids of the test items, (N,), in the order of all per-query scores."""
    labels: np.ndarray
    """Labels of the test items, (N,)."""
    warnings: tuple[str, ...] = ()
    """Warnings: why the numbers may mean less than they seem to."""

    def result(self, method: str) -> MethodResult:
        """Find the result of a method that was not left out."""
        found = {each.method: each for each in self.results if not each.skipped}
        check_name(method, found, "method", "in this comparison")
        return found[method]

    @property
    def judged_for_harm(self) -> str:
        """The method whose harm is of interest: relational if it was compared, otherwise the last."""
        scored = [each.method for each in self.results if not each.skipped]
        return "relational" if "relational" in scored else scored[-1]

    def harm(self, method: str | None = None, against: str = "raw") -> dict[str, Any]:
        """Find the queries and classes that a method made worse; see evaluation.bootstrap.harm.

        Parameters
        ----------
        method : str, optional
            By default `judged_for_harm`.
        against : str
            The method it is measured against.

        Returns
        -------
        dict
            Both names, and what `harm` gives.
        """
        method = method or self.judged_for_harm
        before, after = self.result(against).per_query, self.result(method).per_query
        return {"method": method, "against": against, **harm(self.ids, self.labels, before, after)}

    def document(self) -> dict[str, Any]:
        """Give the whole comparison as `--json` prints it: scores as fractions."""
        methods = [each.document(self.result("raw")) for each in self.results]
        return {"protocol": self.protocol, "methods": methods, "warnings": list(self.warnings)}


def compare(
    training: Embeddings,
    test: Embeddings,
    methods: str | Sequence[str | MethodSpec] = "all",
    *,
    seeds: int = 1,
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
    >>> comparison = compare(items.take(seen), items.take(~seen), ["alpha-qe-8-3"])
    >>> [result.method for result in comparison.results]
    ['raw', 'alpha-qe-8-3']
    """
    specs = select_methods(methods)
    _check(training, test, seeds)
    results = []
    for number, spec in enumerate(specs):
        gc.collect()  # what the method before left behind is not to be counted as free for this one
        results.append(_result(spec, training, test, seeds, _reporter(progress, number, len(specs), seeds)))
    if progress:
        progress("comparing", len(specs) * seeds, len(specs) * seeds)
    protocol = _protocol(training, test, seeds, split)
    return Comparison(protocol, tuple(results), test.ids, labels_of(test, "test"), tuple(_warnings(training, test)))


def _result(
    spec: MethodSpec, training: Embeddings, test: Embeddings, seeds: int, report: Callable[[str, int], None]
) -> MethodResult:
    results = []
    try:
        for seed in range(1 if spec.draws_nothing else seeds):
            report(spec.name, seed)
            results.append(_with_seed(spec, training, test, seed))
    except EntourageError as error:
        if spec.name == "raw":  # without it there is nothing to compare with
            raise
        return MethodResult(spec.name, skipped=str(error))
    return MethodResult(spec.name, tuple(results * seeds if spec.draws_nothing else results))


def _with_seed(spec: MethodSpec, training: Embeddings, test: Embeddings, seed: int) -> SeedResult:
    with peak_memory() as peak:
        start = perf_counter()
        settings = spec.fixed | choose_settings(spec.build, spec.stages, training, seed=seed).settings
        tuned = perf_counter()
        method = with_random_state(spec.build(**settings), seed).fit(training)
        fitted = perf_counter()
        per_query = evaluate_ranking(test, method.rank)
        applied = perf_counter()
    return SeedResult(
        per_query,
        settings | chosen_in_fit(method),
        tune_seconds=tuned - start,
        fit_seconds=fitted - start,
        apply_seconds=applied - fitted,
        peak_memory_mb=peak.mb,
        parameters=method.n_parameters_,
    )


def _reporter(progress: Progress | None, number: int, count: int, seeds: int) -> Callable[[str, int], None]:
    """Give report(name, seed), which says how many of all methods and seeds are done."""

    def report(name: str, seed: int) -> None:
        if progress:
            progress(f"comparing ({name}, seed {seed})", number * seeds + seed, count * seeds)

    return report


def _check(training: Embeddings, test: Embeddings, seeds: int) -> None:
    labels = labels_of(test, "test")
    labels_of(training, "training")
    if training.dim != test.dim:
        raise InputError(
            f"the training items have {training.dim} dimensions and the test items {test.dim}; "
            "both must come from the same encoder"
        )
    if len(np.unique(labels)) == len(test):
        raise InputError(
            f"each of the {len(test)} test items is alone in its class, so every score would be 0; check the labels: "
            "some classes must have two items or more"
        )
    if not (isinstance(seeds, Integral) and seeds >= 1):
        raise InputError(f"seeds is {seeds!r}; it must be a whole number, at least 1")


def _protocol(training: Embeddings, test: Embeddings, seeds: int, split: str) -> dict[str, Any]:
    codes = label_codes(labels_of(test, "test"))
    return {
        "split": split,
        "training_items": len(training),
        "training_classes": len(np.unique(labels_of(training, "training"))),
        "test_items": len(test),
        "test_classes": int(codes.max()) + 1,
        "test_classes_seen_in_training": _seen_classes(training, test),
        "search": "test items among themselves, never the item itself; cosine, exact, ties by id",
        "context": "transductive: the test items without their labels",
        "queries_without_match": int((np.bincount(codes) == 1).sum()),
        "without_match": "counted as 0",
        "settings": f"at most {BUDGET} per method, chosen in rehearsals on training classes, in {FOLDS} folds",
        "choice": "highest MAP@R of those that lose at most 0.2 points of R@1 to raw",
        "intervals": f"95 %, paired bootstrap over queries, {RESAMPLES} resamples",
        "seeds": list(range(seeds)),
    }


def _warnings(training: Embeddings, test: Embeddings) -> list[str]:
    warnings, seen = [], _seen_classes(training, test)
    if len(np.unique(labels_of(test, "test"))) == 1:
        warnings.append("all test items are of one class, so whatever is found is right")
    if seen:
        warnings.append(f"{seen} of the test classes are training classes too: this is not a zero-shot comparison")
    if len(usable_classes(labels_of(training))) < LEAST_CLASSES:
        few = f"fewer than {LEAST_CLASSES} training classes have two or more items"
        warnings.append(f"{few}, so all methods keep their default settings")
    return warnings


def _seen_classes(training: Embeddings, test: Embeddings) -> int:
    return len(np.intersect1d(*shared_codes(labels_of(training), labels_of(test))))
