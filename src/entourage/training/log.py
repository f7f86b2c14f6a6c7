"""The log of a run: one JSON object per line and epoch and, if asked for, the same numbers for TensorBoard."""

import json
from pathlib import Path

from entourage.errors import FileError, MissingExtra
from entourage.stores import whole_file
from entourage.stores.logs import read_log

__all__ = ["RunLog"]


class RunLog:
    """Writes {"epoch", "score", "loss", "seconds", "<unit>_per_second", "learning_rates"} after every epoch.

    path: the JSONL file. tensorboard: a folder for TensorBoard's event files, or None.
    """

    def __init__(self, path, *, tensorboard=None):
        self.path, self.tensorboard = Path(path), tensorboard
        self._board = None

    def open(self, last_epoch: int) -> None:
        """Go on after `last_epoch`, -1 for a new log: what a broken-off run wrote beyond it is dropped.

        An epoch is logged before it is saved, so that a run broken off in between logs it again, once.
        """
        self._board = self.tensorboard and _summary_writer(self.tensorboard, last_epoch + 1)
        kept = [json.dumps(entry) for entry in read_log(self.path) if entry["epoch"] <= last_epoch]
        try:
            with whole_file(self.path) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        except OSError as error:
            raise FileError(f"the log {self.path} cannot be written ({error}); choose another folder") from error

    def add(self, entry: dict) -> None:
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
        if self._board:
            self._board.close()


def _summary_writer(folder, first_epoch: int):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("tensorboard", "a log for TensorBoard") from error
    return SummaryWriter(str(folder), purge_step=first_epoch)
