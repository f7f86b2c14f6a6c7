"""A folder that keeps unfinished work, to be resumed: RUN.partial, VECTORS.parts.

It is deleted when the work is done, unless a user has put something of theirs into it meanwhile.
"""

from types import TracebackType
from typing import Any

from entourage.runtime.warnings import warn_caller
from entourage.stores.atomic import write_json
from entourage.stores.changes import claimed
from entourage.stores.journal import to_disk
from entourage.stores.paths import StrPath
from entourage.stores.replacing import check_folder, foreign_in

__all__ = ["WorkFolder"]


class WorkFolder:
    """A folder in which one process at a time works, from the beginning of a `with` block to its end.

    It is there with its mark or not at all, whenever the process is killed.

    Parameters
    ----------
    path : str or path-like
        The folder; one that is there is of no other program, or a FileError is raised.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = check_folder(path, overwrite=True)
        self._claim = claimed(path)

    def begin(self, mark: str, content: dict[str, Any]) -> None:
        """Begin anew; what is there is kept aside until `keep` or `finish`.

        Parameters
        ----------
        mark : str
            The name of the file that folders of this kind are known by.
        content : dict
            What it holds; "entourage" is one of its keys.
        """
        self._claim.new.mkdir()
        write_json(self._claim.new / mark, content)
        to_disk(self._claim.new / mark)  # a folder whose mark is empty would be one of another program
        self._claim.put_aside()
        self._claim.put_in_place(overwrite=False)

    def undo(self) -> None:
        """Delete the folder; what was there before comes back."""
        self._delete()
        self._claim.restore()

    def keep(self) -> None:
        """Forget what was there before."""
        self._claim.empty()

    def finish(self) -> None:
        """Delete the folder: the work is done."""
        self.keep()
        self._delete()

    def _delete(self) -> None:
        foreign = foreign_in(self.path)
        if foreign is None:
            self._claim.delete()
            return
        warn_caller(
            f"{self.path} is no longer needed but holds {foreign}, which Entourage did not put there; "
            "move that away and delete the folder"
        )

    def __enter__(self) -> "WorkFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._claim.release()
