"""Comparisons on several class splits as one: their queries one after the other."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from entourage.comparison.results import Comparison, MethodResult
from entourage.evaluation.bootstrap import resampled

__all__ = ["pooled"]

_OF_A_SPLIT = ("training_items", "training_classes", "test_items", "test_classes", "queries", "drawn")


def pooled(comparisons: Sequence[Comparison]) -> Comparison:
    """Put comparisons of the same methods under the same protocols together.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each class split. A gallery that some splits cannot give is pooled of the others.

    Returns
    -------
    Comparison
        Scores are means over all queries. A method that was left out of one split is left out.
    """
    if len(comparisons) == 1:
        return comparisons[0]
    by_task: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        for each in (comparison, *comparison.further):
            by_task.setdefault(each.task, []).append(each)
    first, *further = (_pooled_task(parts) for parts in by_task.values())
    return replace(first, further=tuple(further))


def _pooled_task(parts: Sequence[Comparison]) -> Comparison:
    labels = np.concatenate([part.labels for part in parts])
    by_split = [{name: part.protocol[name] for name in _OF_A_SPLIT if name in part.protocol} for part in parts]
    shared = {name: value for name, value in parts[0].protocol.items() if name not in _OF_A_SPLIT}
    counted = {"splits": len(parts), "intervals": resampled(labels), "by_split": by_split}
    without = sum(part.protocol["queries_without_match"] for part in parts)
    if "drawn" in parts[0].protocol:
        counted["drawn"] = "; ".join(dict.fromkeys(part.protocol["drawn"] for part in parts))
    opened = [part.open_set for part in parts if part.open_set is not None]
    return Comparison(
        shared | counted | {"queries_without_match": without},
        tuple(map(_pooled_method, zip(*(part.results for part in parts), strict=True))),
        np.concatenate([part.ids for part in parts]),
        labels,
        tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        parts[0].task,
        reduce(add, opened) if opened else None,
    )


def _pooled_method(results: Sequence[MethodResult]) -> MethodResult:
    reasons = [f"{result.skipped} (class split {number})" for number, result in enumerate(results) if result.skipped]
    if reasons:
        return replace(results[0], seeds=(), skipped=reasons[0])
    return replace(results[0], seeds=tuple(seed for result in results for seed in result.seeds))
