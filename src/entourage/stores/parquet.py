"""Columns of vectors in Parquet: lists of numbers, all of one length.

n rows, d dimensions.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.stores.columns import ENCODER, REFINED
from entourage.values import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "holds_vectors",
    "is_number",
    "lists_of",
    "refined_field",
    "refined_metadata",
    "vectors_of",
]


def holds_vectors(kind: "pa.DataType") -> bool:
    """Whether a column of this type holds lists of numbers."""
    import pyarrow.types as types

    listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(listed and is_number(kind.value_type))


def is_number(kind: "pa.DataType") -> bool:
    """Whether a column of this type holds numbers, or nothing at all."""
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_null(kind))


def vectors_of(name: str, column: "pa.Array") -> NDArray[Any]:
    """The vectors (n, d) of a column.

    Parameters
    ----------
    name : str
        The column, for messages.
    column : pyarrow.Array
        Lists of numbers.

    Returns
    -------
    array of shape (n, d)
        Refused are rows without a list, and lists of different lengths.
    """
    lengths = np.unique(column.drop_null().value_lengths().to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1:
        seen = " or ".join(map(str, lengths[:3])) + (" or ..." if len(lengths) > 3 else "")
        raise InputError(
            f"column `{name}` has rows of {seen or 'no'} values and {column.null_count} without any; "
            "wanted the same number of values in every row: drop or re-encode the others"
        )
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), -1)


def refined_field(field: "pa.Field", dim: int) -> "pa.Field":
    """The field of refined vectors in place of the original ones: lists of the same kind, of fractions."""
    import pyarrow as pa

    kind = field.type
    number = kind.value_type if pa.types.is_floating(kind.value_type) else pa.float32()
    if pa.types.is_fixed_size_list(kind):
        new = pa.list_(number, dim)
    else:
        new = pa.large_list(number) if pa.types.is_large_list(kind) else pa.list_(number)
    return pa.field(field.name, new, field.nullable, field.metadata)


def lists_of(field: "pa.Field", vectors: FloatArray) -> "pa.Array":
    """Vectors (n, d) as the column of a field that `refined_field` made."""
    import pyarrow as pa

    kind, (count, dim) = field.type, vectors.shape
    flat = pa.array(np.ascontiguousarray(vectors, kind.value_type.to_pandas_dtype()).ravel())
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(flat, type=kind)
    maker = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    return maker.from_arrays(np.arange(count + 1) * dim, flat, type=kind)


def refined_metadata(schema: "pa.Schema") -> dict[bytes | str, bytes | str]:
    """What the file of refined vectors says beside them: that they are no longer what an encoder made."""
    kept = {key: value for key, value in (schema.metadata or {}).items() if key != ENCODER.encode()}
    return kept | {REFINED: "yes"}
