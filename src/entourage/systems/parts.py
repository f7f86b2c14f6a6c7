"""What a training is put together from: its modules, its run folder, batches that note what cannot be decoded."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from torch import nn

from entourage.data.batches import PictureBatch, PictureBatches
from entourage.errors import FileError, InputError
from entourage.stores.filenames import CHECKPOINT

__all__ = ["NotedBatches", "TrainedParts", "check_folder", "head_first"]

_HEAD = "projection"  # the part of every encoder that makes its vectors of what it has pooled


class TrainedParts(nn.ModuleDict):
    """All that is trained, by name; what is frozen stays in evaluation mode.

    Parameters
    ----------
    parts : dict of str to torch.nn.Module
        What is trained.
    frozen : list of torch.nn.Module
        Modules within the parts that keep their statistics, batch norms for instance.
    """

    def __init__(self, parts: dict[str, nn.Module], frozen: list[nn.Module]) -> None:
        super().__init__(parts)
        self._frozen = frozen  # a list is no part of the model's state

    def train(self, mode: bool = True) -> "TrainedParts":
        """Set training mode, or evaluation mode, which what is frozen is always in."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self


@dataclass(frozen=True)
class NotedBatches:
    """Batches of pictures; once they have been read, those that cannot be decoded are noted in their training."""

    pictures: PictureBatches
    note: Callable[[Iterable[str]], None]

    def __len__(self) -> int:
        return len(self.pictures)

    def __iter__(self) -> Iterator[PictureBatch]:
        try:
            yield from self.pictures
        finally:
            self.note(self.pictures.corrupt)


def head_first(
    encoder: nn.Module, epochs: int, batches: Callable[[int], NotedBatches]
) -> Callable[[int], NotedBatches]:
    """The same batches; before an epoch that is to train the encoder's head alone, all else of it is frozen.

    Parameters
    ----------
    encoder : torch.nn.Module
        An encoder; what is frozen for good stays so.
    epochs : int
        How many epochs, the first ones, train the head alone.
    batches : callable
        Called with an epoch, gives its batches.

    Returns
    -------
    callable
        To be called before every epoch.
    """
    rest = [p for name, p in encoder.named_parameters() if _HEAD not in name.split(".") and p.requires_grad]

    def of_epoch(epoch: int) -> NotedBatches:
        for parameter in rest:
            parameter.requires_grad_(epoch > epochs)
        return batches(epoch)

    return of_epoch


def check_folder(folder: str | PathLike[str] | None, resume: bool) -> None:
    """Refuse a run folder that holds a run which is not to be resumed, and none where one is to be."""
    if folder is None:
        if resume:
            raise InputError("resume is True without a run folder; wanted the folder of the run to resume")
        return
    if (Path(folder) / CHECKPOINT).exists() and not resume:
        raise FileError(f"{folder} holds a run already; resume it (--resume, resume=True) or choose another folder")
