"""Labels from .npy, .csv or .txt, or from a column of the vectors' own file."""

import csv
from pathlib import Path

import numpy as np

from entourage.errors import FileError, InputError
from entourage.store.reading import existing, readable
from entourage.values import Embeddings

__all__ = ["plain_column", "read_labels"]

FORMATS = (".npy", ".csv", ".txt")
ID_NAMES = ("ids", "id")
LABEL_NAMES = ("labels", "label")


def read_labels(labels, vectors_path, items: Embeddings) -> np.ndarray:
    """Labels (N,) for the items of a vectors file: from a file of their own, or a column of the vectors' file.

    A .csv with an id column is joined to ids the vectors have; otherwise order decides.
    """
    if not Path(labels).exists() and not Path(labels).suffix:
        return _own_column(str(labels), Path(vectors_path))
    path = existing(labels, FORMATS, "labels")
    with readable(path):
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix.lower() == ".txt":
            return _all_filled(path, path.read_text(encoding="utf-8-sig").splitlines())
        with path.open(newline="", encoding="utf-8-sig") as lines:
            return _csv_labels(path, [row for row in csv.reader(lines) if row], items)


def _own_column(name: str, path: Path) -> np.ndarray:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        with readable(path):
            names = pq.read_schema(path).names
            if name in names:
                return plain_column(pq.read_table(path, columns=[name]), name)
    elif suffix == ".npz":
        with readable(path), np.load(path, allow_pickle=False) as arrays:
            names = arrays.files
            if name in names:
                return arrays[name]
    else:
        raise FileError(f"the labels {name} do not exist; wanted a {', '.join(FORMATS)} file")
    raise FileError(f"{name} is neither a file nor a column of {path}, which has {', '.join(names)}; name one of those")


def plain_column(table, name: str) -> np.ndarray:
    column = table.column(name).combine_chunks()
    if column.null_count:
        raise InputError(
            f"column `{name}` has {column.null_count} missing values; wanted one per row: fill or drop them"
        )
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype.kind == "O" else values


def _csv_labels(path: Path, rows: list[list[str]], items: Embeddings) -> np.ndarray:
    if not rows:
        raise FileError(f"{path} is empty; wanted one label per vector")
    header = [name.strip().lower() for name in rows[0]]
    known = [name for name in LABEL_NAMES if name in header]
    if known:
        column, rows = header.index(known[0]), rows[1:]
    elif len(header) == 1:
        column, rows = 0, rows[len(rows) == len(items) + 1 :]  # one line too many is a header
    else:
        raise FileError(
            f"{path} has the columns {', '.join(rows[0])}; wanted one called `label`: rename it or add a header line"
        )
    short = next((number for number, row in enumerate(rows) if len(row) <= column), None)
    if short is not None:
        raise FileError(f"line {short + 1 + bool(known)} of {path} has no label; wanted one on every line")
    labels = _all_filled(path, [row[column] for row in rows])
    id_names = [name for name in ID_NAMES if name in header]
    if not (known and id_names and items.named):
        return labels
    by_id = dict(zip([row[header.index(id_names[0])] for row in rows], labels, strict=True))
    missing = [item for item in items.ids.astype(str) if item not in by_id]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(items)} ids have no line in {path}, the first is {missing[0]!r}; "
            "wanted a label for every vector"
        )
    return np.array([by_id[item] for item in items.ids.astype(str)])


def _all_filled(path: Path, values: list[str]) -> np.ndarray:
    values = [value.strip() for value in values]
    if "" in values:
        raise FileError(f"line {values.index('') + 1} of {path} is blank; wanted a label on every line")
    return np.array(values, dtype=str)
