"""How sure a difference between two methods is, and whom it hurts.

Both methods ranked the same N queries, so their values are compared query by query.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from entourage.errors import InputError
from entourage.runtime.randomness import generator

__all__ = ["Interval", "harm", "paired_bootstrap", "paired_bootstraps"]

RESAMPLES = 1000
# Means over seeds of equal values may differ by rounding; they are unchanged.
_UNCHANGED = 1e-9


@dataclass(frozen=True)
class Interval:
    """The mean difference, and the interval that holds it with the asked-for confidence."""

    difference: float
    low: float
    high: float

    def document(self) -> dict:
        return asdict(self)


def paired_bootstrap(
    values, reference, *, resamples: int = RESAMPLES, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """Mean of values - reference, both (N,) over the same queries, with the percentile interval of resampled queries.

    >>> paired_bootstrap([0.5, 1.0], [0.25, 0.75])
    Interval(difference=0.25, low=0.25, high=0.25)
    """
    options = {"resamples": resamples, "confidence": confidence, "seed": seed}
    return paired_bootstraps({"": values}, {"": reference}, **options)[""]


def paired_bootstraps(
    values: Mapping, reference: Mapping, *, resamples: int = RESAMPLES, confidence: float = 0.95, seed: int = 0
) -> dict[str, Interval]:
    """The same of M metrics by name, whose values are of the same queries: all by the same resamples, drawn once."""
    differences = np.stack([_differences(values[name], reference[name]) for name in values], axis=1)  # (N, M)
    tail = (1 - confidence) / 2
    ends = np.quantile(_resampled_means(differences, resamples, seed), [tail, 1 - tail], axis=0)  # (2, M)
    columns = zip(values, differences.mean(axis=0).tolist(), *ends.tolist(), strict=True)
    return {name: Interval(*numbers) for name, *numbers in columns}


def _differences(values, reference) -> np.ndarray:
    values, reference = np.asarray(values, np.float64), np.asarray(reference, np.float64)
    if values.shape != reference.shape or values.ndim != 1 or not len(values):
        raise InputError(
            f"values have shape {values.shape} and the reference {reference.shape}; wanted one of each per query, (N,)"
        )
    return values - reference


def _resampled_means(differences: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(resamples, M) of differences (N, M): how often each query is drawn, times what it differs by."""
    count, rng = len(differences), generator(seed)
    drawn = (np.bincount(rng.integers(count, size=count), minlength=count) for _ in range(resamples))
    return np.stack([often @ differences for often in drawn]) / count


def harm(ids, labels, before: dict, after: dict) -> dict:
    """Who won and who lost: counts of queries, the classes that got worse and the queries that did, worst first.

    ids and labels (N,) of the queries; before and after: "recall@1" and "map@r" of each query, (N,). A class's won
    and lost count its queries by average precision.
    """
    ids, labels = np.asarray(ids), np.asarray(labels)
    change = after["map@r"] - before["map@r"]
    queries = [
        {
            "id": ids[row].item(),
            "class": labels[row].item(),
            "map@r_before": float(before["map@r"][row]),
            "map@r_after": float(after["map@r"][row]),
        }
        for row in np.argsort(change, kind="stable")
        if change[row] < -_UNCHANGED
    ]
    classes = [_class_changes(label, labels == label, before["map@r"], after["map@r"]) for label in np.unique(labels)]
    worse = [entry for entry in classes if entry["map@r_after"] < entry["map@r_before"] - _UNCHANGED]
    return {
        "recall@1": _counts(after["recall@1"] - before["recall@1"]),
        "map@r": _counts(change),
        "classes": sorted(worse, key=lambda entry: entry["map@r_after"] - entry["map@r_before"]),
        "queries": queries,
    }


def _class_changes(label, members, before, after) -> dict:
    counts = _counts((after - before)[members])
    return {
        "class": label.item(),
        "items": int(members.sum()),
        "map@r_before": float(before[members].mean()),
        "map@r_after": float(after[members].mean()),
        "won": counts["won"],
        "lost": counts["lost"],
    }


def _counts(change) -> dict:
    won, lost = int((change > _UNCHANGED).sum()), int((change < -_UNCHANGED).sum())
    return {"won": won, "lost": lost, "unchanged": len(change) - won - lost}
