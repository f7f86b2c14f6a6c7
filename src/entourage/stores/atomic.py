"""Output that appears whole or not at all: write beside, then rename."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from entourage.errors import FileError
from entourage.stores.filenames import CONFIG, RUN
from entourage.stores.paths import StrPath

__all__ = ["check_free", "new_folder", "whole_file", "write_json"]

# Every folder written here holds one of these, a JSON object with the key "entourage".
_MARKS = (CONFIG, RUN)


def check_free(path: StrPath, *, overwrite: bool) -> Path:
    """Raise FileError unless a file or folder of this name may be written.

    Parameters
    ----------
    path : str or path-like
        The output; the folder it is to be in must exist.
    overwrite : bool
        Whether an output that exists may be replaced. Folders are replaced only if Entourage wrote them, never data
        that happen to lie in the way.

    Returns
    -------
    Path
        The same path.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileError(f"{path} exists already; choose another name or allow overwriting (--overwrite)")
    if path.is_dir() and any(path.iterdir()) and not _written_here(path):
        raise FileError(f"{path} is a folder that Entourage did not write, and is never replaced; choose another name")
    if not path.absolute().parent.is_dir():
        raise FileError(f"the folder {path.parent} does not exist; create it or choose another one")
    if not os.access(path.absolute().parent, os.W_OK):
        raise FileError(f"the folder {path.absolute().parent} cannot be written to; choose another one")
    return path


@contextmanager
def whole_file(path: StrPath) -> Iterator[Path]:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file to write; one that exists is replaced.

    Yields
    ------
    Path
        A temporary file beside it to write to; it takes the place of `path` only if the block succeeds.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{_token()}{path.suffix}")
    try:  # from before the file exists: Ctrl-C may come at any line
        temporary.touch(mode=0o600)
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        _to_disk(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(path: StrPath) -> Iterator[Path]:
    """Write a folder whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The folder to write; one that exists is replaced.

    Yields
    ------
    Path
        A temporary folder beside it to fill; it takes the place of `path` only if the block succeeds.
    """
    path = Path(path)
    filling, aside = (path.with_name(f".{path.name}.{kind}{_token()}") for kind in ("", "old."))
    try:
        filling.mkdir(mode=0o700)
        aside.mkdir(mode=0o700)
        yield filling
        os.chmod(filling, 0o777 & ~_umask())
        for file in filling.rglob("*"):
            if file.is_file():
                os.chmod(file, 0o666 & ~_umask())  # some writers keep their files to themselves
                _to_disk(file)
        if path.exists():
            os.replace(path, aside / "replaced")
        os.replace(filling, path)
    finally:
        if not path.exists() and (aside / "replaced").exists():  # interrupted between the two renames
            os.replace(aside / "replaced", path)
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(filling, ignore_errors=True)


def _written_here(folder: Path) -> bool:
    for mark in _MARKS:
        try:
            content = json.loads((folder / mark).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and "entourage" in content:
            return True
    return False


def _to_disk(file: Path) -> None:
    """Make sure the content is on the disk before a rename is: else a power cut could leave an empty file."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _token() -> str:
    """Tells the temporary names of processes and threads apart."""
    return secrets.token_hex(6)


@cache
def _umask() -> int:
    """Asked once: it can only be read by setting it, for all threads."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write a dict as indented JSON, which people may read; in place, so only into a folder that is being filled."""
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
