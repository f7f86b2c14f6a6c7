"""What can go wrong, as a tree. Every message gives the value seen, the value wanted and the fix.

    EntourageError
    ├── InputError (ValueError)      vectors, labels, ids or settings that cannot be used
    ├── FileError (OSError)          a file that is missing, unreadable, truncated or in the way
    │   ├── CorruptImage             a picture that cannot be decoded; knows its path
    │   └── StoreError               a vector store that cannot be reached, or lacks what is asked for
    ├── ModelError (ValueError)      a model folder that is damaged, or does not fit these vectors
    ├── NotFittedError               an estimator used before fit; also scikit-learn's error of that name
    └── MissingExtra (ImportError)   an optional part that is not installed; names the pip line

The command line prints each as one sentence on standard error and exits with code 2. What works, but probably not as
intended, is an EntourageWarning. Where a message lists names, `few` keeps it short;
`is_full_disk` knows what libraries say of one.
"""

import errno
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

__all__ = [
    "CorruptImage",
    "EntourageError",
    "EntourageWarning",
    "FileError",
    "InputError",
    "MissingExtra",
    "ModelError",
    "NotFittedError",
    "StoreError",
    "few",
    "is_full_disk",
]

_SHOWN, _ALL = 3, 12
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class EntourageError(Exception):
    """Root of all errors Entourage raises on purpose."""


class EntourageWarning(UserWarning):
    """Something that works, but probably not as intended: vectors returned unchanged, scores that mean little."""


class InputError(EntourageError, ValueError):
    """Vectors, labels, ids or settings that cannot be used."""


class FileError(EntourageError, OSError):
    """A file that is missing, unreadable, truncated or in the way."""


class CorruptImage(FileError):
    """A picture that cannot be decoded: truncated, of another kind, or missing. `path` names the file.

    Parameters
    ----------
    path : str or path-like
        The file.
    reason : str
        Why it cannot be decoded, as a clause such as "it is empty".

    Examples
    --------
    >>> str(CorruptImage("birds/7.jpg", "it is empty"))
    'birds/7.jpg cannot be decoded as an image: it is empty; replace or remove it'
    """

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(f"{path} cannot be decoded as an image: {reason}; replace or remove it")
        self.path, self._reason = str(path), reason

    def __reduce__(self) -> tuple[type["CorruptImage"], tuple[str, str]]:
        return type(self), (self.path, self._reason)  # on its way from a worker to whoever asked it


class StoreError(FileError):
    """A vector store that cannot be reached, is of another kind, or lacks the table or column that is asked for."""


class ModelError(EntourageError, ValueError):
    """A model folder that is damaged, or does not fit the vectors."""


class MissingExtra(EntourageError, ImportError):
    """An optional part that is not installed.

    Parameters
    ----------
    extra : str
        The extra of the package that brings it.
    purpose : str
        What it is needed for, as the subject of a sentence.

    Examples
    --------
    >>> MissingExtra("faiss", "approximate search").args[0]
    "approximate search needs an optional part that is not installed: pip install 'entourage[faiss]'"
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an optional part that is not installed: pip install 'entourage[{extra}]'")
        self._extra, self._purpose = extra, purpose

    def __reduce__(self) -> tuple[type["MissingExtra"], tuple[str, str]]:
        return type(self), (self._extra, self._purpose)  # on its way from a worker to whoever asked it


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that a disk is full.

    Libraries that are not written in Python tell by words alone, and numpy by numbers.

    >>> is_full_disk(RuntimeError("IO error: No space left on device")), is_full_disk(OSError("not found"))
    (True, False)
    """
    while error is not None:
        full = isinstance(error, OSError) and error.errno in _DISK_FULL
        cut_short = isinstance(error, OSError) and re.fullmatch(r"\d+ requested and \d+ written", str(error))
        if full or cut_short or any(os.strerror(code) in str(error) for code in _DISK_FULL):
            return True
        error = error.__cause__ or error.__context__  # what a library does to clean up may fail in its turn
    return False


def few(names: Iterable[object], what: str) -> str:
    """List names in a message: all of them if they are few, otherwise the first and how many there are.

    Parameters
    ----------
    names : iterable
        What is listed, such as the columns of a file.
    what : str
        What they are, in the plural: "columns".

    Returns
    -------
    str
        The list, or "none".

    Examples
    --------
    >>> few(["id", "label"], "columns"), few([f"v{number}" for number in range(512)], "columns")
    ('id, label', 'v0, v1, v2, ... (512 columns)')
    """
    listed = [str(name) for name in names]
    if len(listed) <= _ALL:
        return ", ".join(listed) or "none"
    return f"{', '.join(listed[:_SHOWN])}, ... ({len(listed):,} {what})"


if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

    class NotFittedError(EntourageError, _SklearnNotFittedError):  # type: ignore[misc]  # which has no types
        """An estimator used before `fit`."""


def __getattr__(name: str) -> type[EntourageError]:
    """NotFittedError is made when it is first asked for: importing scikit-learn for the other errors would be slow."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

    body = {"__doc__": "An estimator used before `fit`.", "__module__": __name__}
    error: type[EntourageError] = type(name, (EntourageError, _SklearnNotFittedError), body)
    globals()[name] = error
    return error
