"""Settings of the fit loop: how to train, where its checkpoint is kept, and how it reports."""

from dataclasses import dataclass
from pathlib import Path

from entourage.errors import InputError
from entourage.runtime.progress import Progress
from entourage.training.log import RunLog
from entourage.training.schedule import Schedule

__all__ = ["Checkpointing", "FitSettings", "Reporting"]


@dataclass(frozen=True)
class FitSettings:
    """How a model is trained."""

    epochs: int
    """Passes over the training data, at most."""
    patience: int = 5
    """Training stops when the best score is this many epochs old."""
    patience_from: int = 0
    """The epoch patience counts from where the best came before it."""
    evaluate_every: int = 1
    """Epochs between two evaluations; the state before training and the last epoch are always evaluated."""
    seed: int = 0
    """What is random within an epoch, dropout for instance, is drawn from (seed, epoch, rank of the process)."""
    clip: float | None = None
    """The largest norm of all gradients together; None for no limit."""
    schedule: Schedule | None = None
    """A factor on the learning rates of every epoch; None keeps them as they are."""

    def __post_init__(self) -> None:
        for name, least in (("epochs", 0), ("evaluate_every", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; wanted {least} or more")
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"clip is {self.clip}; wanted more than 0, or None for no limit")

    def rate_factor(self, epoch: int) -> float:
        """What the learning rates are multiplied by in an epoch; 1 without a schedule, and before training."""
        return self.schedule(epoch) if self.schedule and epoch else 1.0


@dataclass(frozen=True)
class Checkpointing:
    """Where the state of a run is kept during training, so that it can be resumed."""

    path: Path
    """A file replaced after every epoch; the caller removes it once the result is safe."""
    fingerprint: str = ""
    """Names data and settings: a checkpoint with another fingerprint is refused."""
    resume: bool = False
    """Whether to resume from the file if it exists; if not, it is replaced."""


@dataclass(frozen=True)
class Reporting:
    """How a run reports what it does."""

    log: RunLog | None = None
    """Gets an entry for every epoch."""
    title: str = "training"
    """What the progress bar is called."""
    unit: str = "items"
    """What a batch consists of, as in "310 items/s"."""
    metric: str = "score"
    """What `evaluate` measures, as in "best held-out MAP@R 41.2 %"."""
    progress: Progress | None = None
    """Called as progress(title, done, total) after every batch."""
