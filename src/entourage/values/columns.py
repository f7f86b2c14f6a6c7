"""Columns of ids and labels, names for kinds of arrays, and how a frozen value gets its fields."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.values.conversion import as_column

__all__ = [
    "BoolArray",
    "FloatArray",
    "IntArray",
    "LabelArray",
    "Labelled",
    "check_unique",
    "checked_column",
    "label_codes",
    "labels_of",
    "plural",
    "set_frozen",
    "shared_codes",
]

FloatArray = NDArray[np.floating[Any]]
"""An array of float16, float32 or float64."""
IntArray = NDArray[np.integer[Any]]
"""An array of whole numbers of any width: rows, ranks, counts, codes."""
BoolArray = NDArray[np.bool_]
"""An array of True and False."""
LabelArray = NDArray[Any]
"""A column of labels or ids: integers or text."""

_SURROGATES = 0xD800, 0xE000  # halves of a letter, which Python puts in the place of bytes that are not UTF-8


class Labelled(Protocol):
    """Items that may have labels: Embeddings and image sets; they may also have `cameras` and `sequences`."""

    @property
    def labels(self) -> LabelArray | None:
        """(N,) integers or texts, or None where unknown."""


def labels_of(items: Labelled, name: str = "items") -> LabelArray:
    """The labels (N,) of items that must have some; `name` says which items they are, for the message."""
    if items.labels is None:
        raise InputError(f"the {name} have no labels; wanted one per item: add them")
    return items.labels


def label_codes(labels: ArrayLike) -> NDArray[np.int64]:
    """Number labels from 0 in sorted order.

    Parameters
    ----------
    labels : array-like of shape (N,)
        Integers or texts, of C different values.

    Returns
    -------
    array of shape (N,)
        Codes 0 to C - 1; equal labels have equal codes.

    Examples
    --------
    >>> label_codes(["dog", "cat", "dog"]).tolist()
    [1, 0, 1]
    """
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64).reshape(-1)


def shared_codes(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the values of two columns such that equal values have equal codes in both.

    A number equals its text form: 9 and "9" are the same label, as one file may hold the one and another the other.

    Parameters
    ----------
    left : array-like of shape (N,)
    right : array-like of shape (M,)

    Returns
    -------
    left_codes : array of shape (N,)
    right_codes : array of shape (M,)

    Examples
    --------
    >>> [codes.tolist() for codes in shared_codes([7, 9], ["9", "10"])]
    [[1, 2], [2, 0]]
    """
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype.kind != right.dtype.kind:  # also int64 and uint64, which numpy would meet in floats
        left, right = left.astype(str), right.astype(str)
    codes = label_codes(np.concatenate([left, right]))
    return codes[: len(left)], codes[len(left) :]


def checked_column(values: ArrayLike, name: str, count: int, item: str = "vector") -> LabelArray:
    """Check a column of ids, labels or the like: one integer or text per item, none missing.

    Parameters
    ----------
    values : array-like of shape (count,)
        Floats that are whole numbers become integers, Python objects become texts.
    name : str
        What the column is called in messages, in the plural: "labels".
    count : int
        How many items there are.
    item : str, default "vector"
        What an item is called in messages.

    Returns
    -------
    array of shape (count,)
        Integers, booleans or texts.
    """
    column = as_column(values)
    if column.ndim != 1 or len(column) != count:
        seen = f"{len(column)} {name}" if column.ndim == 1 else f"{name} of shape {column.shape}"
        flat = ": flatten them by ravel()" if column.shape in ((count, 1), (1, count)) else ""
        raise InputError(f"{seen} for {count} {item}s; wanted one per {item}, in the same order{flat}")
    missing = np.flatnonzero(_is_missing(column))
    if missing.size:
        raise InputError(
            f"the {name} contain missing values ({missing.size} in all, the first in row {missing[0]}); "
            f"wanted one per {item}: fill or drop those rows"
        )
    if column.dtype.kind in "OT":
        column = column.astype(str)
    if column.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # what no integer can hold differs from its cast, and is refused below
            whole = column.astype(np.int64, casting="unsafe")
        if (whole != column).any():
            raise InputError(
                f"the {name} are {column.dtype} and not whole numbers; wanted integers or text: convert them"
            )
        column = whole
    if column.dtype.kind not in "iubU":
        raise InputError(f"the {name} are of type {column.dtype}; wanted integers or text: convert them")
    _check_text(column, name)
    return column


def _check_text(column: LabelArray, name: str) -> None:
    """Refuse text that no file of UTF-8 can hold, such as a file name in another encoding."""
    if column.dtype.kind != "U" or not column.size or not column.dtype.itemsize:
        return
    letters = np.ascontiguousarray(column).view(np.uint32).reshape(len(column), -1)
    bad = np.flatnonzero(((letters >= _SURROGATES[0]) & (letters < _SURROGATES[1])).any(axis=1))
    if bad.size:
        raise InputError(
            f"the {name} hold {column[bad[0]].item()!r}, which is no valid text ({bad.size} such); wanted text that "
            "UTF-8 can hold: rename it"
        )


def _is_missing(column: LabelArray) -> BoolArray:
    """Where a column (N,) has no value: None, NaN, or what pandas writes for them."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), bool)
    return np.array(
        [
            entry is None
            or (isinstance(entry, float) and entry != entry)
            or type(entry).__name__ in ("NAType", "NaTType")
            for entry in column
        ],
        bool,
    )


def check_unique(ids: LabelArray) -> None:
    """Raise InputError if an id of the column (N,) is repeated."""
    values, counts = np.unique(ids, return_counts=True)
    if len(values) != len(ids):
        repeated = values[counts > 1]
        raise InputError(
            f"id {repeated[0].item()!r} appears {counts[counts > 1][0]} times "
            f"({len(repeated)} id{plural(len(repeated))} repeated); "
            "ids must be unique: remove or rename the repeated rows"
        )


def set_frozen(value: object, **fields: Any) -> None:
    """Set the fields of a frozen dataclass while it is being built; arrays become read-only views.

    Only for `__init__` and `__post_init__`: a value that has been built is never changed, `replace` makes another.

    Parameters
    ----------
    value : object
        The instance being built.
    **fields
        Its checked fields by name.
    """
    for name, field in fields.items():
        if isinstance(field, np.ndarray):
            field = field.view()
            field.flags.writeable = False
        object.__setattr__(value, name, field)


def plural(count: int) -> str:
    """Return the plural ending of a noun with this count: "" for 1, else "s"."""
    return "" if count == 1 else "s"
