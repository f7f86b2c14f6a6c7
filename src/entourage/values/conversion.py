"""Vectors and labels of any kind as arrays: lists, numpy, pandas, polars, pyarrow, torch.

No library is imported for a kind that is not its own: a value says by its type which one made it. What cannot be used
is refused in one sentence that names what was seen and what to do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from os import PathLike
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError

__all__ = ["as_column", "as_matrix", "holds_lists", "library"]

_LIBRARIES = ("pandas", "polars", "pyarrow", "scipy", "torch")


class _WrongType(InputError, TypeError):
    """Something that is no number at all; Python and scikit-learn expect a TypeError then."""


def library(value: Any) -> str:
    """The package that defines the type of a value, "torch" for any kind of tensor; "" if it is none known here."""
    return next((name for kind in type(value).__mro__ if (name := kind.__module__.split(".")[0]) in _LIBRARIES), "")


# ---- vectors -------------------------------------------------------------------------------------------------------


def as_matrix(values: Any, name: str = "vectors") -> NDArray[Any]:
    """Read vectors of any kind as an array, without a copy where that is possible.

    Parameters
    ----------
    values : array-like of shape (N, d)
        Array, nested lists, list of arrays or tensors, DataFrame of numbers, column of lists (pandas, polars, pyarrow),
        tensor of any device and precision, or whatever numpy reads.
    name : str
        What messages call them.

    Returns
    -------
    array of shape (N, d)
        Real numbers; whether they are finite is not checked.

    Examples
    --------
    >>> as_matrix([np.array([1.0, 0.0]), (0.6, 0.8)]).shape
    (2, 2)
    >>> as_matrix(np.ones(3), "X")
    Traceback (most recent call last):
    entourage.errors.InputError: X must be a table of numbers (N, d), one row per item, not of shape (3,). \
Reshape your data: a single vector is a table of one row after reshape(1, -1)
    """
    array = _numbers(_array(values, name), name)
    if array.ndim == 2:
        return array
    advice = {
        0: "give one row of numbers per item",
        1: "a single vector is a table of one row after reshape(1, -1)",
    }.get(array.ndim, "make each item one row by reshape(len(items), -1), or turn pictures into vectors first")
    _refuse(name, f"of shape {array.shape}. Reshape your data", advice)  # as scikit-learn puts it, and its checks want


def _array(values: Any, name: str) -> NDArray[Any]:
    """Any kind as an array of any shape and type."""
    readers = {"pandas": _from_pandas, "polars": _from_polars, "pyarrow": _from_pyarrow, "torch": _from_torch}
    reader = readers.get(library(values))
    if reader:
        return reader(values, name)
    _refuse_what_is_no_table(values, name)
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values, name)
    if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.dtype == object):
        return _from_rows(values, name)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        _refuse(
            name, f"a {type(values).__name__} that numpy cannot read ({_one_line(error)})", "convert it to an array"
        )
    if array.dtype == object and not array.ndim:
        _refuse(name, f"a {type(values).__name__}", "give an array, a DataFrame, a tensor or Embeddings")
    return array


def _refuse_what_is_no_table(values: Any, name: str) -> None:
    if values is None:
        _refuse(name, "None", "give the vectors")
    if isinstance(values, str | bytes | PathLike):
        _refuse(name, f"the text {values!r}", "read a file first, as with numpy.load, and turn texts into vectors")
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        _refuse(name, "a sparse matrix", "call its toarray(), after reducing its columns if there are very many")
    if isinstance(values, Mapping):
        _refuse(name, f"a {type(values).__name__}", "give its values() as a list, and its keys as ids of Embeddings")
    if isinstance(values, Iterator | Set):
        _refuse(name, f"a {type(values).__name__}, which has no rows to count", "make a list of it")


def _from_rows(rows: Sequence[Any] | NDArray[Any], name: str) -> NDArray[Any]:
    """A list of rows, each of any kind, or an array of objects."""
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        return rows
    kept = [row if isinstance(row, list | tuple | np.ndarray | float | int) else _row(row, name) for row in rows]
    lengths = [len(row) if isinstance(row, Sequence | np.ndarray) and np.ndim(row) else -1 for row in kept]
    of_vectors = max(lengths, default=-1) >= 0  # NaN among numbers is a number that is wrong, among vectors no vector
    missing = [number for number, row in enumerate(rows) if row is None or (of_vectors and _is_missing(row))]
    if missing:
        _refuse(name, f"one whose row {missing[0]} is missing ({len(missing)} in all)", "drop those rows")
    odd = next((number for number, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None:
        seen = f"one whose row {odd} has {max(lengths[odd], 1)} values and row 0 {max(lengths[0], 1)}"
        _refuse(name, seen, "give every item a vector of the same size")
    return np.stack(kept) if kept and all(isinstance(row, np.ndarray) for row in kept) else np.asarray(kept)


def _row(row: Any, name: str) -> Any:
    """A row of a list: a tensor or a Series as an array; numbers, texts and what is missing as they are."""
    return row if row is None or isinstance(row, str | bytes) or not hasattr(row, "__len__") else _array(row, name)


def _from_torch(tensor: Any, name: str) -> NDArray[Any]:
    """In the processor's memory, in the least precision that numpy has for it, out of any graph of gradients."""
    if str(tensor.layout) != "torch.strided":
        _refuse(name, "a sparse tensor", "call its to_dense()")
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        try:
            return np.asarray(tensor.numpy())
        except TypeError:  # bfloat16 and the like
            return np.asarray(tensor.float().numpy())
    except (NotImplementedError, RuntimeError, TypeError) as error:
        _refuse(name, f"a tensor that numpy cannot read ({_one_line(error)})", "convert it to an array")


def _unmasked(values: "np.ma.MaskedArray[Any, Any]", name: str) -> NDArray[Any]:
    masked = int(np.ma.getmaskarray(values).sum())
    if masked:
        _refuse(name, f"one with {masked} masked values", "fill them, or drop their rows")
    return np.asarray(values.data)


# ---- columns of a table ------------------------------------------------------------------------------------------


def holds_lists(values: Any) -> bool:
    """Whether this is a column whose every entry is a vector, or a DataFrame of one such column alone."""
    if _is_frame(values):
        return values.shape[1] == 1 and holds_lists(_columns(values)[0])
    if library(values) == "polars":
        return getattr(values, "dtype", None) is not None and values.dtype.is_nested()
    if library(values) != "pandas":
        return False
    return isinstance(_first(values), list | tuple | np.ndarray)


def _first(column: Any) -> Any:
    """The first entry that is there; None if all are missing."""
    return next((entry for entry in column if not _is_missing(entry)), None)


def _is_missing(entry: Any) -> bool:
    """Whether this is None, NaN, or what pandas has for them."""
    return (
        entry is None or type(entry).__name__ in ("NAType", "NaTType") or (isinstance(entry, float) and entry != entry)
    )


def _is_frame(values: Any) -> bool:
    return library(values) in ("pandas", "polars") and hasattr(values, "columns") and hasattr(values, "shape")


def _columns(frame: Any) -> list[Any]:
    """The columns as Series, also where two have the same name."""
    if library(frame) == "polars":
        return list(frame.get_columns())
    return [frame.iloc[:, number] for number in range(frame.shape[1])]


def _check_columns(frame: Any, name: str) -> None:
    """Refuse a DataFrame of which some columns are not numbers, by the first of them."""
    for label, column in zip(frame.columns, _columns(frame), strict=True):
        if holds_lists(column):
            _refuse(
                name, f"a DataFrame whose column {label!r} holds the vectors", f"pass that column alone, [{label!r}]"
            )
        first = _first(column)
        if isinstance(first, str):
            seen = f"a DataFrame whose column {label!r} holds text such as {_short(first)}"
            _refuse(name, seen, "pass the columns of numbers alone")


def _from_pandas(table: Any, name: str) -> NDArray[Any]:
    if _is_frame(table) and not holds_lists(table):
        array = np.asarray(table.to_numpy())
        if array.dtype != object:
            return array
        _check_columns(table, name)
        return _as_floats(lambda: table.to_numpy(dtype=np.float64, na_value=np.nan), name)
    column = _columns(table)[0] if _is_frame(table) else table
    return _from_rows(np.asarray(column), name) if holds_lists(column) else np.asarray(column)


def _from_polars(table: Any, name: str) -> NDArray[Any]:
    if not hasattr(table, "to_numpy"):
        _refuse(name, f"a {type(table).__name__}", "call its collect() first")
    if _is_frame(table) and not holds_lists(table):
        _check_columns(table, name)
        return np.asarray(table.to_numpy())
    column = _columns(table)[0] if _is_frame(table) else table
    if not holds_lists(column):
        return np.asarray(column.to_numpy())
    lists = column.arr.to_list() if type(column.dtype).__name__ == "Array" else column
    sizes = lists.list.len()
    if lists.null_count() or sizes.n_unique() > 1:
        return _from_rows(lists.to_list(), name)  # which says what row is wrong
    return np.asarray(lists.explode().to_numpy()).reshape(len(lists), -1)


def _from_pyarrow(table: Any, name: str) -> NDArray[Any]:
    if hasattr(table, "columns"):
        if len(table.columns) > 1:
            return np.asarray(table)
        table = table.columns[0]
    rows = np.asarray(table)
    return _from_rows(rows, name) if rows.dtype == object else rows


# ---- numbers -----------------------------------------------------------------------------------------------------


def _numbers(array: NDArray[Any], name: str) -> NDArray[Any]:
    """An array of any type as one of real numbers."""
    kind = array.dtype.kind
    if kind == "O":
        return _as_floats(lambda: array.astype(np.float64), name)
    if kind == "c":
        raise InputError(
            f"Complex data not supported: {name} must be a table of real numbers (N, d), one row per item: pass its "
            "real and imaginary parts side by side"
        )
    if kind in "USTa":
        example = _short(array.ravel()[0]) if array.size else "none"
        _refuse(name, f"text such as {example}", "turn it into vectors first, with an encoder")
    if kind not in "fiu":
        _refuse(name, f"values of type {array.dtype}", "convert them to numbers")
    return array


def _as_floats(convert: Callable[[], Any], name: str) -> NDArray[Any]:
    try:
        return np.asarray(convert())
    except ValueError as error:
        _refuse(name, f"one of mixed values ({_one_line(error)})", "convert every value to a number")
    except TypeError as error:
        text = _told(name, f"one of mixed values ({_one_line(error)})", "convert every value to a number")
        raise _WrongType(text) from error


def _refuse(name: str, seen: str, advice: str) -> NoReturn:
    raise InputError(_told(name, seen, advice)) from None


def _told(name: str, seen: str, advice: str) -> str:
    return f"{name} must be a table of numbers (N, d), one row per item, not {seen}: {advice}"


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _short(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 20 else f"{text[:20]}...")


# ---- labels and ids ----------------------------------------------------------------------------------------------


def as_column(values: Any) -> NDArray[Any]:
    """Read labels or ids of any kind as an array.

    Parameters
    ----------
    values : array-like of shape (N,)
        List, array, Series of pandas or polars (also categorical, or of a type that has missing values), or tensor.

    Returns
    -------
    array
        Of any shape and type; what is missing is None, NaN or NA.

    Examples
    --------
    >>> as_column(iter([3, 4])).tolist()
    [3, 4]
    """
    of = library(values)
    if of in ("pandas", "polars") and _is_frame(values) and values.shape[1] == 1:
        values = _columns(values)[0]
    if of == "torch":
        return _from_torch(values, "labels")
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # None where it is masked
    if isinstance(values, Iterator):
        values = list(values)
    column = np.asarray(values)
    if column.dtype != object or column.ndim != 1:
        return column
    return _of_one_type(column)


def _of_one_type(column: NDArray[Any]) -> NDArray[Any]:
    """Numbers or texts that stand in an array of objects, as pandas keeps them, in an array of their own type."""
    if not all(isinstance(entry, int | str | np.integer) for entry in column):
        return column
    return np.asarray(column.tolist())
