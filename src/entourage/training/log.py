"""The log of a run: one JSON object per line and epoch and, if asked for, the same numbers for TensorBoard."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

from entourage.errors import FileError, MissingExtra
from entourage.stores import whole_file
from entourage.stores.logs import read_log

__all__ = ["RunLog"]


class RunLog:
    """Writes {"epoch", "score", "loss", "seconds", "<unit>_per_second", "learning_rates"} after every epoch.

    Parameters
    ----------
    path : path-like
        The JSONL file, in a folder that exists.
    tensorboard : path-like, optional
        A folder for TensorBoard's event files.
    """

    def __init__(self, path: str | PathLike[str], *, tensorboard: str | PathLike[str] | None = None) -> None:
        self.path, self.tensorboard = Path(path), tensorboard
        self._board: Any = None

    def open(self, last_epoch: int) -> None:
        """Go on after an epoch; what an interrupted run wrote beyond it is dropped.

        An epoch is logged before it is saved, so that a run interrupted in between logs it again.

        Parameters
        ----------
        last_epoch : int
            The last epoch whose entry is kept; -1 starts a new log.
        """
        self._board = self.tensorboard and _summary_writer(self.tensorboard, last_epoch + 1)
        kept = [json.dumps(entry) for entry in read_log(self.path) if entry["epoch"] <= last_epoch]
        try:
            with whole_file(self.path) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        except OSError as error:
            raise FileError(f"the log {self.path} cannot be written ({error}); choose another folder") from error

    def add(self, entry: dict[str, Any]) -> None:
        """Append the entry of an epoch."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if self._board:
            rates = {f"learning_rate/{i}": rate for i, rate in enumerate(entry["learning_rates"])}
            single = {name: value for name, value in entry.items() if name not in ("epoch", "learning_rates")}
            for name, value in (single | rates).items():
                if value is not None:
                    self._board.add_scalar(name, value, entry["epoch"])
            self._board.flush()

    def close(self) -> None:
        """Close TensorBoard's file; the JSONL file is complete after every entry."""
        if self._board:
            self._board.close()


def _summary_writer(folder: str | PathLike[str], first_epoch: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("tensorboard", "a log for TensorBoard") from error
    return SummaryWriter(str(folder), purge_step=first_epoch)
