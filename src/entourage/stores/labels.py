"""Labels from .npy, .csv, .txt, .json or .parquet, or from a column of the vectors' own file."""

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.errors import EntourageWarning, FileError, InputError, few
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, readable
from entourage.stores.tables import ID, LABEL, Column, Table, named_column, read_table
from entourage.values import Embeddings, LabelArray, plural

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["columns_of_table", "is_label_file", "plain_column", "read_labels"]

FORMATS = (".npy", ".csv", ".txt", ".json", ".parquet")


def read_labels(
    labels: StrPath,
    vectors_path: StrPath,
    items: Embeddings,
    *,
    column: Column = LABEL,
    label_column: str | None = None,
    id_column: str | None = None,
) -> LabelArray:
    """Read a label for each item of a vectors file.

    Parameters
    ----------
    labels : str or path-like
        A .npy, .csv, .txt, .json or .parquet file, or the name of a column of the vectors file. The lines of a .csv or
        .parquet with an id column, and the entries of a .json object, are matched with the ids of the items, where
        those have ids of their own; otherwise labels are taken in order.
    vectors_path : str or path-like
        The file that the items were read from.
    items : Embeddings
        N items.
    column : Column
        What is read, by the names it is known by.
    label_column : str, optional
        What the file calls it, if that is another name.
    id_column : str, optional
        What the file calls the ids. A file without that column is taken as if none were named.

    Returns
    -------
    array of shape (N,)
        As many labels as the file has; whether they are N is checked by `Embeddings`.
    """
    if not is_label_file(labels):
        return _own_column(str(labels), Path(vectors_path))
    path = existing(labels, FORMATS, "labels")
    with readable(path):
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix.lower() == ".txt":
            return _lines(path)
        if path.suffix.lower() == ".json":
            return _json_labels(path, items)
        if path.suffix.lower() == ".parquet":
            return _parquet_labels(path, items, column, label_column, id_column)
        table = read_table(path, (column, ID), (label_column, id_column))
        return _csv_labels(table, items, column, label_column, id_column)


def is_label_file(labels: StrPath) -> bool:
    """Whether labels are given as a file, by its name at least, and not as the name of a column."""
    return Path(labels).is_file() or Path(labels).suffix.lower() in FORMATS


def columns_of_table(path: StrPath, *given: str | None) -> list[str]:
    """The columns of a .csv or .parquet, of which some may be those given; none for a file of another kind."""
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.is_file() or suffix not in (".csv", ".parquet"):
        return []
    with readable(path):
        if suffix == ".csv":
            return read_table(path, (LABEL, ID), given).header
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)


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
    raise FileError(
        f"{name} is neither a file nor a column of {path}, which has {few(names, 'columns')}; name one of those"
    )


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


def _lines(path: Path) -> LabelArray:
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
    last = max((number for number, line in enumerate(lines, start=1) if line), default=0)
    return _all_filled(path, lines[:last])


def _json_labels(path: Path, items: Embeddings) -> LabelArray:
    """A list in the order of the items, or an object with a label for each id."""
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    values: list[Any] = list(content.values()) if isinstance(content, dict) else content
    listed = isinstance(values, list)
    whole = listed and all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if not whole and not (listed and all(isinstance(value, str) for value in values)):
        raise FileError(
            f"{path} holds something else than labels; wanted a list of texts or of whole numbers, or an object with "
            "one for each id: write it so"
        )
    if isinstance(content, list):
        return np.array(values, dtype=None if whole and values else str)
    if not items.named:
        raise InputError(
            f"{path} has a label for each id, but the vectors have no ids; wanted a list in their order: write it so"
        )
    return _joined(path, "", list(content), np.array(values), items)


def _parquet_labels(
    path: Path, items: Embeddings, column: Column, label_column: str | None, id_column: str | None
) -> LabelArray:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = table.column_names
    label_name = column.found_in(names) if label_column is None else named_column(names, label_column)
    if label_name is None:
        raise _no_labels(path, names, column)
    labels = plain_column(table, label_name)
    id_name = _id_name(names, id_column)
    if id_name is None:
        return labels
    return _matched(path, id_name, plain_column(table, id_name).astype(str).tolist(), labels, items, id_column)


def _csv_labels(
    table: Table, items: Embeddings, column: Column, label_column: str | None, id_column: str | None
) -> LabelArray:
    if not table.rows:
        raise FileError(f"{table.path} is empty; wanted one label per vector")
    label_name = table.find(column, label_column)
    if label_name is None:
        if len(table.header) != 1:
            raise _no_labels(table.path, table.header, column)
        rows = [row[0] if row else "" for row in table.rows]
        named = _looks_like_header(rows, len(items))
        return _all_filled(table.path, rows[named:], first_line=1 + named)
    labels = np.array(table.filled(label_name), dtype=str)
    id_name = _id_name(table.header, id_column)
    if id_name is None:
        return labels
    return _matched(table.path, id_name, table.filled(id_name), labels, items, id_column)


def _id_name(names: Sequence[str], given: str | None) -> str | None:
    return (named_column(names, given) if given is not None else None) or ID.found_in(names)


def _no_labels(path: Path, names: Sequence[str], column: Column) -> FileError:
    fix = f"name it with {column.option}" if column.option else "rename it"
    return FileError(
        f"{path} has the columns {few(names, 'columns')}; wanted {column.wanted} for the {column.holds}: {fix}"
    )


def _matched(
    path: Path, id_name: str, ids: list[str], labels: LabelArray, items: Embeddings, given: str | None
) -> LabelArray:
    """The labels by id; in order where the vectors have none, or what is only usually called so cannot be the ids."""
    if not items.named:
        beside = path.with_suffix(".npy").exists()  # as `embed` writes them, line by line
        if not beside and ids not in (
            _numbers(0, ids),
            _numbers(1, ids),
        ):  # numbers of lines say no more than their order
            warnings.warn(
                f"the vectors have no ids, so labels are taken in the order of the lines of {path}, whatever its "
                f"column `{id_name}` says; if its order is another one, give vectors with ids (.npz or .parquet)",
                EntourageWarning,
                stacklevel=4,
            )
        return labels
    if given is None and not ID.is_certain(id_name):
        strangers = not set(ids) & set(items.ids.astype(str).tolist())
        if strangers or len(set(ids)) < len(ids):
            reason = "holds no id of a vector" if strangers else "has repeated values"
            warnings.warn(
                f"the column `{id_name}` of {path} {reason}, so labels are taken in the order of its lines; "
                "name the column of the ids with --id-column if there is one",
                EntourageWarning,
                stacklevel=4,
            )
            return labels
    return _joined(path, f" in its column `{id_name}`", ids, labels, items)


def _numbers(first: int, ids: list[str]) -> list[str]:
    return [str(number) for number in range(first, first + len(ids))]


def _joined(path: Path, where: str, ids: list[str], labels: LabelArray, items: Embeddings) -> LabelArray:
    """The labels in the order of the items; lines for other ids are left aside."""
    by_id = dict(zip(ids, labels, strict=True))
    if len(by_id) < len(ids):
        twice = next(item for item, count in Counter(ids).items() if count > 1)
        raise InputError(f"id {twice!r} has more than one line in {path}; wanted one per id: remove the others")
    wanted = items.ids.astype(str).tolist()
    missing = [item for item in wanted if item not in by_id]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(items)} ids have no line in {path}, the first is {missing[0]!r} where the file "
            f"has such as {ids[0]!r}{where}; wanted a label for every vector: add those lines"
        )
    return np.array([by_id[item] for item in wanted])


def _looks_like_header(rows: Sequence[str], count: int) -> bool:
    """Whether the first line of a single column is its name: one line too many, and no label further down."""
    return len(rows) == count + 1 and rows[0] not in rows[1:]


def _all_filled(path: Path, values: Iterable[str], first_line: int = 1) -> LabelArray:
    values = list(values)
    if "" in values:
        raise FileError(
            f"line {values.index('') + first_line} of {path} has an empty cell; wanted a value on every line: fill it"
        )
    return np.array(values, dtype=str)
