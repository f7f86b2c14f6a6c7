"""What a comparison gives: the scores of every method with every seed, what they cost, and tables of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.comparison.intervals import JUDGED_BY, Scores, against_best, intervals_between, leader
from entourage.comparison.tables import certainty_table, scores_table, settings_table, unfolded
from entourage.evaluation.bootstrap import harm
from entourage.runtime.config import check_name

__all__ = ["Comparison", "MethodResult", "SeedResult"]


@dataclass(frozen=True)
class SeedResult:
    """The result of one method with one seed."""

    per_query: dict[str, np.ndarray]
    """recall@1, r-precision, map@r and what else was asked for, of each test item, (N,)."""
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

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {100 * values.mean():.2f} %" for name, values in self.per_query.items())
        return f"SeedResult({scores})"


@dataclass(frozen=True)
class MethodResult:
    """The result of one method with every seed, or why it was left out."""

    method: str
    """Its name."""
    seeds: tuple[SeedResult, ...] = ()
    """Results with seeds 0, 1, ..."""
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
        """Scores of each test item, averaged over the seeds; name -> (N,)."""
        return {
            name: np.mean([each.per_query[name] for each in self.seeds], axis=0) for name in self.seeds[0].per_query
        }

    def competes_with(self, other: "MethodResult") -> bool:
        """Whether the other is a rival: another method that is no refiner, and untrained if this refiner is."""
        if other.skipped or other.is_refiner or other.method == self.method:
            return False
        return self.is_trained or not self.is_refiner or not other.is_trained

    def document(self, raw: "MethodResult", rivals: dict[str, Scores], labels: np.ndarray) -> dict[str, Any]:
        """Summarise the result for JSON, with differences to raw and to the best of its rivals.

        Parameters
        ----------
        raw : MethodResult
            That of the raw vectors.
        rivals : name -> metric -> (N,)
            Scores of the methods it competes with.
        labels : ndarray of shape (N,)
            Classes of the test items, which are resampled for the intervals.

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
            "settings_are": self.settings_are,
            "settings": [each.settings for each in self.seeds],
            "extended": [list(each.extended) for each in self.seeds],
            "at_end": [list(each.at_end) for each in self.seeds],
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

    def __repr__(self) -> str:
        scored = [each for each in self.results if not each.skipped]
        best = max(scored, key=lambda each: float(each.per_query["map@r"].mean()))
        methods = f"{len(self.results)} methods on {len(self.ids):,} test items"
        return f"Comparison({methods}; highest MAP@R: {best.method}, {best._summary})"

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
        document = self.document()
        tables = scores_table(document), certainty_table(document), settings_table(document)
        return "\n\n".join(text for table in tables if (text := unfolded(table)))

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
            methods.append(each.document(raw, rivals, self.labels))
        best = {metric: leader(scores, metric, self.labels) for metric in JUDGED_BY}
        return {"protocol": self.protocol, "methods": methods, "best": best, "warnings": list(self.warnings)}
