"""What can go wrong, as a tree. Every message gives the value seen, the value wanted and the fix.

    EntourageError
    ├── InputError (ValueError)      vectors, labels, ids or settings that cannot be used
    ├── FileError (OSError)          a file that is missing, unreadable, truncated or in the way
    │   └── CorruptImage             a picture that cannot be decoded; knows its path
    ├── ModelError (ValueError)      a model folder that is damaged, or does not fit these vectors
    ├── NotFittedError               an estimator used before fit; also scikit-learn's error of that name
    └── MissingExtra (ImportError)   an optional part that is not installed; names the pip line

The command line turns each into one sentence on standard error and exit code 2. What works, but hardly as intended,
is an EntourageWarning.
"""

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
]


class EntourageError(Exception):
    """Root of all errors Entourage raises on purpose."""


class EntourageWarning(UserWarning):
    """Something that works, but hardly as intended: vectors returned as they are, scores that mean nothing."""


class InputError(EntourageError, ValueError):
    """Vectors, labels, ids or settings that cannot be used."""


class FileError(EntourageError, OSError):
    """A file that is missing, unreadable, truncated or in the way."""


class CorruptImage(FileError):
    """A picture that cannot be decoded: truncated, of another kind, or not there. `path` names the file.

    >>> str(CorruptImage("birds/7.jpg", "it is empty"))
    'birds/7.jpg cannot be decoded as an image: it is empty; replace or remove it'
    """

    def __init__(self, path, reason: str):
        super().__init__(f"{path} cannot be decoded as an image: {reason}; replace or remove it")
        self.path = str(path)


class ModelError(EntourageError, ValueError):
    """A model folder that is damaged, or does not fit the vectors."""


class MissingExtra(EntourageError, ImportError):
    """An optional part that is not installed.

    >>> MissingExtra("faiss", "approximate search").args[0]
    "approximate search needs an optional part that is not installed: pip install 'entourage[faiss]'"
    """

    def __init__(self, extra: str, purpose: str):
        super().__init__(f"{purpose} needs an optional part that is not installed: pip install 'entourage[{extra}]'")


if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

    class NotFittedError(EntourageError, _SklearnNotFittedError):
        """An estimator used before `fit`."""


def __getattr__(name: str) -> type[EntourageError]:
    """NotFittedError is made when it is first asked for: importing scikit-learn for the other errors would be slow."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

    body = {"__doc__": "An estimator used before `fit`.", "__module__": __name__}
    globals()[name] = type(name, (EntourageError, _SklearnNotFittedError), body)
    return globals()[name]
