"""A table of images in the format of Open Metric Learning: a .csv with a line for every image.

    label       a class, integer or text
    path        the image, relative to the table's folder (or to root), or absolute
    split       train or validation; the split "all" is every line, to be embedded
    is_query, is_gallery   True or False (1, 0) in validation, empty in train; both True everywhere, or both columns
                left out: every image searches among all others, and the split is called "test"
    x_1, x_2, y_1, y_2     optional box, in pixels: left, right, top, bottom; empty where there is none
    sequence    optional: which images belong together; a query does not find those of its own

The columns and their meaning are those of open-metric-learning.readthedocs.io, "Dataset format".
"""

import csv
import io
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from entourage.data.files import ImageFiles
from entourage.data.folder import warn_of_single_images
from entourage.data.layout import Archives, Expected, check_split, read_text, warn_of_shared_classes
from entourage.errors import FileError, InputError

__all__ = ["load", "splits"]

TITLE = "a .csv as Open Metric Learning uses it"
EXPECTED: Expected = {}
ARCHIVES: Archives = ()

Table = dict[str, list[str]]
"""The cells of each column, in the order of the lines."""

_REQUIRED = ("label", "path", "split")
_ROLES = ("is_query", "is_gallery")
_BOX = ("x_1", "y_1", "x_2", "y_2")  # in the order left, top, right, bottom
_TRAIN, _TESTED = ("train",), ("validation", "test")
_YES, _NO, _EMPTY = ("true", "1", "1.0"), ("false", "0", "0.0"), ("", "none", "nan", "null")


def load(split: str, root: str | PathLike[str] | None, *, images_root: str | PathLike[str] | None = None) -> ImageFiles:
    """Load a split of a table, in the order of its lines.

    Parameters
    ----------
    split : str
        One of `splits`, or "all" for every line.
    root : path-like
        The table.
    images_root : path-like, optional
        What the paths in it are relative to; default: the table's folder.

    Returns
    -------
    ImageFiles
        With boxes and sequences where the table has them.
    """
    path = _existing(root)
    table = _read(path)
    members = _members(path, table)
    check_split(split, (*members, "all"), str(path))
    labels = _labels(path, table)
    if split != "all":  # which is not tested
        tested = np.concatenate([rows for name, rows in members.items() if name != "train"])
        warn_of_shared_classes(path, labels[members["train"]], labels[tested])
    rows = np.arange(len(labels)) if split == "all" else members[split]
    if not len(rows):
        raise FileError(f"{path} has no line of the split {split}; wanted one or more: check its column `split`")
    if split in ("train", "test"):  # a query's match is in the gallery
        warn_of_single_images(path, labels[rows], split)
    names = np.array(table["path"], dtype=str)[rows]
    boxes, sequences = _boxes(path, table, rows), _sequences(path, table, rows)
    folder = path.parent if images_root is None else Path(images_root)
    _check_present(path, folder, names, rows)
    return ImageFiles(folder, names, labels[rows], _ids(path, names, boxes, rows), boxes, sequences=sequences)


def splits(root: str | PathLike[str] | None, **options: Any) -> tuple[str, ...]:
    """The splits of a table: train and test, or train, query and gallery.

    Parameters
    ----------
    root : path-like
        The table.
    **options
        Options of `load`, which are ignored.

    Returns
    -------
    tuple of str
        Their names, train first.
    """
    path = _existing(root)
    return tuple(_members(path, _read(path)))


def _existing(path: str | PathLike[str] | None) -> Path:
    if path is None or not Path(path).is_file():
        raise FileError(f"the table {path} does not exist; check the path")
    return Path(path)


def _read(path: Path) -> Table:
    """The columns by name; every line has all of them."""
    lines = list(csv.reader(io.StringIO(read_text(path).rstrip(), newline="")))
    header = [name.strip().lower() for name in lines[0]] if lines else []
    missing = [name for name in _REQUIRED if name not in header]
    roles = [name for name in _ROLES if name not in header]
    boxes = [name for name in _BOX if name not in header]
    missing += (roles if len(roles) == 1 else []) + (boxes if 0 < len(boxes) < len(_BOX) else [])
    if missing:
        raise FileError(
            f"{path} has no column `{missing[0]}`; its columns are {', '.join(header) or 'none'}: add it, "
            "separated by commas"
        )
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(header):
            raise FileError(f"line {number} of {path} has {len(line)} cells; wanted {len(header)}: correct it")
    return {name: [line[place].strip() for line in lines[1:]] for place, name in enumerate(header)}


def _members(path: Path, table: Table) -> dict[str, np.ndarray]:
    """The rows of every split: train and test, or train, query and gallery."""
    for row, split in enumerate(table["split"]):
        if split.lower() not in _TRAIN + _TESTED:
            raise _bad_cell(path, row, "split", split, "train or validation")
    tested = np.array([split.lower() in _TESTED for split in table["split"]], bool)
    members = {"train": np.flatnonzero(~tested)}
    if _ROLES[0] not in table:
        return members | {"test": np.flatnonzero(tested)}
    query, gallery = (_flags(path, table[role], role, tested) for role in _ROLES)
    neither = np.flatnonzero(tested & ~query & ~gallery)
    if len(neither):
        raise _bad_cell(path, neither[0], "is_query", "False and so is `is_gallery`", "one of them True in validation")
    if (query[tested] & gallery[tested]).all():
        return members | {"test": np.flatnonzero(tested)}
    return members | {"query": np.flatnonzero(query), "gallery": np.flatnonzero(gallery)}


def _flags(path: Path, cells: list[str], name: str, tested: np.ndarray) -> np.ndarray:
    flags = np.zeros(len(cells), bool)
    for row in np.flatnonzero(tested).tolist():
        cell = cells[row].lower()
        if cell not in _YES + _NO:
            raise _bad_cell(path, row, name, cells[row] or "empty", "True or False in validation")
        flags[row] = cell in _YES
    return flags


def _labels(path: Path, table: Table) -> np.ndarray:
    """Integers if all of them are, written as such ("007" is not "7"); text if not, (N,)."""
    labels = table["label"]
    if "" in labels:
        raise _bad_cell(path, labels.index(""), "label", "empty", "a class for every image")
    try:
        numbers = np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return np.array(labels, dtype=str)
    return numbers if [str(number) for number in numbers.tolist()] == labels else np.array(labels, dtype=str)


def _boxes(path: Path, table: Table, rows: np.ndarray) -> np.ndarray | None:
    if _BOX[0] not in table:
        return None
    boxes = np.zeros((len(rows), 4), np.int64)
    for place, row in enumerate(rows):
        cells = [table[name][row] for name in _BOX]
        if all(cell.lower() in _EMPTY for cell in cells):
            continue
        try:
            boxes[place] = [int(float(cell)) for cell in cells]  # pandas writes 12.0 in a column with empty cells
        except ValueError:
            raise _bad_cell(path, row, "x_1 y_1 x_2 y_2", " ".join(cells), "four numbers, or none") from None
        left, top, right, bottom = boxes[place]
        if not (0 <= left < right and 0 <= top < bottom):
            raise _bad_cell(path, row, "x_1 y_1 x_2 y_2", " ".join(cells), "0 ≤ x_1 < x_2 and 0 ≤ y_1 < y_2")
    return boxes if boxes.any() else None


def _sequences(path: Path, table: Table, rows: np.ndarray) -> np.ndarray | None:
    if "sequence" not in table:
        return None
    cells = [table["sequence"][row] for row in rows]
    filled = [cell.lower() not in _EMPTY for cell in cells]
    if not any(filled):
        return None
    if not all(filled):
        raise _bad_cell(
            path, int(rows[filled.index(False)]), "sequence", "empty", "one for every image of the split, or none"
        )
    return np.array(cells, dtype=str)


def _ids(path: Path, names: np.ndarray, boxes: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """The paths, with the box where there is one: a picture may be in several splits, whole or in parts."""
    ids = names.tolist()
    if boxes is not None:
        ids = [
            f"{name}#{','.join(map(str, box))}" if any(box) else name
            for name, box in zip(ids, boxes.tolist(), strict=True)
        ]
    first: dict[str, int] = {}
    for row, item in zip(rows, ids, strict=True):
        if item in first:
            raise InputError(
                f"lines {first[item] + 2} and {row + 2} of {path} name the same image, {item}; "
                "wanted every image once in a split: remove one"
            )
        first[item] = row
    return np.array(ids)


def _check_present(path: Path, folder: Path, names: np.ndarray, rows: np.ndarray) -> None:
    missing = [place for place, name in enumerate(names.tolist()) if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"line {rows[missing[0]] + 2} of {path} names {folder / names[missing[0]]}, which does not exist "
            f"({len(missing):,} of {len(names):,} images are missing); check the paths, or the folder they start from"
        )


def _bad_cell(path: Path, row: int, column: str, seen: str, wanted: str) -> FileError:
    return FileError(f"line {row + 2} of {path} has {column} {seen}; wanted {wanted}: correct it")
