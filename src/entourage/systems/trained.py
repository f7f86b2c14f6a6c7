"""What every system takes besides pictures and settings, and what it returns; without torch."""

from os import PathLike
from typing import Any, NamedTuple, TypedDict

from entourage.runtime.progress import ShowProgress
from entourage.systems.settings import EncoderSettings
from entourage.training.history import History
from entourage.values import brief

__all__ = ["RunOptions", "TrainedEncoder", "is_refitted", "nothing_learned"]


class RunOptions(TypedDict, total=False):
    """Options that every system takes besides images and settings."""

    run_folder: str | PathLike[str] | None
    """Where the checkpoint and the log are kept, so that the run can be resumed; None keeps nothing."""
    resume: bool
    """Whether to resume from the checkpoint in the run folder; if not, a folder that has one is refused."""
    strict: bool
    """Whether a picture that cannot be decoded raises CorruptImage; if not, it is left out. Among several processes,
    which must stay in step, it always raises."""
    progress: ShowProgress
    """True shows progress on standard error; a callable is called as progress(title, done, total)."""


class TrainedEncoder(NamedTuple):
    """The result of a training."""

    encoder: Any
    """The encoder (an `Encoder`, and a torch module) with the weights of its best epoch, or trained anew as long."""
    history: History
    """Loss and score of every epoch, and which epoch was chosen."""
    corrupt: list[str]
    """Paths of the pictures that could not be decoded and were left out, each once; of training, those drawn."""

    def __repr__(self) -> str:
        return brief(self)


def is_refitted(settings: EncoderSettings, history: History) -> bool:
    """Whether the encoder is one trained anew, on all classes, for as many epochs as held-out classes chose.

    Parameters
    ----------
    settings : EncoderSettings
        The settings of the training.
    history : History
        Of the training that chose the epoch.

    Returns
    -------
    bool
        False also where no class was held out, or no epoch was better than the encoder before training.
    """
    return settings.refit and history.best_score is not None and history.best_epoch > 0


def nothing_learned(history: History) -> list[str]:
    """Warn of a run in which no epoch improved on the encoder before training.

    Parameters
    ----------
    history : History
        The history of the run.

    Returns
    -------
    list of str
        One warning; empty if some epoch improved.
    """
    if history.best_epoch or history.epoch < 1 or history.best_score is None:
        return []
    return [
        f"no epoch (of {history.epoch}) did better on the held-out classes than the encoder before training (MAP@R "
        f"{100 * history.best_score:.2f} %), so its initial weights are kept; change the learning rate, allow more "
        "epochs (patience), or hold out another share of the classes (validation_share; 0 keeps the last epoch)"
    ]
