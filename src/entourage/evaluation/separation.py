"""How well a confidence tells queries with a match from those without one, over classes as they might have been drawn.

A confidence is any number that is higher where a match is more likely; no scale is assumed. N queries, of C known and
U unknown classes, B resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.evaluation.bootstrap import RESAMPLES, Interval
from entourage.runtime.randomness import generator
from entourage.values import BoolArray, FloatArray, LabelArray, label_codes

__all__ = ["OpenSetThreshold", "Wins", "auroc", "compare_separation", "false_positive_rate", "open_set_threshold"]

TPR = 0.95


def auroc(confidence: ArrayLike, known: ArrayLike) -> float:
    """The area under the ROC curve: how often a known query has the higher confidence of a pair, ties counting half.

    Parameters
    ----------
    confidence : array-like of shape (N,)
    known : bool array-like of shape (N,)
        Which queries have a match; some must and some must not.

    Returns
    -------
    float

    Examples
    --------
    >>> auroc([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.75
    """
    confidence, known = _checked(confidence, known)
    return Wins.of(confidence, known, known.astype(int)).auroc


def false_positive_rate(confidence: ArrayLike, known: ArrayLike, tpr: float = TPR) -> float:
    """The share of unknown queries that are taken for known where that share of the known ones is recognised.

    Parameters
    ----------
    confidence, known
        As in `auroc`.
    tpr : float
        The least share of the known that must be recognised.

    Returns
    -------
    float

    Examples
    --------
    >>> false_positive_rate([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.5
    """
    confidence, known = _checked(confidence, known)
    return float((confidence[~known] >= _threshold(confidence[known], tpr)).mean())


@dataclass(frozen=True)
class OpenSetThreshold:
    """From which confidence on a query counts as known, and what that costs; made by `open_set_threshold`.

    Parameters
    ----------
    value, tpr, fpr
        As the attributes of these names.
    """

    value: float
    """The threshold: a query with this confidence or a higher one counts as known."""
    tpr: float
    """The share of the known queries of the sample that count as known."""
    fpr: float | None = None
    """The share of the unknown ones that do, too; None if none were given."""


def open_set_threshold(known: ArrayLike, unknown: ArrayLike | None = None, *, tpr: float = TPR) -> OpenSetThreshold:
    """Set the threshold from which on a query counts as one that has a match, from a sample of queries.

    Parameters
    ----------
    known : array-like of shape (N,)
        Of queries known to have a match in the gallery, the confidence or any other score that is higher where a match
        is more likely: some hundreds, for the threshold is as uncertain as the sample is small.
    unknown : array-like of shape (U,), optional
        That of queries known to have none, to see how many of these are taken for known.
    tpr : float, default 0.95
        The least share of the known queries that must be recognised.

    Returns
    -------
    OpenSetThreshold

    Examples
    --------
    >>> open_set_threshold([0.9, 0.8, 0.7, 0.4], [0.75, 0.3], tpr=0.75)
    OpenSetThreshold(value=0.7, tpr=0.75, fpr=0.5)
    """
    ours = _scores(known, "known")
    value = _threshold(ours, tpr)
    theirs = None if unknown is None else _scores(unknown, "unknown")
    fpr = None if theirs is None else float((theirs >= value).mean())
    return OpenSetThreshold(value, float((ours >= value).mean()), fpr)


def _threshold(known: NDArray[np.float64], tpr: float) -> float:
    """The highest value that at least this share of known queries reaches."""
    if not (isinstance(tpr, Real) and 0 < float(tpr) <= 1):
        raise InputError(f"tpr is {tpr!r}; wanted 0 < tpr ≤ 1, the share of known queries to recognise")
    needed = int(np.ceil(round(tpr * len(known), 6)))  # 0.07 of 100 is 7, and not 7.000000000000001
    return float(np.sort(known)[len(known) - max(needed, 1)])


def _scores(values: ArrayLike, name: str) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not len(scores):
        raise InputError(f"{name} has shape {scores.shape}; wanted (N,), the confidence of one query or more")
    if not np.isfinite(scores).all():
        raise InputError(f"some confidence in {name} is not a finite number; wanted one for each query")
    return scores


@dataclass(frozen=True, eq=False)
class Wins:
    """How many pairs of a known and an unknown query are told apart, class by class."""

    pairs: NDArray[np.float64]
    """(C, U) pairs in which the known query has the higher confidence, ties counting half."""
    known: NDArray[np.float64]
    """(C,) how many queries each known class has."""
    unknown: NDArray[np.float64]
    """(U,) how many queries each unknown class has."""

    @classmethod
    def of(cls, confidence: FloatArray, known: BoolArray, labels: LabelArray) -> "Wins":
        """Count the pairs of queries with a confidence (N,), some of them known (N,), of these classes (N,)."""
        ours, theirs = label_codes(labels[known]), label_codes(labels[~known])
        below, level = np.zeros((len(ours), theirs.max() + 1)), np.zeros((len(ours), theirs.max() + 1))
        for each in range(theirs.max() + 1):
            others = np.sort(confidence[~known][theirs == each])
            left, right = (np.searchsorted(others, confidence[known], side) for side in ("left", "right"))
            below[:, each], level[:, each] = left, right - left
        pairs = np.zeros((ours.max() + 1, below.shape[1]))
        np.add.at(pairs, ours, below + level / 2)
        return cls(pairs, np.bincount(ours).astype(float), np.bincount(theirs).astype(float))

    @property
    def auroc(self) -> float:
        return float(self.pairs.sum() / (self.known.sum() * self.unknown.sum()))

    def resampled(self, known: NDArray[np.int64], unknown: NDArray[np.int64]) -> NDArray[np.float64]:
        """AUROC (B,) where classes are drawn so often: known (B, C) and unknown (B, U)."""
        won = np.einsum("bc,cu,bu->b", known, self.pairs, unknown, optimize=True)
        return np.asarray(won / ((known @ self.known) * (unknown @ self.unknown)))


def compare_separation(own: Sequence[Wins], reference: Sequence[Wins], seed: int = 0) -> Interval:
    """Compare the AUROC of two methods on the same queries, with a 95 % interval by resampling classes.

    Parameters
    ----------
    own, reference : sequences of Wins
        Of each method, one for each class split or seed; their AUROC are averaged.
    seed : int

    Returns
    -------
    Interval
        Known and unknown classes are drawn apart from each other.
    """
    rng, differences = generator(seed), []
    for one, other in zip(own, reference, strict=True):
        known, unknown = _drawn(len(one.known), rng), _drawn(len(one.unknown), rng)
        differences.append(one.resampled(known, unknown) - other.resampled(known, unknown))
    low, high = np.quantile(np.mean(differences, axis=0), [0.025, 0.975])
    gained = np.mean([one.auroc - other.auroc for one, other in zip(own, reference, strict=True)])
    return Interval(float(gained), float(low), float(high))


def _drawn(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each of so many classes is drawn, (B, count)."""
    return np.stack([np.bincount(rng.integers(count, size=count), minlength=count) for _ in range(RESAMPLES)])


def _checked(confidence: ArrayLike, known: ArrayLike) -> tuple[NDArray[np.float64], BoolArray]:
    values, flags = np.asarray(confidence, np.float64), np.asarray(known, bool)
    if values.shape != flags.shape or values.ndim != 1:
        raise InputError(f"confidence has shape {values.shape} and known {flags.shape}; give both as (N,)")
    if not np.isfinite(values).all():
        raise InputError("some confidence is not a finite number; wanted one for each query")
    if flags.all() or not flags.any():
        raise InputError(
            f"{int(flags.sum())} of {len(flags)} queries are known; wanted some known and some unknown ones"
        )
    return values, flags
