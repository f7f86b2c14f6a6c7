"""How certain the differences between methods are: intervals over classes, the best rival, and which method is best.

N test items, of which every method has scores.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entourage.evaluation.bootstrap import Interval, intervals_over_classes

__all__ = ["JUDGED_BY", "Scores", "against_best", "intervals_between", "leader"]

JUDGED_BY = ("recall@1", "map@r")
Scores = Mapping[str, np.ndarray]
"""The scores of a method: metric -> (N,)."""


def intervals_between(own: Scores, reference: Scores, labels: np.ndarray) -> dict[str, Interval]:
    """Differences of one method to another by metric, with intervals over classes."""
    names = [name for name in own if name != "r-precision"]
    return intervals_over_classes({name: own[name] for name in names}, reference, labels)


def against_best(own: Scores, rivals: Mapping[str, Scores], labels: np.ndarray) -> dict[str, dict[str, Any]]:
    """Compare a method with the best of its rivals by each metric.

    The best is known only after the fact, from the same test items: its score is flattered by that, and a method that
    beats it has beaten them all.

    Parameters
    ----------
    own : metric -> (N,)
        Scores of the method.
    rivals : name -> metric -> (N,)
        Scores of what it is compared with; may be empty.
    labels : ndarray of shape (N,)
        The classes, which are resampled.

    Returns
    -------
    dict
        By metric: {"rival", "difference", "low", "high"}; empty without rivals.
    """
    found = {}
    for name in JUDGED_BY if rivals else ():
        best = max(rivals, key=lambda rival: float(rivals[rival][name].mean()))
        interval = intervals_between({name: own[name]}, rivals[best], labels)[name]
        found[name] = {"rival": best, **interval.document()}
    return found


def leader(scores: Mapping[str, Scores], metric: str, labels: np.ndarray) -> dict[str, Any]:
    """Find the method with the highest score, and those that it does not beat for certain.

    Parameters
    ----------
    scores : name -> metric -> (N,)
        Scores of all methods.
    metric : str
    labels : ndarray of shape (N,)
        The classes, which are resampled.

    Returns
    -------
    dict
        {"method", "tied_with"}: the second names the methods whose interval of the difference contains 0. Where there
        are none the first is best.
    """
    first = max(scores, key=lambda name: float(scores[name][metric].mean()))
    best = {metric: scores[first][metric]}
    tied: Sequence[str] = [
        name
        for name, other in scores.items()
        if name != first and not intervals_between(best, other, labels)[metric].excludes_zero
    ]
    return {"method": first, "tied_with": tied}
