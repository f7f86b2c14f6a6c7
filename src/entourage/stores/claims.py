"""Who writes an output, and what is left of it if that process is killed.

Whoever writes NAME holds the folder .NAME.entourage beside it, locked for as long as the process lives:

    new           what is being written; it becomes NAME in one step
    old           what was NAME, where the two cannot be exchanged in one step
    gone          what is being deleted
    change.json   which outputs change together with this one (changes.py)

A second process finds the lock and is told so. If the process is killed the system lifts its lock, and the next one to
write NAME finds the folder without an owner: it puts `old` back if NAME is missing, and deletes the rest.
"""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

from entourage.errors import FileError
from entourage.runtime.interrupts import without_interruption
from entourage.stores.exchange import exchange
from entourage.stores.paths import StrPath, resolved

try:
    import fcntl
except ImportError:  # Windows; there a folder that is in the way is never taken over
    fcntl = None  # type: ignore[assignment]

__all__ = ["CHANGE", "OLD", "Claim", "is_staging", "staging_of"]

CHANGE = "change.json"
OLD = "old"
_ENDING = ".entourage"
_KNOWN = ("new", OLD, "gone", "change")  # stems
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # this file system has no hard links


def staging_of(path: StrPath) -> Path:
    """The hidden folder beside an output that holds it until it is whole; the same by whatever path it is reached."""
    path = Path(path).absolute()
    return resolved(path.parent) / f".{path.name}{_ENDING}"


def is_staging(name: str) -> bool:
    """Whether a name is that of such a folder."""
    return name.startswith(".") and name.endswith(_ENDING)


class Claim:
    """The right to write one output, held until `release`.

    Parameters
    ----------
    path : str or path-like
        The file or folder to be written; a FileError says if another process is writing it.
    """

    def __init__(self, path: StrPath) -> None:
        self.staging = staging_of(path)
        self.path = self.staging.with_name(Path(path).absolute().name)
        self.new = self.staging / f"new{self.path.suffix}"
        self.old, self.gone = self.staging / OLD, self.staging / "gone"
        self._shown = Path(path)  # as the user knows it
        self._lock = _locked(self.staging, self._shown)
        self._held = True

    def put_in_place(self, *, overwrite: bool) -> None:
        """Let `new` take its place, in one step.

        Parameters
        ----------
        overwrite : bool
            Whether it may replace what is there: a file a file, a folder a folder. If not, and something has come
            into its place, that stays and a FileError is raised.
        """
        try:
            if self.new.is_dir():
                self._put_folder(overwrite)
            elif overwrite:
                os.replace(self.new, self.path)
            else:
                _link(self.new, self.path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR):
                raise
            raise self._taken() from error

    def check_free(self) -> None:
        """Raise FileError if something has come into its place."""
        if os.path.lexists(self.path):
            raise self._taken()

    def _taken(self) -> FileError:
        return FileError(f"{self._shown} has come into being meanwhile and is left alone; choose another name")

    def take_back(self, inode: int) -> None:
        """Undo `put_in_place` without overwriting, if what is in its place is still what was put there."""
        if os.path.lexists(self.path) and self.path.lstat().st_ino == inode:
            if os.path.lexists(self.new):  # it was linked
                self.path.unlink()
            else:
                os.rename(self.path, self.new)

    def _put_folder(self, overwrite: bool) -> None:
        if overwrite and self.path.is_dir():
            if exchange(self.new, self.path):
                return
            os.rename(self.path, self.old)
        os.rename(self.new, self.path)  # fails if there is anything but an empty folder

    def delete(self) -> None:
        """Delete the output itself, in one step as others see it."""
        with suppress(FileNotFoundError):
            os.rename(self.path, self.gone)

    def put_aside(self) -> None:
        """Take the output from its place until `restore`, if there is one."""
        with suppress(FileNotFoundError):
            os.rename(self.path, self.old)

    def restore(self) -> None:
        """Put back what was there before, if nothing is there now."""
        if os.path.lexists(self.old) and not os.path.lexists(self.path):
            os.rename(self.old, self.path)

    def empty(self) -> None:
        """Delete all that is kept beside the output."""
        for kept in self.staging.iterdir():
            if kept.is_dir() and not kept.is_symlink():
                shutil.rmtree(kept, ignore_errors=True)
            else:
                kept.unlink(missing_ok=True)

    def release(self) -> None:
        """Leave nothing but the output; once, as the folder may be another one's afterwards."""
        if not self._held:
            return
        with without_interruption():
            try:
                self.restore()
                self.empty()
                with suppress(OSError):  # what cannot be deleted is found by the next one
                    self.staging.rmdir()
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Leave everything as it is, for the next one to put in order."""
        self._held = False
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(staging: Path, path: Path) -> int | None:
    """Make the folder and lock it, or lock the one that a dead process left; None where there are no locks."""
    while True:
        try:
            staging.mkdir(mode=0o700)
            made = True
        except FileExistsError:
            made = False
        if fcntl is None:
            lock = None
        else:
            try:
                lock = _try_lock(staging, path)
            except FileNotFoundError:  # its owner has just finished
                continue
        if lock is None and not made:  # nobody knows whether its owner lives
            raise _in_the_way(staging)
        return lock


def _try_lock(staging: Path, path: Path) -> int | None:
    try:
        lock = os.open(staging, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except NotADirectoryError as error:  # nor is a link followed that someone has laid there
        raise _in_the_way(staging) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.stat(staging), os.fstat(lock)):
            raise FileNotFoundError(staging)
        _check_own(staging, lock)
    except BlockingIOError:
        os.close(lock)
        raise FileError(
            f"{path} is being written by another process; wait until that is done, or choose another name"
        ) from None
    except (FileNotFoundError, FileError):
        os.close(lock)
        raise
    except OSError:  # this file system has no locks
        os.close(lock)
        return None
    return lock


def _check_own(staging: Path, lock: int) -> None:
    """Refuse a folder that another user, or another program, has made."""
    foreign = [name for name in os.listdir(staging) if name.partition(".")[0] not in _KNOWN and not is_staging(name)]
    if foreign or os.fstat(lock).st_uid != os.geteuid():
        raise _in_the_way(staging)


def _in_the_way(staging: Path) -> FileError:
    return FileError(f"{staging} is in the way; delete it if no other process uses it, or choose another name")


def _link(new: Path, path: Path) -> None:
    """Give a file its name unless that is taken; `new` is deleted later."""
    try:
        os.link(new, path, follow_symlinks=False)
    except OSError as error:
        if isinstance(error, FileExistsError) and path.is_file() and path.samefile(new):
            return  # done before an interruption
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        os.rename(new, path)
