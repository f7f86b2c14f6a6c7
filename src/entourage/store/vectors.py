"""Vectors to and from .npy, .npz and .parquet.

.npz: an array `vectors`, optional `ids` and `labels`; .parquet: a list column, optional `id` and `label` columns.
"""

from pathlib import Path

import numpy as np

from entourage.errors import FileError, InputError
from entourage.store.atomic import check_free, whole_file
from entourage.store.labels import ID_NAMES, LABEL_NAMES, plain_column, read_labels
from entourage.store.reading import existing, readable
from entourage.values import Embeddings

__all__ = ["check_writable_like", "read_vectors", "write_like"]

FORMATS = (".npy", ".npz", ".parquet")
_VECTOR_NAMES = ("vectors", "vector", "embeddings", "embedding")


def read_vectors(path, *, labels=None) -> Embeddings:
    """Embeddings of a file, with its ids if it has any; `labels` as in read_labels, or None for the file's own."""
    path = existing(path, FORMATS, "vectors")
    columns = _columns(path)
    ids = columns.get("ids")
    if labels is not None:
        own = Embeddings.from_vectors(columns["vectors"], ids)
        return Embeddings(own.vectors, own.ids, read_labels(labels, path, own), named=own.named)
    return Embeddings.from_vectors(columns["vectors"], ids, columns.get("labels"))


def check_writable_like(source, target, *, overwrite: bool) -> None:
    """Refuse early what `write_like` would have to refuse late: another format, or an output in the way."""
    source, target = Path(source), Path(target)
    if target.suffix.lower() != source.suffix.lower():
        raise FileError(
            f"the output {target.name} is not a {source.suffix} file, but vectors are written in the input's format: "
            f"use --out {target.with_suffix(source.suffix)}"
        )
    check_free(target, overwrite=overwrite)


def write_like(source, target, vectors) -> None:
    """Write vectors (N, d) to `target` in the format of `source`, keeping its number type and all else it holds."""
    source, target = Path(source), Path(target)
    with whole_file(target) as temporary:
        if source.suffix.lower() == ".npy":
            np.save(temporary, vectors.astype(_float_type(np.load(source, mmap_mode="r").dtype)))
        elif source.suffix.lower() == ".npz":
            with np.load(source) as arrays:
                name = _npz_vectors(source, arrays)
                rest = {key: arrays[key] for key in arrays.files if key != name}
                np.savez(temporary, **{name: vectors.astype(_float_type(arrays[name].dtype))}, **rest)
        else:
            _write_parquet_like(source, temporary, vectors)


def _columns(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a vectors file under the names vectors, ids, labels, as far as it has them."""
    with readable(path):
        if path.suffix.lower() == ".npy":
            return {"vectors": np.load(path, mmap_mode="r", allow_pickle=False)}
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                columns = {"vectors": arrays[_npz_vectors(path, arrays)]}
                return columns | {name: arrays[key] for name, key in _known_columns(arrays.files)}
        return _parquet_columns(path)


def _known_columns(names) -> list[tuple[str, str]]:
    """What a file calls its ids and labels: ("ids", "id"), ..."""
    spellings = [("ids", key) for key in ID_NAMES] + [("labels", key) for key in LABEL_NAMES]
    return [(name, key) for name, key in spellings if key in names]


def _npz_vectors(path: Path, arrays) -> str:
    named = [name for name in _VECTOR_NAMES if name in arrays.files]
    tables = named or [name for name in arrays.files if arrays[name].ndim == 2]
    if len(tables) != 1:
        raise FileError(
            f"{path} holds the arrays {', '.join(arrays.files) or '(none)'}; wanted one called `vectors`: rename it"
        )
    return tables[0]


def _parquet_columns(path: Path) -> dict[str, np.ndarray]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {"vectors": _list_column(path, table, _parquet_vectors(path, table.schema))}
    return columns | {name: plain_column(table, key) for name, key in _known_columns(table.column_names)}


def _parquet_vectors(path: Path, schema) -> str:
    import pyarrow.types as types

    lists = [
        field.name
        for field in schema
        if types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type)
    ]
    chosen = [name for name in _VECTOR_NAMES if name in lists] or lists
    if len(chosen) != 1:
        raise FileError(
            f"{path} has the columns {', '.join(schema.names)}, {len(lists)} of them lists; "
            "wanted one list column of numbers called `vector`: rename it"
        )
    return chosen[0]


def _list_column(path: Path, table, name: str) -> np.ndarray:
    column = table.column(name).combine_chunks()
    lengths = np.unique(np.asarray(column.value_lengths().to_numpy(zero_copy_only=False), float))
    if column.null_count or len(lengths) != 1 or np.isnan(lengths).any():
        seen = ", ".join(f"{length:g}" for length in lengths[:3]) or "none"
        raise InputError(
            f"column `{name}` of {path} has rows of {seen} values and {column.null_count} empty ones; "
            "wanted the same number of values in every row: drop or re-encode the others"
        )
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _write_parquet_like(source: Path, target: Path, vectors) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(source)
    position = table.schema.get_field_index(_parquet_vectors(source, table.schema))
    field = table.schema.field(position)
    number = field.type.value_type if pa.types.is_floating(field.type.value_type) else pa.float32()
    flat = pa.array(vectors.astype(number.to_pandas_dtype()).ravel())
    kind = field.type
    if pa.types.is_fixed_size_list(kind):
        values = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    else:
        maker = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        values = maker.from_arrays(np.arange(len(vectors) + 1) * vectors.shape[1], flat)
    field = pa.field(field.name, values.type, field.nullable, field.metadata)
    pq.write_table(table.set_column(position, field, values), target)


def _float_type(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "f" else np.dtype(np.float32)
