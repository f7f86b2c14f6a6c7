"""Outputs that appear whole or not at all, and several of them as one.

    with Outputs(overwrite=...) as outputs:
        file = outputs.file("refined.npy")       # claimed now: nobody else writes it meanwhile
        folder = outputs.folder("run")
        ...                                      # write to `file`, fill `folder`: both are beside their places
                                                 # here both appear; after an exception neither

1. What a killed process left of an output is put in order, and one place decides whether it may be replaced
   (replacing.py).
2. The output is claimed: until the end nobody else writes it (claims.py).
3. It is written beside its place; at the end it is checked (written.py) and brought to the disk.
4. Whether it may replace what is there is decided again: a user may have put something there meanwhile.
5. Each takes its place in one step; a change of several is written down first (changes.py), so that whoever comes after
   a kill finishes it. What may not be replaced is not, even if it came into being just now.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from entourage.runtime.interrupts import without_interruption
from entourage.stores.changes import claimed, finish, put_all_in_place
from entourage.stores.claims import Claim
from entourage.stores.journal import to_disk
from entourage.stores.paths import StrPath
from entourage.stores.replacing import check_file, check_file_still, check_folder, check_folder_still
from entourage.stores.written import check_written

__all__ = ["Outputs", "delete", "new_folder", "whole_file", "write_json"]


class Outputs:
    """Files and folders that change as one, at the end of a `with` block; none of them if it raises.

    Parameters
    ----------
    overwrite : bool
        Whether what is there may be replaced, as far as `check_file` and `check_folder` allow it.
    """

    def __init__(self, *, overwrite: bool) -> None:
        self.overwrite = overwrite
        self._claims: list[Claim] = []
        self._checks: list[Callable[[], object]] = []

    def file(self, path: StrPath, ours: Callable[[Path], bool] | None = None) -> Path:
        """Claim a file.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        ours : callable, optional
            As `check_file` takes it.

        Returns
        -------
        Path
            An empty file to write to; its ending is that of `path`.
        """
        new = self._claim(check_file(path, overwrite=self.overwrite, ours=ours))
        self._checks.append(lambda: check_file_still(path, ours))
        new.touch()
        return new

    def folder(self, path: StrPath) -> Path:
        """Claim a folder.

        Parameters
        ----------
        path : str or path-like
            The folder to write.

        Returns
        -------
        Path
            An empty folder to fill.
        """
        new = self._claim(check_folder(path, overwrite=self.overwrite))
        self._checks.append(lambda: check_folder_still(path))
        new.mkdir()
        return new

    def _claim(self, path: Path) -> Path:
        with without_interruption():  # or its folder would be left behind
            self._claims.append(claimed(path))
        return self._claims[-1].new

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for claim in self._claims:
                    _complete(claim.new)
                for check in self._checks if self.overwrite else ():  # much may have happened since it was claimed
                    check()
                put_all_in_place(self._claims, overwrite=self.overwrite)
        finally:
            with without_interruption():
                self._put_in_order()

    def _put_in_order(self) -> None:
        try:
            finish(self._claims)  # where Ctrl-C came between two of them
        except BaseException:
            for claim in self._claims:  # it is decided: whoever comes next finishes it
                claim.abandon()
            raise
        with ExitStack() as releases:  # the last one first, and each whatever becomes of the others
            for claim in self._claims:
                releases.callback(claim.release)


@contextmanager
def whole_file(path: StrPath, *, overwrite: bool = True, ours: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    overwrite : bool
        Whether a file that is there is replaced.
    ours : callable, optional
        As `check_file` takes it.

    Yields
    ------
    Path
        A file to write to; it takes the place of `path` only if the block succeeds.
    """
    with Outputs(overwrite=overwrite) as outputs:
        yield outputs.file(path, ours)


@contextmanager
def new_folder(path: StrPath, *, overwrite: bool = False) -> Iterator[Path]:
    """Write a folder whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The folder to write.
    overwrite : bool
        Whether a folder of ours that is there is replaced.

    Yields
    ------
    Path
        A folder to fill; it takes the place of `path` only if the block succeeds.
    """
    with Outputs(overwrite=overwrite) as outputs:
        yield outputs.folder(path)


def delete(path: StrPath) -> None:
    """Delete a folder of ours; whoever is killed meanwhile leaves all of it or nothing."""
    with without_interruption():
        claim = claimed(path)
        try:
            claim.delete()
        finally:
            claim.release()


def _complete(new: Path) -> None:
    """Check what was written, let others read it, and bring it to the disk."""
    for file in [new, *new.rglob("*")]:
        if file.is_dir():
            os.chmod(file, 0o777 & ~_umask())
        else:
            os.chmod(file, 0o666 & ~_umask())  # some writers keep their files to themselves
            check_written(file)
            to_disk(file)


@cache
def _umask() -> int:
    """Asked once: it can only be read by setting it, for all threads."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write a dict as indented JSON, which people may read; in place, so only into a folder that is being filled."""
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
