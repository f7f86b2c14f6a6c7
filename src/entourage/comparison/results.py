"""What a comparison gives: the scores of every method with every seed, what they cost, and tables of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.comparison.intervals import JUDGED_BY, Scores, against_best, intervals_between, leader
from entourage.comparison.open_set import OpenSet
from entourage.comparison.tables import comparison_tables, unfolded
from entourage.evaluation.bootstrap import harm
from entourage.runtime.config import check_name

__all__ = ["Comparison", "MethodResult", "SeedResult"]

LISTED = ("recall@1", "map@r", "recall@10")  # of every split and seed


@dataclass(frozen=True)
class SeedResult:
    """The result of one method with one seed."""

    per_query: dict[str, np.ndarray]
    """recall@1, recall@10, r-precision, map@r and what else was asked for, of each query, (N,)."""
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
    extended: tuple[str, ...] = ()
    """Settings whose range was extended, as its end was best."""
    at_end: tuple[str, ...] = ()
    """Settings of which the last value that could be tried was best."""
    confidence: np.ndarray | None = None
    """(N,) how sure the method was of each query that it has a match; where some have none."""
    seed: int = 0
    """What was drawn in tuning and training."""
    split: int = 0
    """Which class split it was measured on."""

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {100 * values.mean():.2f} %" for name, values in self.per_query.items())
        return f"SeedResult({scores})"


@dataclass(frozen=True)
class MethodResult:
    """The result of one method with every seed, on every class split, or why it was left out."""

    method: str
    """Its name."""
    seeds: tuple[SeedResult, ...] = ()
    """Results with seeds 0, 1, ..., of one class split after the other."""
    skipped: str | None = None
    """Why it was left out; None where it was not."""
    settings_are: str = "fixed"
    """How it came by its settings: "fixed", "tuned" or "chosen in fit"."""
    is_refiner: bool = False
    """Whether it is one of the refiners of this package; the others are its rivals."""
    is_trained: bool = False
    """Whether it learns from labels."""

    def __repr__(self) -> str:
        return f"MethodResult({self.method}, {self._summary})"

    @property
    def _summary(self) -> str:
        if self.skipped:
            return "skipped"
        own = self.per_query
        return f"R@1 {100 * own['recall@1'].mean():.2f} %, MAP@R {100 * own['map@r'].mean():.2f} %"

    @property
    def per_query(self) -> dict[str, np.ndarray]:
        """Scores of each query, averaged over the seeds, of one class split after the other; name -> (N,)."""
        splits = self.splits.values()
        return {
            name: np.concatenate([np.mean([seed.per_query[name] for seed in seeds], axis=0) for seeds in splits])
            for name in self.seeds[0].per_query
        }

    @property
    def splits(self) -> dict[int, list[SeedResult]]:
        """The results with every seed, by class split."""
        numbers = dict.fromkeys(each.split for each in self.seeds)
        return {number: [each for each in self.seeds if each.split == number] for number in numbers}

    def competes_with(self, other: "MethodResult") -> bool:
        """Whether the other is a rival: another method that is no refiner, and untrained if this refiner is."""
        if other.skipped or other.is_refiner or other.method == self.method:
            return False
        return self.is_trained or not self.is_refiner or not other.is_trained

    def document(
        self, raw: "MethodResult", rivals: dict[str, Scores], labels: np.ndarray, open_set: OpenSet | None = None
    ) -> dict[str, Any]:
        """Summarise the result for JSON, with differences to raw and to the best of its rivals.

        Parameters
        ----------
        raw : MethodResult
            That of the raw vectors.
        rivals : name -> metric -> (N,)
            Scores of the methods it competes with.
        labels : ndarray of shape (N,)
            Classes of the queries, which are resampled for the intervals.
        open_set : OpenSet, optional
            Which queries have a match, where some have none.

        Returns
        -------
        dict
        """
        if self.skipped:
            return {"method": self.method, "skipped": self.skipped}
        own = self.per_query
        intervals = intervals_between(own, raw.per_query, labels)
        versus: dict[str, Any] = {f"{name}_vs_raw": interval.document() for name, interval in intervals.items()}
        versus |= {f"{name}_vs_best_rival": each for name, each in against_best(own, rivals, labels).items()}
        memory = [each.peak_memory_mb for each in self.seeds if each.peak_memory_mb is not None]
        seconds = ("fit_seconds", "tune_seconds", "apply_seconds")
        return {
            "method": self.method,
            **{name: float(own[name].mean()) for name in dict.fromkeys(["recall@1", "map@r", *own])},
            **versus,
            **(open_set.document(self.confidences, raw.confidences) if open_set else {}),
            "settings_are": self.settings_are,
            "settings": [each.settings for each in self.seeds],
            "extended": [list(each.extended) for each in self.seeds],
            "at_end": [list(each.at_end) for each in self.seeds],
            **{name: float(np.mean([getattr(each, name) for each in self.seeds])) for name in seconds},
            "peak_memory_mb": max(memory, default=None),
            "parameters": max(each.parameters for each in self.seeds),
            "seeds": [
                {
                    "split": each.split,
                    "seed": each.seed,
                    **{name: float(each.per_query[name].mean()) for name in LISTED},
                }
                for each in self.seeds
            ],
        }

    @property
    def confidences(self) -> list[list[np.ndarray]]:
        """How sure it was of each query that it has a match: by class split and seed, (N,)."""
        return [[each.confidence for each in seeds if each.confidence is not None] for seeds in self.splits.values()]


@dataclass(frozen=True)
class Comparison:
    """Results of all methods, raw first, for the same queries; with several protocols, those of the first.

    Scores of several class splits stand one after the other: they are averaged over all queries, and a class that was
    tested in several splits is resampled with all of its queries.
    """

    protocol: dict[str, Any]
    """How they were measured."""
    results: tuple[MethodResult, ...]
    """One for each method."""
    ids: np.ndarray
    """Ids of the queries that are scored, (N,), in the order of all per-query scores."""
    labels: np.ndarray
    """Labels of these queries, (N,)."""
    warnings: tuple[str, ...] = ()
    """Warnings: why the numbers may mean less than they seem to."""
    task: str = "together"
    """The protocol and, where it has several galleries, which of them."""
    open_set: OpenSet | None = None
    """Which queries have a match, where some have none."""
    further: tuple["Comparison", ...] = ()
    """The same methods under other protocols, and in other galleries."""

    def __repr__(self) -> str:
        scored = [each for each in self.results if not each.skipped]
        best = max(scored, key=lambda each: float(each.per_query["map@r"].mean()))
        methods = f"{len(self.results)} methods, {self.task}, {len(self.ids):,} queries"
        further = f"; also {', '.join(each.task for each in self.further)}" if self.further else ""
        return f"Comparison({methods}; highest MAP@R: {best.method}, {best._summary}{further})"

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """Lay out a line per method: scores in percent, their differences to raw in points, and what they cost.

        Returns
        -------
        str
            What `print(comparison)` prints, and `entourage compare` after the protocol: below the scores, the settings
            that were chosen and why methods were left out.
        """
        return "\n\n".join(text for table in comparison_tables(self.document()) if (text := unfolded(table)))

    def under(self, task: str) -> "Comparison":
        """Find the comparison under one of the protocols that were asked for, such as "served".

        Parameters
        ----------
        task : str
            A protocol, or one of its galleries: "sparse, 2 a class".

        Returns
        -------
        Comparison
        """
        tasks = {each.task: each for each in (self, *self.further)}
        check_name(task, tasks, "protocol", "in this comparison")
        return tasks[task]

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
        raw = self.result("raw")
        scores: dict[str, Scores] = {each.method: each.per_query for each in self.results if not each.skipped}
        methods = []
        for each in self.results:
            rivals = {other.method: scores[other.method] for other in self.results if each.competes_with(other)}
            methods.append(each.document(raw, rivals, self.labels, self.open_set))
        best = {metric: leader(scores, metric, self.labels) for metric in JUDGED_BY}
        document = {"protocol": self.protocol, "methods": methods, "best": best, "warnings": list(self.warnings)}
        further = {each.task: each.document() for each in self.further}
        return document | ({"further": further} if further else {})
