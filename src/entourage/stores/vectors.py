"""Vectors to and from .npy, .npz and .parquet.

.npz: an array `vectors`, optional `ids` and `labels`; .parquet: a list column, optional `id` and `label` columns.
Both may carry the fingerprint of their encoder, in an array or the metadata; refined vectors are no longer its own.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from entourage.errors import FileError, InputError
from entourage.stores.atomic import check_free, whole_file
from entourage.stores.labels import ID_NAMES, LABEL_NAMES, one_spelling, plain_column, read_labels
from entourage.stores.reading import existing, named, readable
from entourage.values import Embeddings

__all__ = ["check_writable_like", "encoder_of_vectors", "read_vectors", "write_like"]

ENCODER = "encoder_fingerprint"
FORMATS = (".npy", ".npz", ".parquet")
_VECTOR_NAMES = ("vectors", "vector", "embeddings", "embedding")


def read_vectors(path, *, labels=None, shots: bool = False) -> Embeddings:
    """Embeddings of a file, with its ids if it has any.

    labels: as in read_labels; None for the file's own, if it has any; False for none, whatever the file has.
    shots: with its cameras and sequences too, if it has any; what is called so elsewhere may mean something else.
    """
    path = existing(path, FORMATS, "vectors")
    with named(path):
        items = Embeddings.from_vectors(**_columns(path, _wanted(labels is None, shots)))
    if not labels:
        return items
    given = read_labels(labels, path, items)
    with named(labels):
        return replace(items, labels=given)


def encoder_of_vectors(path) -> str | None:
    """The fingerprint of the encoder that made the vectors of a file, None where it is not said."""
    path = existing(path, FORMATS, "vectors")
    with readable(path):
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return str(arrays[ENCODER][0]) if ENCODER in arrays.files else None
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            said = (pq.read_schema(path).metadata or {}).get(ENCODER.encode())
            return None if said is None else said.decode()
    return None


def check_writable_like(source, target, *, overwrite: bool) -> None:
    """Refuse early what `write_like` would have to refuse late: another format, or an output in the way."""
    source, target = existing(source, FORMATS, "vectors"), Path(target)
    if target.suffix.lower() != source.suffix.lower():
        raise FileError(
            f"the output {target.name} is not a {source.suffix} file, but vectors are written in the input's format: "
            f"call it {target.with_suffix(source.suffix)}"
        )
    if target.is_dir():
        raise FileError(f"{target} is a folder; wanted the name of a file: choose another name")
    check_free(target, overwrite=overwrite)
    if source.suffix.lower() == ".npz":
        with readable(source), source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                arrays[name]  # raises where an array holds Python objects, which could not be written again


def write_like(source, target, vectors) -> None:
    """Write vectors (N, d) to `target` in the format of `source`, keeping its number type and all else it holds."""
    source, target = Path(source), Path(target)
    with whole_file(target) as temporary:
        if source.suffix.lower() == ".npy":
            np.save(temporary, vectors.astype(_float_type(np.load(source, mmap_mode="r").dtype)))
        elif source.suffix.lower() == ".npz":
            with readable(source), source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                name = _npz_vectors(source, arrays)
                held = {key: arrays[key] for key in arrays.files if key != ENCODER}
            np.savez(temporary, **held | {name: vectors.astype(_float_type(held[name].dtype))})
        else:
            _write_parquet_like(source, temporary, vectors)


def _wanted(own_labels: bool, shots: bool) -> dict[str, tuple[str, ...]]:
    """What is read besides the vectors, each with its spellings."""
    labels = {"labels": LABEL_NAMES} if own_labels else {}
    others = {"cameras": ("cameras", "camera"), "sequences": ("sequences", "sequence")} if shots else {}
    return {"ids": ID_NAMES} | labels | others


def _columns(path: Path, wanted: dict[str, tuple[str, ...]]) -> dict[str, np.ndarray]:
    """The arrays of a vectors file under the names vectors, ids, ..., as far as they are wanted and there."""
    with readable(path):
        if path.suffix.lower() == ".npy":
            return {"vectors": np.load(path, mmap_mode="r", allow_pickle=False)}
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                columns = {"vectors": arrays[_npz_vectors(path, arrays)]}
                return columns | {name: arrays[key] for name, key in _known_columns(arrays.files, wanted)}
        return _parquet_columns(path, wanted)


def _known_columns(names, wanted: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """What a file calls its ids, labels, ...: ("ids", "id"), ..."""
    found = [(name, one_spelling(names, spellings)) for name, spellings in wanted.items()]
    return [(name, key) for name, key in found if key is not None]


def _npz_vectors(path: Path, arrays) -> str:
    known = [name for name in _VECTOR_NAMES if name in arrays.files]
    tables = known or [name for name in arrays.files if arrays[name].ndim == 2]
    if len(tables) != 1:
        raise FileError(
            f"{path} holds the arrays {', '.join(arrays.files) or '(none)'}; wanted exactly one array of "
            "vectors, called `vectors`: rename the others"
        )
    return tables[0]


def _parquet_columns(path: Path, wanted: dict[str, tuple[str, ...]]) -> dict[str, np.ndarray]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {"vectors": _list_column(table, _parquet_vectors(path, table.schema))}
    return columns | {name: plain_column(table, key) for name, key in _known_columns(table.column_names, wanted)}


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


def _list_column(table, name: str) -> np.ndarray:
    column = table.column(name).combine_chunks()
    if not len(column):
        raise InputError(f"column `{name}` has 0 rows; at least one item is needed")
    lengths = np.unique(column.drop_null().value_lengths().to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1:
        seen = " or ".join(map(str, lengths[:3])) + (" or ..." if len(lengths) > 3 else "")
        raise InputError(
            f"column `{name}` has rows of {seen or 'no'} values and {column.null_count} without any; "
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
    metadata = {key: value for key, value in (table.schema.metadata or {}).items() if key != ENCODER.encode()}
    table = table.set_column(position, field, values).replace_schema_metadata(metadata or None)
    pq.write_table(table, target)


def _float_type(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "f" else np.dtype(np.float32)
