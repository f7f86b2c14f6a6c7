"""Opening files that may be missing, of another kind, or damaged."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from entourage.errors import FileError, InputError
from entourage.runtime.extras import require
from entourage.stores.changes import settle_to_read
from entourage.stores.paths import StrPath

__all__ = ["begins_rightly", "existing", "is_valid_text", "named", "readable", "regular", "require_format", "same_file"]

_BEGINNINGS = {".npy": b"\x93NUMPY", ".npz": b"PK", ".parquet": b"PAR1"}


def existing(path: StrPath, formats: tuple[str, ...], what: str) -> Path:
    """Raise FileError unless a file exists and its name ends in one of the formats.

    Parameters
    ----------
    path : str or path-like
    formats : tuple of str
        Endings, such as ".npy", in lower case.
    what : str
        What the file should hold, in the plural: "vectors".

    Returns
    -------
    Path
        The same path.
    """
    path = Path(path)
    if path.is_dir() and not path.suffix:
        raise FileError(f"{path} is a folder; {what} are read from a single file here, {', '.join(formats)}: name one")
    if path.suffix.lower() not in formats:
        raise FileError(
            f"{path} ends in {path.suffix or 'nothing'}; {what} are read from {', '.join(formats)} files: convert it"
        )
    settle_to_read(path)
    regular(path, f"the {what} file")
    require_format(path)
    return path


def require_format(path: Path) -> None:
    """Raise MissingExtra for a file that an optional library reads and writes: .parquet."""
    if path.suffix.lower() == ".parquet":
        require("pyarrow", path.name)


def regular(path: StrPath, what: str = "the file") -> Path:
    """Raise FileError unless a path leads to a regular file: to read from a pipe or a device may never end.

    Parameters
    ----------
    path : str or path-like
    what : str
        What the file is called in the message.

    Returns
    -------
    Path
        The same path.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except OSError as error:  # missing, or a circle of links
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise FileError(f"{what} {path} {reason}; check the path") from error
    except ValueError as error:  # a name with a zero byte
        raise FileError(f"{what} {str(path)!r} does not exist; check the path") from error
    if not stat.S_ISREG(mode):
        raise FileError(f"{what} {path} is {_kind_of(mode)}; wanted a regular file: check the path")
    return path


def _kind_of(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for test, name in kinds.items() if test(mode)), "a device")


def begins_rightly(path: Path) -> bool:
    """Whether a file of vectors begins as its format does, or is empty; True for all other files.

    An array of other dimensions than vectors have, such as labels, is no file of vectors.
    """
    suffix = path.suffix.lower()
    wanted = _BEGINNINGS.get(suffix, b"")
    with path.open("rb") as file:
        beginning = file.read(len(wanted))
        if beginning == wanted and suffix == ".npy":
            file.seek(0)
            return _dimensions(file) == 2
        return beginning in (wanted, b"")


def _dimensions(file: IO[bytes]) -> int | None:
    """How many dimensions the array of an open .npy has, or None if it cannot be told."""
    from numpy.lib import format

    try:
        read = format.read_array_header_1_0 if format.read_magic(file) == (1, 0) else format.read_array_header_2_0
        return len(read(file)[0])
    except ValueError:
        return None


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file that exists."""
    return one.exists() and other.exists() and one.samefile(other)


@contextmanager
def named(path: StrPath) -> Iterator[None]:
    """Let every InputError raised in the block begin with the name of the file it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise in the block into a FileError of one sentence."""
    _check_beginning(path)
    try:
        yield
    except (FileError, InputError):
        raise
    except MemoryError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text ({error}); save it again as UTF-8") from error
    except Exception as error:  # readers of damaged files raise anything from EOFError to zlib.error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in reason or "Python objects" in reason:
            raise FileError(
                f"{path} holds Python objects, which are never loaded; wanted numbers or text: "
                "save it with a plain type, e.g. array.astype(str)"
            ) from error
        raise FileError(
            f"{path} cannot be read as {path.suffix} ({reason}); it may be truncated: write it again"
        ) from error


def _check_beginning(path: Path) -> None:
    """Refuse a file of another kind by its first bytes: numpy opens whatever it can, by content and not by name."""
    wanted = _BEGINNINGS.get(path.suffix.lower(), b"")
    with regular(path).open("rb") as file:
        seen = file.read(len(wanted))
    if seen != wanted:
        raise FileError(
            f"{path} {f'begins with {seen!r}' if seen else 'is empty'}, but a {path.suffix} file begins with "
            f"{wanted!r}; write it again or correct its name"
        )


def is_valid_text(text: str) -> bool:
    """Whether UTF-8 can hold a text: a JSON file may spell halves of letters, which it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
