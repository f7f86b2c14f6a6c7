"""What the loaders of files on disk share: finding the folder, checking it for missing files, and naming them."""

import os
import warnings
from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from entourage.data.download import Archive
from entourage.errors import EntourageWarning, FileError
from entourage.runtime.config import check_name

__all__ = [
    "Archives",
    "Count",
    "Expected",
    "NotFound",
    "check_counts",
    "check_present",
    "check_split",
    "data_root",
    "dataset_folder",
    "first_existing",
    "is_image_name",
    "read_columns",
    "read_text",
    "root_of",
    "warn_of_shared_classes",
    "warn_of_unreadable",
    "whole_numbers",
]

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
_UNREADABLE_SUFFIXES = (
    ".heic",
    ".heif",
    ".avif",
    ".jxl",
    ".svg",
    ".psd",
    ".dng",
    ".cr2",
    ".cr3",
    ".nef",
    ".arw",
    ".raf",
)


class NotFound(FileError):
    """No trace of a dataset where it was looked for."""


class Count(NamedTuple):
    """How many images and classes a split has."""

    images: int
    classes: int


Expected = Mapping[str, Count]
"""The counts of each split of a dataset."""
Archives = tuple[Archive, ...]
"""What can be fetched of a dataset."""


def data_root(root: str | PathLike[str] | None, name: str) -> Path:
    """The folder that holds the data, which must exist.

    Parameters
    ----------
    root : path-like or None
        The folder; None takes the one ENTOURAGE_DATA names.
    name : str
        The dataset, as an error names it.

    Returns
    -------
    Path
        The folder.
    """
    folder = root_of(root, name)
    if not folder.is_dir():
        raise NotFound(f"the folder {folder} does not exist; check the root of the data")
    return folder


def root_of(root: str | PathLike[str] | None, name: str) -> Path:
    """The folder that holds the data, whether it exists or not.

    Parameters
    ----------
    root, name
        As in `data_root`.

    Returns
    -------
    Path
        The folder.
    """
    given = root if root is not None else os.environ.get("ENTOURAGE_DATA") or None
    if given is None:
        raise NotFound(f"{name} is read from disk but no folder is given; wanted root, --root or ENTOURAGE_DATA")
    return Path(given)


def dataset_folder(
    root: str | PathLike[str] | None, name: str, folders: tuple[str, ...], marks: tuple[str, ...]
) -> Path:
    """Find the folder of a dataset.

    Parameters
    ----------
    root : path-like or None
        As in `data_root`.
    name : str
        The dataset.
    folders : tuple of str
        What its folder may be called under the root; the root itself may be it, too.
    marks : tuple of str
        Files or folders, one of which it holds.

    Returns
    -------
    Path
        The first folder that holds one of the marks.
    """
    place = data_root(root, name)
    for folder in (*(place / folder for folder in folders), place):
        if any((folder / mark).exists() for mark in marks):
            return folder
    raise NotFound(
        f"{name} is not under {place}: wanted {place / folders[0] / marks[0]}; "
        f"check the root, or see `entourage datasets get {name}`"
    )


def first_existing(folder: Path, names: Iterable[str], holds: str) -> Path:
    """The first that exists of several places a file or folder may be at.

    Parameters
    ----------
    folder : Path
        What the names start from.
    names : iterable of str
        The places, the usual one first.
    holds : str
        What is wanted there, as an error says it.

    Returns
    -------
    Path
        The place.
    """
    choices = list(names)
    for choice in choices:
        if (folder / choice).exists():
            return folder / choice
    elsewhere = f" (or {', '.join(choices[1:])})" if len(choices) > 1 else ""
    raise FileError(f"{folder / choices[0]}{elsewhere} is missing; wanted {holds}: complete the download")


def check_split(split: str, splits: Collection[str], name: str) -> None:
    """Refuse a split that a dataset does not have.

    Parameters
    ----------
    split : str
        What was asked for.
    splits : collection of str
        Those there are.
    name : str
        The dataset, as an error names it.
    """
    check_name(split, splits, "split", f"of {name}")


def check_counts(where: str | PathLike[str], labels: np.ndarray, expected: Count) -> None:
    """Refuse a list with another number of images or classes than the dataset has.

    Parameters
    ----------
    where : path-like
        What an error names.
    labels : ndarray, shape (N,)
        The class of each image of a split.
    expected : Count
        How many images and classes it should have.
    """
    seen = Count(len(labels), len(np.unique(labels)))
    if seen != expected:
        raise FileError(
            f"{where} names {seen.images:,} images of {seen.classes:,} classes; wanted {expected.images:,} of "
            f"{expected.classes:,}: it is incomplete or of another release, download it again"
        )


def check_present(folder: Path, names: Collection[str]) -> None:
    """Refuse a folder in which a listed picture is missing; each folder is listed once, no file is opened.

    Parameters
    ----------
    folder : Path
        What the names start from.
    names : collection of str
        Paths of the pictures.
    """
    listed: dict[str, set[str]] = {}
    missing = []
    for name in names:
        parent, _, file = str(name).rpartition("/")
        if parent not in listed:
            place = folder / parent
            listed[parent] = set(os.listdir(place)) if place.is_dir() else set()
        if file not in listed[parent]:
            missing.append(name)
    if missing:
        raise FileError(
            f"{folder / str(missing[0])} is missing ({len(missing):,} of {len(names):,} images are); "
            "wanted all of them: complete the download"
        )


def warn_of_shared_classes(name: str | PathLike[str], train_labels: ArrayLike, test_labels: ArrayLike) -> None:
    """Warn if a class both trains and is tested: unseen classes are what the scores are about.

    Parameters
    ----------
    name : path-like
        What the warning names.
    train_labels, test_labels : array, shape (N,) and (M,)
        The classes of either side; one entry for each class will do.
    """
    shared = np.intersect1d(train_labels, test_labels)
    if len(shared):
        warnings.warn(
            f"{name} has {len(shared):,} of its classes both in train and in test, the first is {shared[0].item()!r}; "
            "scores on classes seen in training say little about new ones: split by class",
            EntourageWarning,
            stacklevel=4,
        )


def read_columns(path: Path, columns: tuple[str, ...], *, header: int = 0) -> list[list[str]]:
    """Read a text file whose columns are separated by spaces; blank lines are skipped.

    Parameters
    ----------
    path : Path
        The file.
    columns : tuple of str
        What its columns are; a line with more or fewer is refused.
    header : int
        How many lines come before.

    Returns
    -------
    list of list of str
        The cells of each line.
    """
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        cells = line.split()
        if number <= header or not cells:
            continue
        if len(cells) != len(columns):
            raise FileError(
                f"line {number} of {path} has {len(cells)} columns; wanted {len(columns)} ({' '.join(columns)}): "
                "download it again"
            )
        rows.append(cells)
    return rows


def whole_numbers(path: Path, cells: Iterable[str]) -> np.ndarray:
    """Turn cells of a table into numbers.

    Parameters
    ----------
    path : Path
        The file they are from, as an error names it.
    cells : iterable of str
        N cells.

    Returns
    -------
    ndarray of int64, shape (N,)
        Their values.
    """
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except ValueError as error:
        raise FileError(f"{path} holds text where a number was wanted ({error}); download it again") from None


def read_text(path: Path) -> str:
    """Read a text file.

    Parameters
    ----------
    path : Path
        A file in UTF-8.

    Returns
    -------
    str
        Its text, without a byte order mark.
    """
    if not path.is_file():
        raise FileError(f"{path} is missing; complete the download")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text ({error}); download it again") from error


def is_image_name(name: str) -> bool:
    """Whether a file is an image, by its name.

    Parameters
    ----------
    name : str
        The name of a file.

    Returns
    -------
    bool
        True for a suffix of images; files that macOS leaves behind (._name.jpg) are none.
    """
    return name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith(".")


def warn_of_unreadable(folder: Path, names: Iterable[str]) -> None:
    """Warn of pictures in a format that is not read, such as those of telephones.

    Parameters
    ----------
    folder : Path
        What the warning names.
    names : iterable of str
        The files there, of any kind.
    """
    unread = [name for name in names if name.lower().endswith(_UNREADABLE_SUFFIXES)]
    if unread:
        warnings.warn(
            f"{len(unread):,} pictures of {folder} are of a format that is not read and are left out, the first is "
            f"{unread[0]}; convert them to .jpg or .png",
            EntourageWarning,
            stacklevel=4,
        )
