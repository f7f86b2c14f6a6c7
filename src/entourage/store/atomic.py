"""Output that appears whole or not at all: write beside, then rename."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from entourage.errors import FileError

__all__ = ["check_free", "new_folder", "whole_file"]

# A model folder and the folder of a demo run each hold one of these.
_MARKS = ("config.json", "metrics.json")


def check_free(path, *, overwrite: bool) -> Path:
    """The path, if it may be written: not there yet, or to be overwritten; its folder must exist.

    A folder is overwritten only if it looks like one written here: never data that happen to lie in the way.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileError(f"{path} exists already; wanted a new name: choose another --out or add --overwrite")
    if path.is_dir() and any(path.iterdir()) and not any((path / name).is_file() for name in _MARKS):
        raise FileError(f"{path} is a folder that entourage did not write, and is never replaced; choose another --out")
    if not path.absolute().parent.is_dir():
        raise FileError(f"the folder {path.parent} does not exist; create it or choose another --out")
    if not os.access(path.absolute().parent, os.W_OK):
        raise FileError(f"the folder {path.absolute().parent} cannot be written to; choose another --out")
    return path


@contextmanager
def whole_file(path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it takes the place of `path` only if the block succeeds."""
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(path) -> Iterator[Path]:
    """A temporary folder beside `path` to fill; it takes the place of `path` only if the block succeeds."""
    path = Path(path)
    filling = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield filling
        os.chmod(filling, 0o777 & ~_umask())
        if path.is_dir():
            replaced = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old."))
            os.replace(path, replaced / path.name)
            os.replace(filling, path)
            shutil.rmtree(replaced)
        else:
            path.unlink(missing_ok=True)
            os.replace(filling, path)
    except BaseException:
        shutil.rmtree(filling, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
