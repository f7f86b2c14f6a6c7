"""The folder in which a streamed refinement keeps what is done.

    plan.json        what is refined, and how: the work on another input is never mixed in
    done.json        how far each stage is
    *.npy, *.faiss   what the stages have made

A stage says how far it is only after its part is on the disk, so that a kill at any moment, or a power cut, costs at
most the last part.
"""

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from entourage import __version__
from entourage.errors import FileError, InputError, is_full_disk
from entourage.stores import WorkFolder, write_json
from entourage.stores.filenames import DONE, PLAN
from entourage.stores.journal import to_disk
from entourage.stores.mapped import mapped_array
from entourage.stores.reading import readable

__all__ = ["Work"]


class Work:
    """The work of one refinement, in a `with` block; an error, a kill or Ctrl-C leaves it to be resumed.

    Its `tag` is a short word that is the same whenever it is resumed, and that no other work has.

    Parameters
    ----------
    folder : Path
        Where it is kept.
    asked : dict
        What is refined, and how, as JSON holds it.
    resume : bool
        Whether to go on with what is there.
    overwrite : bool
        Whether what is there may be given up.
    """

    def __init__(self, folder: Path, asked: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
        self.folder, self._asked = folder, asked
        if resume and not folder.exists():
            raise FileError(f"there is no {folder} to resume from; run without --resume to start")
        if folder.exists() and not (resume or overwrite):
            raise FileError(
                f"{folder} holds an interrupted refinement; resume it (--resume), or start again (--overwrite)"
            )
        self._work = WorkFolder(folder)
        self._resume = resume

    def done(self, stage: str) -> int:
        """How far a stage is."""
        return int(self._done.get(stage, 0))

    def is_done(self, stage: str) -> bool:
        """Whether a stage has been marked as done at all."""
        return stage in self._done

    def mark(self, stage: str, count: int, *written: NDArray[Any]) -> None:
        """Remember how far a stage is; the mapped arrays that it has written to are brought to the disk before."""
        self.note(stage, count, *written)

    def note(self, name: str, value: Any, *written: NDArray[Any]) -> None:
        """Remember what JSON can hold, for a later stage or for what is told at the end; `written` as in `mark`."""
        for array in written:
            array.flush()  # type: ignore[attr-defined]  # of a memory-mapped array
        self._done[name] = value
        new = self.folder / f"{DONE}.new"  # a kill while it is written leaves what was there
        write_json(new, self._done)
        to_disk(new)
        to_disk(self.folder)  # the names of files that were made since: a note must not outlive what it speaks of
        new.replace(self.folder / DONE)

    def noted(self, name: str) -> Any:
        """What was remembered."""
        return self._done[name]

    def file(self, name: str) -> Path:
        return self.folder / name

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A memory-mapped array of the folder, new or as it was left."""
        return mapped_array(self.folder / f"{name}.npy", shape, dtype)

    def keep(self, name: str, array: NDArray[Any]) -> None:
        """Write a whole array, in one step."""
        new = self.folder / f"{name}.new.npy"
        np.save(new, array, allow_pickle=False)
        to_disk(new)
        new.replace(self.folder / f"{name}.npy")

    def kept(self, name: str) -> NDArray[Any]:
        """An array that was written, memory-mapped."""
        path = self.folder / f"{name}.npy"
        if not path.exists():
            raise FileError(f"{self.folder} lacks {path.name}; start again (--overwrite)")
        with readable(path):
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def finish(self) -> None:
        """Delete the folder: all is done."""
        self._work.finish()

    def __enter__(self) -> "Work":
        self._work.__enter__()
        try:
            self._done = self._begun()
        except BaseException:
            self._work.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        hopeless = isinstance(error, InputError)  # the same input would be refused again
        if error is not None and (hopeless or not self._done):
            self.finish()
        elif isinstance(error, KeyboardInterrupt):
            error.kept = self.folder  # type: ignore[attr-defined]  # for whoever tells the user
        self._work.__exit__(kind, error, traceback)
        if is_full_disk(error) and self.folder.exists():
            raise FileError(
                f"there is no space left on the disk; {self.folder} holds what is done: free some, and add --resume"
            ) from error

    def _begun(self) -> dict[str, Any]:
        self.tag = uuid.uuid4().hex[:10]
        plan = {"entourage": __version__, "asked": self._asked, "tag": self.tag}
        if not self._resume or not (self.folder / PLAN).exists():
            self._work.begin(PLAN, plan)
            self._work.keep()
            return {}
        began = self._document(PLAN)
        before, self.tag = began.get("asked", {}), str(began.get("tag", self.tag))
        if before != json.loads(json.dumps(self._asked)):
            other = [name for name in self._asked if before.get(name) != self._asked[name]]
            raise FileError(
                f"{self.folder} holds the refinement of another {other[0] if other else 'input'}: "
                f"{before.get(other[0]) if other else before}, not {self._asked[other[0]] if other else self._asked}; "
                "resume with the same one, or start again (--overwrite)"
            )
        return self._document(DONE) if (self.folder / DONE).exists() else {}

    def _document(self, name: str) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise FileError(f"{self.folder / name} cannot be read ({error}); start again (--overwrite)") from error
