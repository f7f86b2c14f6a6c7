"""What happened in a training so far, and what follows from it: which epoch is kept, and when to stop."""

from dataclasses import dataclass, field
from typing import Any

from entourage.values import brief

__all__ = ["History"]


@dataclass
class History:
    """The epochs of a training so far; epoch 0 is the state before training."""

    curve: list[dict[str, Any]] = field(default_factory=list)
    """{"epoch", "loss", "score"} for each epoch; loss is None for epoch 0, score is None without evaluation."""
    best_epoch: int = 0
    """The epoch whose weights are kept: the first with the best score, or the last without evaluation."""

    __repr__ = brief

    @property
    def epoch(self) -> int:
        """The last epoch that is over; -1 if none is."""
        return self.curve[-1]["epoch"] if self.curve else -1

    @property
    def best_score(self) -> float | None:
        """The score of the epoch that is kept; None without evaluation."""
        return next((point["score"] for point in self.curve if point["epoch"] == self.best_epoch), None)

    def add(self, epoch: int, loss: float | None, score: float | None) -> bool:
        """Record an epoch.

        Parameters
        ----------
        epoch : int
            Its number.
        loss : float or None
            The mean loss of its batches.
        score : float or None
            How good the model was after it, higher being better; None if it was not evaluated.

        Returns
        -------
        bool
            Whether it is the best so far, whose weights are to be kept.
        """
        best = self.best_score
        self.curve.append({"epoch": epoch, "loss": loss, "score": score})
        better = best is None or (score is not None and score > best)
        if better:
            self.best_epoch = epoch
        return better

    def exhausted(self, epochs: int, patience: int, patience_from: int = 0) -> bool:
        """Whether training is over.

        Parameters
        ----------
        epochs : int
            How many there are at most.
        patience : int
            It is over if the last epoch has a score and is this many epochs or more past the best one.
        patience_from : int
            What patience counts from where the best epoch came before it.

        Returns
        -------
        bool
            True if no further epoch is to be trained.
        """
        scored = bool(self.curve) and self.curve[-1]["score"] is not None
        waited = self.epoch - max(self.best_epoch, patience_from)
        return self.epoch >= epochs or (scored and waited >= patience)
