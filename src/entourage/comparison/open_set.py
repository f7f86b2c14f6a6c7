"""How well methods tell queries with a match from those without one: queries of classes that the gallery does not hold.

N queries of all class splits together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.evaluation.separation import Wins, compare_separation, false_positive_rate
from entourage.values import BoolArray, LabelArray, brief

__all__ = ["OpenSet"]

Confidences = Sequence[Sequence[np.ndarray]]
"""By class split and seed, how sure a method is of each query."""


@dataclass(frozen=True, eq=False)
class OpenSet:
    """Which queries have a match, by class split."""

    labels: tuple[LabelArray, ...]
    """Their classes."""
    known: tuple[BoolArray, ...]
    """Whether each class is in the gallery."""

    __repr__ = brief

    def __add__(self, other: "OpenSet") -> "OpenSet":
        return OpenSet(self.labels + other.labels, self.known + other.known)

    def document(self, own: Confidences, raw: Confidences) -> dict[str, Any]:
        """Summarise how well a confidence tells them apart, and how much better than that of the raw vectors.

        Parameters
        ----------
        own, raw : by class split and seed, arrays of shape (N,)
            The confidence of the method and that of the raw vectors, which is the best cosine.

        Returns
        -------
        dict
            "auroc", "fpr@95tpr" and "auroc_vs_raw", averaged over seeds and splits.
        """
        wins, others = self._wins(own), self._wins(raw)
        rates = [
            np.mean([false_positive_rate(each, known) for each in seeds])
            for seeds, known in zip(own, self.known, strict=True)
        ]
        return {
            "auroc": float(np.mean([each.auroc for each in wins])),
            "fpr@95tpr": float(np.mean(rates)),
            "auroc_vs_raw": compare_separation(wins, others).document(),
        }

    def _wins(self, confidences: Confidences) -> list[Wins]:
        """Of each class split, the mean over the seeds."""
        means = []
        for seeds, known, labels in zip(confidences, self.known, self.labels, strict=True):
            wins = [Wins.of(each, known, labels) for each in seeds]
            pairs = np.mean([each.pairs for each in wins], axis=0)
            means.append(Wins(pairs, wins[0].known, wins[0].unknown))
        return means
