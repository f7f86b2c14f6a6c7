"""What was written is looked at before it takes its place: a file of vectors that is empty or cut short never does."""

import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from entourage.errors import FileError

__all__ = ["check_written"]

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def check_written(file: Path) -> None:
    """Raise FileError for a .npy, .npz or .parquet that is not what its header says; other files pass.

    Parameters
    ----------
    file : Path
        A file that was just written.
    """
    check = {".npy": _check_npy, ".npz": _check_npz, ".parquet": _check_parquet}.get(file.suffix.lower())
    if check is None:
        return
    try:
        check(file)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:  # pyarrow's errors are ValueErrors
        size = file.stat().st_size
        raise FileError(
            f"the {file.suffix} file that was written cannot be read again ({size:,} bytes: {error}), so nothing was "
            "replaced; check that the disk is sound and has room, and run it again"
        ) from error


def _check_npy(file: Path) -> None:
    with file.open("rb") as opened:
        _check_array(opened, file.stat().st_size)


def _check_npz(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            with archive.open(member) as opened:
                _check_array(opened, member.file_size)


def _check_array(opened: IO[bytes], size: int) -> None:
    """Whether an array has as many bytes as its header says."""
    version = np.lib.format.read_magic(opened)
    shape, _, dtype = _HEADERS[version](opened)
    wanted = opened.tell() + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size != wanted:
        raise ValueError(f"{wanted:,} bytes are wanted for {shape} numbers")


def _check_parquet(file: Path) -> None:
    import pyarrow.parquet as pq

    pq.read_metadata(file)
