"""Which lines of a table of images belong to which split."""

import numpy as np

from entourage.data.folder import divided_classes, warn_of_single_images
from entourage.data.layout import check_split, warn_of_shared_classes
from entourage.errors import FileError, InputError, few
from entourage.stores.tables import Table

__all__ = ["ROLES", "names_of_splits", "rows_of_split"]

ROLES = ("is_query", "is_gallery")
_TRAIN, _TESTED = ("train",), ("validation", "test")
_YES, _NO = ("true", "1", "1.0"), ("false", "0", "0.0")


def names_of_splits(table: Table) -> tuple[str, ...]:
    """The splits of a table: train and test, or train, query and gallery."""
    return tuple(_members(table)) if "split" in table.header else ("train", "test")


def rows_of_split(table: Table, split: str, labels: np.ndarray | None, train_share: float | None) -> np.ndarray:
    """The rows of a split of a table.

    Parameters
    ----------
    table : Table
        A line for each of N images.
    split : str
        One of `names_of_splits`, or "all".
    labels : ndarray, shape (N,), or None
        The class of each image, where known.
    train_share : float or None
        Share of the classes that train, where the table does not say which; None: half.

    Returns
    -------
    ndarray of int, shape (n,)
        In the order of the lines.
    """
    if split == "all":
        if len(table.rows) < 2:
            raise FileError(f"{table.path} has no line below its header; wanted one for every image: add them")
        return np.arange(len(table.rows) - 1)
    names = names_of_splits(table)
    check_split(split, (*names, "all"), str(table.path))
    if labels is None:
        raise FileError(
            f"{table.path} has no column of classes, by which it is divided into {' and '.join(names)}; its columns "
            f"are {few(table.header, 'columns')}: name it with --label-column, or take the split all"
        )
    members = _members(table) if "split" in table.header else _halves(table, labels, train_share)
    if "split" in table.header and train_share is not None:
        raise InputError(f"train_share is {train_share} but {table.path} has a column `split`; leave it out")
    tested = np.concatenate([rows for name, rows in members.items() if name != "train"])
    warn_of_shared_classes(table.path, labels[members["train"]], labels[tested])
    if not len(members[split]):
        raise FileError(f"{table.path} has no line of the split {split}; wanted one or more: check its column `split`")
    if split in ("train", "test"):  # a query's match is in the gallery
        warn_of_single_images(table.path, labels[members[split]], split)
    return members[split]


def _halves(table: Table, labels: np.ndarray, train_share: float | None) -> dict[str, np.ndarray]:
    """Classes in sorted order, the first of which train."""
    if ROLES[0] in table.header:
        raise FileError(
            f"{table.path} has the columns `is_query` and `is_gallery` but no column `split`; add it, with train or "
            "validation on every line"
        )
    trained, _ = divided_classes(table.path, np.unique(labels).tolist(), 0.5 if train_share is None else train_share)
    seen = np.isin(labels, trained)
    return {"train": np.flatnonzero(seen), "test": np.flatnonzero(~seen)}


def _members(table: Table) -> dict[str, np.ndarray]:
    """The rows of every split that the table names: train and test, or train, query and gallery."""
    cells = table.cells("split")
    for row, split in enumerate(cells):
        if split.lower() not in _TRAIN + _TESTED:
            raise table.bad_cell(row, "split", split or "empty", "train or validation")
    tested = np.array([split.lower() in _TESTED for split in cells], bool)
    members = {"train": np.flatnonzero(~tested)}
    if ROLES[0] not in table.header:
        return members | {"test": np.flatnonzero(tested)}
    query, gallery = (_flags(table, role, tested) for role in ROLES)
    neither = np.flatnonzero(tested & ~query & ~gallery)
    if len(neither):
        raise table.bad_cell(neither[0], "is_query", "False and so is `is_gallery`", "one of them True in validation")
    if (query[tested] & gallery[tested]).all():
        return members | {"test": np.flatnonzero(tested)}
    return members | {"query": np.flatnonzero(query), "gallery": np.flatnonzero(gallery)}


def _flags(table: Table, name: str, tested: np.ndarray) -> np.ndarray:
    cells = table.cells(name)
    flags = np.zeros(len(cells), bool)
    for row in np.flatnonzero(tested).tolist():
        cell = cells[row].lower()
        if cell not in _YES + _NO:
            raise table.bad_cell(row, name, cells[row] or "empty", "True or False in validation")
        flags[row] = cell in _YES
    return flags
