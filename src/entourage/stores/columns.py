"""Which columns of a vectors file, or of the file of its labels, hold ids and labels: named, or recognised."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from entourage.errors import EntourageWarning, FileError, InputError, few
from entourage.stores.labels import columns_of_table, is_label_file
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, readable
from entourage.stores.tables import ID, Column, named_column
from entourage.values import check_unique, checked_column

__all__ = ["ENCODER", "FORMATS", "REFINED", "check_named", "columns_where_present", "known_columns"]

FORMATS = (".npy", ".npz", ".parquet")
ENCODER = "encoder_fingerprint"
REFINED = "entourage_refined"
"""What an array of a .npz, or the metadata of a .parquet, may say of the vectors."""


def columns_where_present(
    path: StrPath, labels: StrPath | None, *, id_column: str | None, label_column: str | None
) -> dict[str, str | None]:
    """The named columns as far as a second set of vectors, such as a gallery, can have them.

    Parameters
    ----------
    path : str or path-like
        The second file of vectors.
    labels : str, path-like or None
        Its labels.
    id_column, label_column : str or None
        The columns that are named for the first.

    Returns
    -------
    dict
        The arguments `id_column` and `label_column` of `read_vectors`; None where a file of its own has no columns, or
        not that of the ids.
    """
    of_labels = labels is not None and is_label_file(labels)
    own = _column_names(existing(path, FORMATS, "vectors"))
    others = columns_of_table(labels, id_column, label_column) if labels is not None and of_labels else []
    known_id = id_column is not None and named_column([*own, *others], id_column) is not None
    named_labels = labels is None or of_labels
    has_labels = named_labels and bool(others if of_labels else own)
    return {"id_column": id_column if known_id else None, "label_column": label_column if has_labels else None}


def check_named(
    path: Path, labels: StrPath | Literal[False] | None, id_column: str | None, label_column: str | None
) -> None:
    """Refuse a named column that none of the files has."""
    if id_column is None and label_column is None:
        return
    own = _column_names(path)
    if label_column is not None and labels and not is_label_file(labels):
        raise InputError(
            f"the labels are the column {labels} of {path} and the column of labels is {label_column}; "
            "wanted one of them: leave --label-column out"
        )
    others = columns_of_table(labels, id_column, label_column) if labels else []
    _check_there("--id-column", id_column, [*own, *others], f"{path} or {labels}" if labels else f"{path}")
    if labels is not False:
        _check_there("--label-column", label_column, others if labels else own, f"{labels or path}")


def _check_there(option: str, given: str | None, names: list[str], where: str) -> None:
    if given is None or named_column(names, given) is not None:
        return
    if not names:
        raise FileError(f"{option} is {given} but there are no columns with names in {where}; leave it out")
    raise FileError(f"there is no column `{given}` in {where}, which has {few(names, 'columns')}; name one of those")


def _column_names(path: Path) -> list[str]:
    """The names of what a vectors file holds; none in a .npy."""
    with readable(path):
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return list(arrays.files)
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(path).names)
    return []


def known_columns(
    path: Path,
    vectors: NDArray[Any],
    names: list[str],
    wanted: dict[str, tuple[Column, str | None]],
    read: Callable[[str], NDArray[Any]],
) -> dict[str, NDArray[Any]]:
    """The ids, labels, ... of a file: by the name that is given, or one that is recognised."""
    found = {}
    for name, (column, given) in wanted.items():
        key = (None if given is None else named_column(names, given)) or column.found_in(names)
        if key is None:
            continue
        if given is not None or column.is_certain(key):
            found[name] = read(key)
        elif (values := _usable(path, key, column, len(vectors), read)) is not None:
            found[name] = values
    return found


def _usable(
    path: Path, key: str, column: Column, count: int, read: Callable[[str], NDArray[Any]]
) -> NDArray[Any] | None:
    """A column that is only usually called so; None, with a warning, where it cannot be what its name suggests."""
    try:
        values = checked_column(read(key), column.holds, count)
        if column is ID:
            check_unique(values)
        return values
    except InputError as error:
        warnings.warn(
            f"the column `{key}` of {path} is not used as {column.holds}: {error}", EntourageWarning, stacklevel=4
        )
        return None
