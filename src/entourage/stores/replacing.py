"""What may be replaced: the one place that decides it.

Nothing is replaced unless overwriting is allowed. If it is:

- a folder takes the place of a folder that Entourage wrote and in which nothing else has been put since, or of an
  empty one; never of a file;
- a file takes the place of a file; never of a folder, a device or a pipe, nor a file of vectors that of something else;
- a file that the user did not name, such as the .csv beside a .npy, is replaced only if it looks like ours;
- no input is ever replaced, by whatever path it is named, nor a folder that holds one;
- no two outputs are one file, by whatever paths they are named.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from entourage.errors import FileError, InputError
from entourage.stores.changes import settle
from entourage.stores.claims import is_staging
from entourage.stores.documents import read_json
from entourage.stores.filenames import WRITTEN
from entourage.stores.paths import StrPath, resolved
from entourage.stores.reading import begins_rightly, require_format

__all__ = [
    "check_apart",
    "check_file",
    "check_file_still",
    "check_folder",
    "check_folder_still",
    "check_kept",
    "foreign_in",
]

_OF_THE_SYSTEM = {".DS_Store", "Thumbs.db"}


def check_file(path: StrPath, *, overwrite: bool, ours: Callable[[Path], bool] | None = None) -> Path:
    """Raise FileError unless a file of this name may be written, and MissingExtra if what writes it is not installed.

    Parameters
    ----------
    path : str or path-like
        The file; the folder it is to be in must exist.
    overwrite : bool
        Whether a file that exists may be replaced.
    ours : callable, optional
        Whether an existing file looks like what we write, needed for one that the user did not name. Default: whether
        vectors begin as their format does.

    Returns
    -------
    Path
        The same path.
    """
    require_format(Path(path))
    return check_file_still(_checked(path, overwrite), ours)


def check_file_still(path: StrPath, ours: Callable[[Path], bool] | None = None) -> Path:
    """As `check_file` with overwriting, for one that is claimed already."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder; wanted the name of a file: choose another name")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is not a regular file, and is never replaced; choose another name")
    if path.exists() and not (ours or begins_rightly)(path):
        raise FileError(
            f"{path} is not what Entourage writes under such a name, and is never replaced; choose another name"
        )
    return path


def check_folder(path: StrPath, *, overwrite: bool) -> Path:
    """Raise FileError unless a folder of this name may be written.

    Parameters
    ----------
    path : str or path-like
        The folder; the one it is to be in must exist.
    overwrite : bool
        Whether a folder that exists may be replaced, if Entourage wrote all of it.

    Returns
    -------
    Path
        The same path.
    """
    return check_folder_still(_checked(path, overwrite))


def check_folder_still(path: StrPath) -> Path:
    """As `check_folder` with overwriting, for one that is claimed already."""
    path = Path(path)
    if not path.is_dir():
        if os.path.lexists(path):
            raise FileError(f"{path} is a file, and is never replaced by a folder; choose another name")
        return path
    if any(path.iterdir()) and not _marks(path):
        raise FileError(f"{path} is a folder that Entourage did not write, and is never replaced; choose another name")
    foreign = foreign_in(path)
    if foreign is not None:
        raise FileError(
            f"{path} holds {foreign}, which Entourage did not put there and which would be lost; "
            "move it away or choose another name"
        )
    return path


def foreign_in(folder: Path) -> Path | None:
    """The first file or folder, as a path within this one, that is not what we write in a folder of its kind."""
    marks = _marks(folder)
    inside = (path.relative_to(folder) for path in folder.rglob("*"))
    return next((path for path in inside if not _ours(path, marks)), None)


def check_apart(outputs: Mapping[str, StrPath | None]) -> None:
    """Raise InputError if two outputs are one, by whatever paths they are named, or one lies in the other.

    Parameters
    ----------
    outputs : dict of str to path
        By the option that names each; None where it is not given.
    """
    named = [(option, Path(path)) for option, path in outputs.items() if path is not None]
    for number, (option, path) in enumerate(named):
        for other_option, other in named[:number]:
            if _same(path, other):
                raise InputError(
                    f"{other_option} is {other} and {option} is {path}, which are one; give each a name of its own"
                )
            for inner, outer in ((path, other), (other, path)):
                if _place(outer) in _place(inner).parents:
                    raise InputError(f"{inner} lies in {outer}, which is written too; give it a place of its own")


def check_kept(outputs: Iterable[StrPath | None], inputs: Iterable[StrPath | None]) -> None:
    """Raise InputError if an output would take the place of an input, or of a folder that holds one.

    What a killed process left of the outputs is put in order first, of all of them: any may be refused later.

    Parameters
    ----------
    outputs, inputs : iterable of paths
        None where it is not given. Inputs that do not exist, such as the name of a column, are passed over.
    """
    given = [Path(path) for path in inputs if path is not None and os.path.lexists(path)]
    for output in (Path(path) for path in outputs if path is not None):
        _check_named(output)
        settle(output)
        for source in given:
            if _same(output, source):
                raise InputError(f"{output} is an input; give what is written a name of its own")
            if _place(output) in {*_place(source).parents, *resolved(source).parents}:
                raise InputError(f"{output} holds the input {source}; give what is written a name of its own")


def _checked(path: StrPath, overwrite: bool) -> Path:
    """What files and folders share; what a killed process left is put in order first."""
    path = Path(path)
    around = path.absolute().parent
    _check_named(path)
    if not around.is_dir():
        raise FileError(f"the folder {path.parent} does not exist; create it or choose another one")
    if not os.access(around, os.W_OK):
        raise FileError(f"the folder {around} cannot be written to; choose another one")
    settle(path)
    if os.path.lexists(path) and not overwrite:
        raise FileError(f"{path} exists already; choose another name or allow overwriting (--overwrite)")
    return path


def _check_named(path: Path) -> None:
    if not path.name or path.name == "..":
        raise FileError(f"the output is {str(path)!r}; wanted the name of a file or folder: choose one")


def _marks(folder: Path) -> list[str]:
    """What kinds of folder of ours this is."""
    marks = []
    for mark in WRITTEN:
        try:
            content = read_json(folder / mark)
        except FileError:
            continue
        if isinstance(content, dict) and "entourage" in content:
            marks.append(mark)
    return marks


def _ours(inside: Path, marks: list[str]) -> bool:
    """Whether a path in a folder with such marks is one that we write there, or that the system leaves."""
    if inside.name in _OF_THE_SYSTEM or any(map(is_staging, inside.parts)):
        return True
    return any(WRITTEN[mark].fullmatch(inside.as_posix()) for mark in marks)


def _place(path: Path) -> Path:
    """Where a file is or will be: links on the way are followed, a link in its place is not."""
    return resolved(path.absolute().parent) / path.name


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return _place(one) == _place(other) or resolved(one) == resolved(other)
