"""Every method on the same unseen classes: fit, apply, score, and what it cost."""

import gc
from dataclasses import dataclass
from numbers import Integral
from time import perf_counter

import numpy as np

from entourage.baselines import with_random_state
from entourage.compare.contenders import BUDGET, Contender, chosen_in_fit, select
from entourage.compare.memory import peak_memory
from entourage.compare.tuning import CLASSES_TO_REHEARSE, choose_settings
from entourage.errors import EntourageError, InputError
from entourage.evaluation import evaluate_ranking
from entourage.evaluation.bootstrap import RESAMPLES, harm, paired_bootstraps
from entourage.refiner.rehearsal import FOLDS
from entourage.runtime.progress import Progress
from entourage.training.sampling import usable_classes
from entourage.values import Embeddings, label_codes, shared_codes

__all__ = ["Comparison", "Row", "Run", "compare"]


@dataclass(frozen=True)
class Run:
    """One method with one seed."""

    per_query: dict[str, np.ndarray]
    """recall@1, r-precision and map@r of each test item, (N,)."""
    settings: dict
    tune_seconds: float
    fit_seconds: float
    """With the tuning."""
    apply_seconds: float
    """From the test vectors to their scored ranking."""
    peak_memory_mb: float | None
    """Of tuning, fitting and applying, beyond what was held before."""
    parameters: int


@dataclass(frozen=True)
class Row:
    """One method with every seed, or the reason why it was left out."""

    method: str
    runs: tuple[Run, ...] = ()
    skipped: str | None = None

    @property
    def per_query(self) -> dict[str, np.ndarray]:
        """Scores of each test item, averaged over the seeds; name -> (N,)."""
        return {name: np.mean([run.per_query[name] for run in self.runs], axis=0) for name in self.runs[0].per_query}

    def document(self, raw: "Row") -> dict:
        if self.skipped:
            return {"method": self.method, "skipped": self.skipped}
        own, reference = self.per_query, raw.per_query
        intervals = paired_bootstraps({name: own[name] for name in ("recall@1", "map@r")}, reference)
        versus = {f"{name}_vs_raw": interval.document() for name, interval in intervals.items()}
        memory = [run.peak_memory_mb for run in self.runs if run.peak_memory_mb is not None]
        seconds = ("fit_seconds", "tune_seconds", "apply_seconds")
        return {
            "method": self.method,
            **{name: float(own[name].mean()) for name in ("recall@1", "map@r", "r-precision")},
            **versus,
            "settings": [run.settings for run in self.runs],
            **{name: float(np.mean([getattr(run, name) for run in self.runs])) for name in seconds},
            "peak_memory_mb": max(memory, default=None),
            "parameters": max(run.parameters for run in self.runs),
            "seeds": [
                {"seed": seed, **{name: float(run.per_query[name].mean()) for name in ("recall@1", "map@r")}}
                for seed, run in enumerate(self.runs)
            ],
        }


@dataclass(frozen=True)
class Comparison:
    """What came of each method, raw first, on the same test items."""

    protocol: dict
    rows: tuple[Row, ...]
    ids: np.ndarray
    """(N,) of the test items, in the order of all per-query scores."""
    labels: np.ndarray
    """(N,)"""
    warnings: tuple[str, ...] = ()

    def row(self, method: str) -> Row:
        found = {row.method: row for row in self.rows if not row.skipped}
        if method not in found:
            raise InputError(f"{method} has no scores here; wanted one of {', '.join(found)}")
        return found[method]

    @property
    def judged_for_harm(self) -> str:
        """The method whose harm is of interest: relational if it is there, or else the last."""
        scored = [row.method for row in self.rows if not row.skipped]
        return "relational" if "relational" in scored else scored[-1]

    def harm(self, method: str | None = None, against: str = "raw") -> dict:
        """Who lost by `method`; see differences.harm."""
        method = method or self.judged_for_harm
        before, after = self.row(against).per_query, self.row(method).per_query
        return {"method": method, "against": against, **harm(self.ids, self.labels, before, after)}

    def document(self) -> dict:
        """What `--json` prints: scores as fractions."""
        methods = [row.document(self.row("raw")) for row in self.rows]
        return {"protocol": self.protocol, "methods": methods, "warnings": list(self.warnings)}


def compare(
    training: Embeddings,
    test: Embeddings,
    methods="all",
    *,
    seeds: int = 1,
    split: str = "as given",
    progress: Progress | None = None,
) -> Comparison:
    """Fit every method on the training items, rank the test items among themselves, and compare with the raw vectors.

    methods: "all", names from CONTENDERS, or Contenders; raw is always among them. seeds: how many, counted from 0;
    each decides the classes held out for tuning and whatever is drawn in training. A method that cannot work with
    these items is left out with its reason. split: how the items were parted, for the report.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(8), 6)
    >>> items = Embeddings.from_vectors(rng.normal(size=(8, 5))[labels] + rng.normal(size=(48, 5)), labels=labels)
    >>> seen = labels < 4
    >>> comparison = compare(items.take(seen), items.take(~seen), ["alpha-qe-8-3"])
    >>> [row.method for row in comparison.rows]
    ['raw', 'alpha-qe-8-3']
    """
    contenders = select(methods)
    _check(training, test, seeds)
    rows = []
    for number, contender in enumerate(contenders):
        gc.collect()  # what the method before left behind is not to be counted as free for this one
        rows.append(_row(contender, training, test, seeds, _reporter(progress, number, len(contenders), seeds)))
    if progress:
        progress("comparing", len(contenders) * seeds, len(contenders) * seeds)
    protocol = _protocol(training, test, seeds, split)
    return Comparison(protocol, tuple(rows), test.ids, test.labels, tuple(_doubts(training, test)))


def _row(contender: Contender, training, test, seeds: int, report) -> Row:
    runs = []
    try:
        for seed in range(1 if contender.draws_nothing else seeds):
            report(contender.name, seed)
            runs.append(_run(contender, training, test, seed))
    except EntourageError as error:
        if contender.name == "raw":  # without it there is nothing to compare with
            raise
        return Row(contender.name, skipped=str(error))
    return Row(contender.name, tuple(runs * seeds if contender.draws_nothing else runs))


def _run(contender: Contender, training: Embeddings, test: Embeddings, seed: int) -> Run:
    with peak_memory() as peak:
        start = perf_counter()
        settings = contender.fixed | choose_settings(contender.build, contender.stages, training, seed=seed).settings
        tuned = perf_counter()
        method = with_random_state(contender.build(**settings), seed).fit(training)
        fitted = perf_counter()
        per_query = evaluate_ranking(test, method.rank)
        applied = perf_counter()
    return Run(
        per_query,
        settings | chosen_in_fit(method),
        tune_seconds=tuned - start,
        fit_seconds=fitted - start,
        apply_seconds=applied - fitted,
        peak_memory_mb=peak.mb,
        parameters=method.n_parameters_,
    )


def _reporter(progress: Progress | None, number: int, count: int, seeds: int):
    """report(name, seed): how many of all methods and seeds are done."""

    def report(name: str, seed: int) -> None:
        if progress:
            progress(f"comparing ({name}, seed {seed})", number * seeds + seed, count * seeds)

    return report


def _check(training: Embeddings, test: Embeddings, seeds) -> None:
    for name, items in (("training", training), ("test", test)):
        if items.labels is None:
            raise InputError(f"the {name} items have no labels; wanted one per item")
    if training.dim != test.dim:
        raise InputError(
            f"the training items have {training.dim} dimensions and the test items {test.dim}; "
            "both must come from the same encoder"
        )
    if len(np.unique(test.labels)) == len(test):
        raise InputError(
            f"each of the {len(test)} test items is alone in its class, so that every score would be 0; wanted classes "
            "of two or more: check the labels"
        )
    if not (isinstance(seeds, Integral) and seeds >= 1):
        raise InputError(f"seeds is {seeds!r}; wanted a whole number, at least 1")


def _protocol(training: Embeddings, test: Embeddings, seeds: int, split: str) -> dict:
    codes = label_codes(test.labels)
    return {
        "split": split,
        "training_items": len(training),
        "training_classes": len(np.unique(training.labels)),
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


def _doubts(training: Embeddings, test: Embeddings) -> list[str]:
    doubts, seen = [], _seen_classes(training, test)
    if len(np.unique(test.labels)) == 1:
        doubts.append("the test items are of one class: whatever is found is right")
    if seen:
        doubts.append(f"{seen} of the test classes are training classes too: this is not a zero-shot comparison")
    if len(usable_classes(training.labels)) < CLASSES_TO_REHEARSE:
        few = f"fewer than {CLASSES_TO_REHEARSE} training classes with two or more items"
        doubts.append(f"{few}: settings stay at their defaults")
    return doubts


def _seen_classes(training: Embeddings, test: Embeddings) -> int:
    return len(np.intersect1d(*shared_codes(training.labels, test.labels)))
