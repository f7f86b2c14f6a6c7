"""What the loaders of files on disk share: finding the folder, checking that nothing is missing, saying what is."""

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from entourage.errors import EntourageWarning, FileError
from entourage.runtime.config import check_known

__all__ = [
    "Count",
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
    "whole_numbers",
]

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


class NotFound(FileError):
    """No trace of a dataset where it was looked for."""


class Count(NamedTuple):
    """How many images and classes a split has."""

    images: int
    classes: int


def data_root(root, name: str) -> Path:
    """The folder given, or the one ENTOURAGE_DATA names; it must exist."""
    root = root_of(root, name)
    if not root.is_dir():
        raise NotFound(f"the folder {root} does not exist; check the root of the data")
    return root


def root_of(root, name: str) -> Path:
    """The same, whether it exists or not."""
    root = root if root is not None else os.environ.get("ENTOURAGE_DATA") or None
    if root is None:
        raise NotFound(f"{name} is read from disk but no folder is given; wanted root, --root or ENTOURAGE_DATA")
    return Path(root)


def dataset_folder(root, name: str, folders: tuple[str, ...], marks: tuple[str, ...]) -> Path:
    """The folder that holds one of the marks: one of `folders` under the root, or the root itself."""
    root = data_root(root, name)
    for folder in (*(root / folder for folder in folders), root):
        if any((folder / mark).exists() for mark in marks):
            return folder
    raise NotFound(
        f"{name} is not under {root}: wanted {root / folders[0] / marks[0]}; "
        f"check the root, or see `entourage datasets get {name}`"
    )


def first_existing(folder: Path, choices: Iterable[str], holds: str) -> Path:
    """The first of several places a file or folder may be at; `holds` says what it is for."""
    choices = list(choices)
    for choice in choices:
        if (folder / choice).exists():
            return folder / choice
    elsewhere = f" (or {', '.join(choices[1:])})" if len(choices) > 1 else ""
    raise FileError(f"{folder / choices[0]}{elsewhere} is missing; wanted {holds}: complete the download")


def check_split(split: str, splits: Iterable[str], name: str) -> None:
    check_known(split, splits, f"the split of {name}")


def check_counts(where, labels: np.ndarray, expected: Count) -> None:
    """Refuse a list that names another number of images or classes than the dataset has."""
    seen = Count(len(labels), len(np.unique(labels)))
    if seen != expected:
        raise FileError(
            f"{where} names {seen.images:,} images of {seen.classes:,} classes; wanted {expected.images:,} of "
            f"{expected.classes:,}: it is incomplete or of another release, download it again"
        )


def check_present(folder: Path, names) -> None:
    """Refuse a folder in which a listed picture is missing; each folder is listed once, no file is opened."""
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


def warn_of_shared_classes(name, train_labels, test_labels) -> None:
    """Unseen classes are what the scores are about: say so if a class trains and is tested."""
    shared = np.intersect1d(train_labels, test_labels)
    if len(shared):
        warnings.warn(
            f"{name} has {len(shared):,} of its classes both in train and in test, the first is {shared[0].item()!r}; "
            "scores on classes seen in training say little about new ones: split by class",
            EntourageWarning,
            stacklevel=4,
        )


def read_columns(path: Path, columns: tuple[str, ...], *, header: int = 0) -> list[list[str]]:
    """The cells of a text file whose columns are separated by spaces, after `header` lines; blank lines are skipped."""
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
    """Cells as integers, (N,)."""
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except ValueError as error:
        raise FileError(f"{path} holds text where a number was wanted ({error}); download it again") from None


def read_text(path: Path) -> str:
    if not path.is_file():
        raise FileError(f"{path} is missing; complete the download")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text ({error}); download it again") from error


def is_image_name(name: str) -> bool:
    """By its suffix; files macOS leaves behind (._name.jpg) are none."""
    return name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith(".")
