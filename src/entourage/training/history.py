"""What happened in a training so far, and what follows from it: which epoch is kept, and when to stop."""

from dataclasses import dataclass, field

__all__ = ["History"]


@dataclass
class History:
    """What happened so far: one entry per epoch, 0 being the state before training."""

    curve: list[dict] = field(default_factory=list)
    """{"epoch", "loss", "score"} for each epoch; loss is None for epoch 0, score is None without evaluation."""
    best_epoch: int = 0
    """The epoch whose weights are kept: the first with the best score, or the last without evaluation."""

    @property
    def epoch(self) -> int:
        return self.curve[-1]["epoch"] if self.curve else -1

    @property
    def best_score(self) -> float | None:
        return next((point["score"] for point in self.curve if point["epoch"] == self.best_epoch), None)

    def add(self, epoch: int, loss: float | None, score: float | None) -> bool:
        """Record an epoch; True if it is the best so far."""
        best = self.best_score
        self.curve.append({"epoch": epoch, "loss": loss, "score": score})
        better = best is None or (score is not None and score > best)
        if better:
            self.best_epoch = epoch
        return better

    def exhausted(self, epochs: int, patience: int, patience_from: int = 0) -> bool:
        """Whether training is over: all epochs done, or the last one scored is `patience` or more past the best.

        Where the best came before epoch `patience_from`, that epoch is what patience counts from.
        """
        scored = bool(self.curve) and self.curve[-1]["score"] is not None
        waited = self.epoch - max(self.best_epoch, patience_from)
        return self.epoch >= epochs or (scored and waited >= patience)
