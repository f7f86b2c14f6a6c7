"""A table of images: a .csv with a line for every image, as Open Metric Learning has it or simpler.

    path        the image, relative to the table's folder (or to root), or absolute
    label       a class, integer or text; not needed for the split "all", which is every line, to be embedded
    id          optional: what the image is known by; default: its path
    split       optional: train or validation; without it half of the classes train and the others test, as of a folder
    is_query, is_gallery   True or False (1, 0) in validation, empty in train; both True everywhere, or both columns
                left out: every image searches among all others, and the split is called "test"
    x_1, x_2, y_1, y_2     optional box, in pixels: left, right, top, bottom; empty where there is none
    sequence    optional: which images belong together; a query does not find those of its own

The first three may have other names (stores/tables.py). The columns and their meaning are those of
open-metric-learning.readthedocs.io, "Dataset format".
"""

import warnings
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from entourage.data.csv_splits import ROLES, names_of_splits, rows_of_split
from entourage.data.files import ImageFiles
from entourage.data.layout import Archives, Expected
from entourage.errors import EntourageWarning, FileError, InputError, few
from entourage.stores.tables import ID, LABEL, PATH, Column, Table, read_table

__all__ = ["load", "splits"]

TITLE = "a .csv with a line for every image"
EXPECTED: Expected = {}
ARCHIVES: Archives = ()

_BOX = ("x_1", "y_1", "x_2", "y_2")  # in the order left, top, right, bottom
_OTHERS = ("split", *ROLES, *_BOX, "sequence")
_EMPTY = ("", "none", "nan", "null")


def load(
    split: str,
    root: str | PathLike[str] | None,
    *,
    images_root: str | PathLike[str] | None = None,
    path_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    train_share: float | None = None,
) -> ImageFiles:
    """Load a split of a table, in the order of its lines.

    Parameters
    ----------
    split : str
        One of `splits`, or "all" for every line.
    root : path-like
        The table.
    images_root : path-like, optional
        What the paths in it are relative to; default: the table's folder.
    path_column, label_column, id_column : str, optional
        The columns of the paths, classes and ids; default: path, label and id, or a usual name for them.
    train_share : float, optional
        Share of the classes that train, where the table has no column `split`; default: half.

    Returns
    -------
    ImageFiles
        With boxes and sequences where the table has them.
    """
    table = _read(_existing(root), (path_column, label_column, id_column))
    path_name, label_name = _required(table, PATH, path_column), table.find(LABEL, label_column)
    if split == "all" and label_name is not None and not any(table.cells(label_name)):
        label_name = None
    labels = None if label_name is None else _labels(table, label_name)
    rows = rows_of_split(table, split, labels, train_share)
    boxes, sequences = _boxes(table, rows), _sequences(table, rows)
    folder = table.path.parent if images_root is None else Path(images_root)
    names = _present(table, folder, path_name, rows)
    ids = _ids(table, table.find(ID, id_column), id_column, names, boxes, rows)
    chosen = None if labels is None else labels[rows]
    return ImageFiles(folder, names, chosen, ids, boxes, sequences=sequences)


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
    named = [options.get(f"{each}_column") for each in ("path", "label", "id")]
    table = _read(_existing(root), named)
    return names_of_splits(table)


def _existing(path: str | PathLike[str] | None) -> Path:
    if path is None or not Path(path).is_file():
        raise FileError(f"the table {path} does not exist; check the path")
    return Path(path)


def _read(path: Path, given: Iterable[str | None]) -> Table:
    """The table, of which every line has all columns; those that have but one name are in lower case."""
    table = read_table(path, (PATH, LABEL, ID), given)
    lowered = [name.lower() if name.lower() in _OTHERS else name for name in table.header]
    missing = [name for name in ROLES if name not in lowered]
    boxes = [name for name in _BOX if name not in lowered]
    missing = (missing if len(missing) == 1 else []) + (boxes if 0 < len(boxes) < len(_BOX) else [])
    if missing:
        raise FileError(f"{path} has no column `{missing[0]}`; its columns are {few(lowered, 'columns')}: add it")
    for number, line in enumerate(table.rows[1:], start=2):
        if len(line) != len(lowered):
            raise FileError(f"line {number} of {path} has {len(line)} cells; wanted {len(lowered)}: correct it")
    return Table(path, [lowered, *table.rows[1:]] if lowered else [])


def _required(table: Table, column: Column, given: str | None) -> str:
    found = table.find(column, given)
    if found is None:
        raise FileError(
            f"{table.path} has no column of {column.holds}; its columns are {few(table.header, 'columns')}, wanted "
            f"{column.wanted}: name it with {column.option}"
        )
    return found


def _labels(table: Table, name: str) -> np.ndarray:
    """Integers if all of them are, written as such ("007" is not "7"); text if not, (N,)."""
    labels = table.cells(name)
    if "" in labels:
        raise table.bad_cell(labels.index(""), name, "empty", "a class for every image")
    try:
        numbers = np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return np.array(labels, dtype=str)
    return numbers if [str(number) for number in numbers.tolist()] == labels else np.array(labels, dtype=str)


def _boxes(table: Table, rows: np.ndarray) -> np.ndarray | None:
    if _BOX[0] not in table.header:
        return None
    boxes = np.zeros((len(rows), 4), np.int64)
    columns = [table.cells(name) for name in _BOX]
    for place, row in enumerate(rows):
        cells = [column[row] for column in columns]
        if all(cell.lower() in _EMPTY for cell in cells):
            continue
        try:
            boxes[place] = [int(float(cell)) for cell in cells]  # pandas writes 12.0 in a column with empty cells
        except (ValueError, OverflowError):
            raise table.bad_cell(row, "x_1 y_1 x_2 y_2", " ".join(cells), "four numbers, or none") from None
        left, top, right, bottom = boxes[place]
        if not (0 <= left < right and 0 <= top < bottom):
            raise table.bad_cell(row, "x_1 y_1 x_2 y_2", " ".join(cells), "0 ≤ x_1 < x_2 and 0 ≤ y_1 < y_2")
    return boxes if boxes.any() else None


def _sequences(table: Table, rows: np.ndarray) -> np.ndarray | None:
    if "sequence" not in table.header:
        return None
    column = table.cells("sequence")
    cells = [column[row] for row in rows]
    filled = [cell.lower() not in _EMPTY for cell in cells]
    if not any(filled):
        return None
    if not all(filled):
        row = int(rows[filled.index(False)])
        raise table.bad_cell(row, "sequence", "empty", "one for every image of the split, or none")
    return np.array(cells, dtype=str)


def _ids(
    table: Table,
    id_name: str | None,
    given: str | None,
    names: np.ndarray,
    boxes: np.ndarray | None,
    rows: np.ndarray,
) -> np.ndarray:
    """The column of ids; without one the paths, with the box where there is one."""
    if id_name is not None:
        column = table.cells(id_name)
        ids = [column[row] for row in rows]
        if given is not None or ID.is_certain(id_name):
            return _each_once(table, ids, rows, id_name)
        if "" not in ids and len(set(ids)) == len(ids):
            return np.array(ids)
        warnings.warn(
            f"the column `{id_name}` of {table.path} does not tell its images apart, so they are known by their paths; "
            "name the column of the ids with --id-column if there is one",
            EntourageWarning,
            stacklevel=4,
        )
    paths = names.tolist()
    if boxes is not None:  # a picture may be in several splits, whole or in parts
        paths = [
            f"{name}#{','.join(map(str, box))}" if any(box) else name
            for name, box in zip(paths, boxes.tolist(), strict=True)
        ]
    return _each_once(table, paths, rows, None)


def _each_once(table: Table, ids: list[str], rows: np.ndarray, id_name: str | None) -> np.ndarray:
    first: dict[str, int] = {}
    for row, item in zip(rows, ids, strict=True):
        if id_name is not None and not item:
            raise table.bad_cell(row, id_name, "empty", "an id for every image")
        if item in first:
            what = "name the same image," if id_name is None else f"have the same {id_name},"
            fix = "remove one" if id_name is None else "correct one, or name another column with --id-column"
            raise InputError(
                f"lines {first[item] + 2} and {row + 2} of {table.path} {what} {item}; "
                f"wanted every {'image' if id_name is None else 'id'} once in a split: {fix}"
            )
        first[item] = row
    return np.array(ids, dtype=str)


def _present(table: Table, folder: Path, path_name: str, rows: np.ndarray) -> np.ndarray:
    """The paths of the images, all of which must exist."""
    column = table.cells(path_name)
    names = [_on_this_system(folder, column[row]) for row in rows]
    missing = [place for place, name in enumerate(names) if not name or not (folder / name).is_file()]
    if missing:
        row, name = rows[missing[0]], names[missing[0]]
        if not name:
            raise table.bad_cell(row, path_name, "empty", "the path of an image")
        raise FileError(
            f"line {row + 2} of {table.path} names {folder / name}, which does not exist "
            f"({len(missing):,} of {len(names):,} images are missing); check the paths, or name the folder they start "
            "from with --root"
        )
    return np.array(names, dtype=str)


def _on_this_system(folder: Path, name: str) -> str:
    """A path with the marks of Windows as it is written here, unless there is a file of that very name."""
    if "\\" in name and not (folder / name).is_file():
        return name.replace("\\", "/")
    return name
