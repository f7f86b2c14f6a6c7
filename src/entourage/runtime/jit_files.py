"""What numba compiled, kept on disk in files that are checked, and told of while it is made.

Numba keeps compiled functions as pickles, which it trusts: a file that is cut short ends every later run in an error,
one whose bits have changed runs as it is. Here a file counts only if it is this user's own and as it was written; any
other is compiled anew and replaced. Where nothing can be kept, as on a full disk, the work goes on without.

All of it stands on names that numba does not promise to keep; `jit` does without where they are gone.
"""

import hashlib
import logging
import os
import pickle
import stat
from collections.abc import Callable
from typing import Any

from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

from entourage.runtime.progress import shown

__all__ = ["keep", "tell"]

_log = logging.getLogger("entourage")


def keep(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Give a function of numba a cache of our own, as its `cache=True` gives it one of numba's."""
    dispatcher._cache = _OwnCache(function)


def tell() -> None:
    """From now on, report when a function of ours is being compiled."""
    event.register("numba:compile", _Notice())


# ---- on disk -----------------------------------------------------------------------------------------------------


class _OwnCache(FunctionCache):
    """What numba keeps of a function, where it keeps it, in files that are checked before they are used."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _CheckedFiles(
            cache_path=locator.get_cache_path(),
            filename_base=f"{self._impl.filename_base}.checked",  # numba would stumble over what is written here
            source_stamp=locator.get_source_stamp(),
        )
        self._cache_file.owners = _owners(function.__code__.co_filename)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled before, or None."""
        try:
            return super().load_overload(signature, context)
        except Exception as error:  # whatever goes wrong with what is on disk, it can be compiled
            _log.info("compiling %s anew: %s", self._name, error)
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, if there is room."""
        try:
            super().save_overload(signature, result)
        except Exception as error:  # it is compiled and can be used, kept or not
            _log.info("cannot keep %s on disk: %s", self._name, error)


class _CheckedFiles(IndexDataCacheFile):
    """An index of signatures and a file for each, all of which begin with a checksum of the rest.

    The version of numba and the source of the function are summed up in it too, so that files of others do not count.
    """

    owners: frozenset[int]
    """Users whose files are trusted; empty where the system does not tell whose a file is."""

    def _load_index(self) -> dict[Any, str]:
        return self._read(self._index_path) or {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        """What `_write` has written there; None if it is missing, damaged, or someone else's."""
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                checksum, content = file.read(32), file.read()
        except OSError:
            return None
        trusted = not self.owners or (status.st_uid in self.owners and not status.st_mode & stat.S_IWOTH)
        return pickle.loads(content) if trusted and checksum == self._checksum(content) else None

    def _write(self, path: str, value: Any) -> None:
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._checksum(content) + content)

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(repr((self._version, self._source_stamp)).encode() + content).digest()


def _owners(source: str) -> frozenset[int]:
    """This user, the system's, and whoever owns the source file, who could as well write there."""
    if not hasattr(os, "geteuid"):  # Windows
        return frozenset()
    return frozenset({os.geteuid(), 0, os.stat(source).st_uid})


# ---- telling -----------------------------------------------------------------------------------------------------


class _Notice(event.Listener):
    """Reports that a function is being compiled, which takes seconds; loading one from disk is not reported."""

    def on_start(self, event: event.Event) -> None:
        self._report(event, 0)

    def on_end(self, event: event.Event) -> None:
        self._report(event, 1)

    def _report(self, event: event.Event, done: int) -> None:
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("entourage."):
            shown("compiling, once", done, 1)
            if not done:
                _log.info("compiling %s.%s, once", function.__module__, function.__name__)
