"""Labels from .npy, .csv or .txt, or from a column of the vectors' own file."""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from entourage.errors import FileError, InputError
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, readable
from entourage.values import Embeddings, LabelArray, plural

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["one_spelling", "plain_column", "read_labels"]

FORMATS = (".npy", ".csv", ".txt")
ID_NAMES = ("ids", "id")
LABEL_NAMES = ("labels", "label")

_Line = TypeVar("_Line", str, list[str])


def read_labels(labels: StrPath, vectors_path: StrPath, items: Embeddings) -> LabelArray:
    """Read a label for each item of a vectors file.

    Parameters
    ----------
    labels : str or path-like
        A .npy, .csv or .txt file, or the name of a column of the vectors file. The lines of a .csv with an id column
        are matched with the ids of the items, where those have ids of their own; otherwise labels are taken in order.
    vectors_path : str or path-like
        The file that the items were read from.
    items : Embeddings
        N items.

    Returns
    -------
    array of shape (N,)
        As many labels as the file has; whether they are N is checked by `Embeddings`.
    """
    if not Path(labels).is_file() and Path(labels).suffix.lower() not in FORMATS:
        return _own_column(str(labels), Path(vectors_path))
    path = existing(labels, FORMATS, "labels")
    with readable(path):
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix.lower() == ".txt":
            return _all_filled(path, _without_blank_end(path.read_text(encoding="utf-8-sig").split("\n")))
        with path.open(newline="", encoding="utf-8-sig") as lines:
            return _csv_labels(path, _without_blank_end(list(csv.reader(lines))), items)


def one_spelling(names: Iterable[str], spellings: tuple[str, ...]) -> str | None:
    """Find which spelling of a column's name a file uses.

    Parameters
    ----------
    names : iterable of str
        The columns of the file.
    spellings : tuple of str
        What the wanted column may be called.

    Returns
    -------
    str or None
        The spelling that is among the names, or None; two are an error, as either could be meant.
    """
    names = set(names)
    found = [spelling for spelling in spellings if spelling in names]
    if len(found) > 1:
        raise InputError(
            f"there are columns called `{found[0]}` and `{found[1]}`; wanted only one of them: rename the other"
        )
    return found[0] if found else None


def _own_column(name: str, path: Path) -> LabelArray:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        with readable(path):
            names = pq.read_schema(path).names
            if name in names:
                return plain_column(pq.read_table(path, columns=[name]), name)
    elif suffix == ".npz":
        with readable(path), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = arrays.files
            if name in names:
                return np.asarray(arrays[name])
    else:
        raise FileError(f"there is no file {name} to read labels from; wanted {', '.join(FORMATS)}: check the path")
    raise FileError(f"{name} is neither a file nor a column of {path}, which has {', '.join(names)}; name one of those")


def plain_column(table: "pa.Table", name: str) -> LabelArray:
    """Take a column of integers or texts out of an Arrow table of N rows, as an array of shape (N,)."""
    column = table.column(name).combine_chunks()
    if column.null_count:
        raise InputError(
            f"column `{name}` has {column.null_count} missing value{plural(column.null_count)}; "
            "wanted one per row: fill or drop them"
        )
    if column.type.num_fields:
        raise InputError(f"column `{name}` is of type {column.type}; wanted one integer or text per row")
    values: LabelArray = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype.kind == "O" else values


def _csv_labels(path: Path, rows: Sequence[list[str]], items: Embeddings) -> LabelArray:
    if not rows:
        raise FileError(f"{path} is empty; wanted one label per vector")
    header = [name.strip().lower() for name in rows[0]]
    label_name, id_name = one_spelling(header, LABEL_NAMES), one_spelling(header, ID_NAMES)
    if not label_name and len(header) != 1:
        raise FileError(
            f"{path} has the columns {', '.join(rows[0])}; wanted one called `label`: rename it or add a header line"
        )
    _check_commas(path, header)
    has_header = bool(label_name) or _looks_like_header(rows, len(items))
    column = header.index(label_name) if label_name else 0
    labels = _all_filled(path, _cells(rows[has_header:], column), first_line=1 + has_header)
    if not (label_name and id_name and items.named):
        return labels
    ids = _all_filled(path, _cells(rows[1:], header.index(id_name)), first_line=2)
    return _joined(path, ids.tolist(), labels, items)


def _joined(path: Path, ids: list[str], labels: LabelArray, items: Embeddings) -> LabelArray:
    """The labels in the order of the items; lines for other ids are left aside."""
    by_id = dict(zip(ids, labels, strict=True))
    if len(by_id) < len(ids):
        twice = next(item for item, count in Counter(ids).items() if count > 1)
        raise InputError(f"id {twice!r} has more than one line in {path}; wanted one per id: remove the others")
    wanted = items.ids.astype(str).tolist()
    missing = [item for item in wanted if item not in by_id]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(items)} ids have no line in {path}, the first is {missing[0]!r}; "
            "wanted a label for every vector: add those lines"
        )
    return np.array([by_id[item] for item in wanted])


def _looks_like_header(rows: Sequence[list[str]], count: int) -> bool:
    """Whether the first line of a single column is its name: one line too many, and no label further down."""
    return len(rows) == count + 1 and rows[0] not in rows[1:]


def _check_commas(path: Path, header: list[str]) -> None:
    for mark in ";\t":
        if len(header) == 1 and set(LABEL_NAMES) & set(header[0].split(mark)) and mark in header[0]:
            raise FileError(f"the columns of {path} are separated by {mark!r}; wanted commas: save it with those")


def _cells(rows: Sequence[list[str]], column: int) -> list[str]:
    return [row[column] if column < len(row) else "" for row in rows]


def _without_blank_end(lines: Sequence[_Line]) -> Sequence[_Line]:
    """Text lines, or rows of cells, up to the last that is not blank."""
    last = max((number for number, line in enumerate(lines, start=1) if "".join(line).strip()), default=0)
    return lines[:last]


def _all_filled(path: Path, values: Iterable[str], first_line: int = 1) -> LabelArray:
    values = [value.strip() for value in values]
    if "" in values:
        raise FileError(
            f"line {values.index('') + first_line} of {path} has an empty cell; wanted a value on every line: fill it"
        )
    return np.array(values, dtype=str)
