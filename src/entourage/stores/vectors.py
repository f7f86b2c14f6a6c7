"""Vectors to and from .npy, .npz and .parquet.

.npz: an array `vectors`, optional `ids` and `labels`; .parquet: a list column, optional `id` and `label` columns, or
others that are named, or known by a usual name (tables.py).
Both may carry the fingerprint of the encoder that made the vectors, in an array or the metadata. It is not written
with refined vectors, as they are no longer what the encoder made: they carry the mark that they are refined.
"""

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from entourage.errors import FileError, InputError, ModelError, few
from entourage.runtime.warnings import warn_caller
from entourage.stores.atomic import Outputs
from entourage.stores.columns import ENCODER, FORMATS, REFINED, check_named, known_columns
from entourage.stores.labels import plain_column, read_labels
from entourage.stores.parquet import (
    holds_vectors,
    is_number,
    lists_of,
    refined_field,
    refined_metadata,
    vectors_of,
)
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, named, readable
from entourage.stores.replacing import check_file
from entourage.stores.tables import ID, LABEL, Column
from entourage.values import Embeddings, FloatArray, without_direction

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_writable_like", "encoder_of_vectors", "read_vectors", "warn_if_one_is_refined", "write_like"]

_VECTOR_NAMES = ("vectors", "vector", "embeddings", "embedding")
_CAMERA, _SEQUENCE = Column("cameras", ("cameras", "camera")), Column("sequences", ("sequences", "sequence"))


def read_vectors(
    path: StrPath,
    *,
    labels: StrPath | Literal[False] | None = None,
    exclusions: bool = False,
    id_column: str | None = None,
    label_column: str | None = None,
) -> Embeddings:
    """Read the vectors of a file, scaled to length 1, with its ids if it has any.

    Parameters
    ----------
    path : str or path-like
        A .npy, .npz or .parquet file of N vectors.
    labels : str, path-like, None or False
        A file of labels or the name of a column, as `read_labels` takes them. None: those of the file itself, if it
        has any. False: none, whatever the file has.
    exclusions : bool, default False
        Whether to read its cameras and sequences too, if it has any: by them `evaluate` leaves items out of a ranking.
        Off by default, as columns of these names may mean something else.
    id_column : str, optional
        The column of the ids, in this file or in that of the labels, if it has no usual name.
    label_column : str, optional
        The column of the labels in their file or, without one, in this file.

    Returns
    -------
    Embeddings
        N items.
    """
    path = existing(path, FORMATS, "vectors")
    check_named(path, labels, id_column, label_column)
    wanted: dict[str, tuple[Column, str | None]] = {"ids": (ID, id_column)}
    if labels is None:
        wanted["labels"] = LABEL, label_column
    if exclusions:
        wanted |= {"cameras": (_CAMERA, None), "sequences": (_SEQUENCE, None)}
    with named(path):
        items = Embeddings.from_vectors(**_columns(path, wanted))
    if not labels:
        return items
    given = read_labels(labels, path, items, label_column=label_column, id_column=id_column)
    with named(labels):
        return replace(items, labels=given)


def encoder_of_vectors(path: StrPath) -> str | None:
    """Read the fingerprint of the encoder that made the vectors of a file.

    Parameters
    ----------
    path : str or path-like
        A .npy, .npz or .parquet file.

    Returns
    -------
    str or None
        None where the file does not hold it.
    """
    return _note(existing(path, FORMATS, "vectors"), ENCODER)


def warn_if_one_is_refined(queries: StrPath, gallery: StrPath) -> None:
    """Warn if one of two files was written by a refinement and the other was not; a .npy file cannot tell.

    Parameters
    ----------
    queries, gallery : str or path-like
        .npy, .npz or .parquet files of vectors that are going to be compared.
    """
    paths = [existing(path, FORMATS, "vectors") for path in (queries, gallery)]
    if any(path.suffix.lower() == ".npy" for path in paths):
        return
    refined = [path for path in paths if _note(path, REFINED) is not None]
    if len(refined) == 1:
        (other,) = (path for path in paths if path not in refined)
        warn_caller(
            f"{refined[0]} holds refined vectors and {other} does not: they say little about each other; refine both "
            "in one command, by --context and --context-out"
        )


def _note(path: Path, name: str) -> str | None:
    """What a file says of its vectors beside them; None where it does not."""
    with readable(path):
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return str(arrays[name][0]) if name in arrays.files else None
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            note: bytes | None = (pq.read_schema(path).metadata or {}).get(name.encode())
            return None if note is None else note.decode()
    return None


def check_writable_like(source: StrPath, target: StrPath, *, overwrite: bool) -> None:
    """Raise FileError early for what `write_like` could not write.

    Parameters
    ----------
    source : str or path-like
        The vectors file whose format is to be kept.
    target : str or path-like
        The output, with the ending of the source.
    overwrite : bool
        Whether an output that exists may be replaced.
    """
    source, target = existing(source, FORMATS, "vectors"), Path(target)
    if not target.name:
        raise FileError(f"the output is {target}, a folder; wanted the name of a file: choose another name")
    if target.suffix.lower() != source.suffix.lower():
        raise FileError(
            f"the output {target.name} is not a {source.suffix} file, but vectors are written in the input's format: "
            f"call it {target.with_suffix(source.suffix)}"
        )
    check_file(target, overwrite=overwrite)
    if source.suffix.lower() == ".npz":
        with readable(source), source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                arrays[name]  # raises where an array holds Python objects, which could not be written again


def write_like(source: StrPath, target: StrPath, vectors: FloatArray, outputs: Outputs | None = None) -> None:
    """Write refined vectors in the format of another file, with its number type and all else that it holds.

    Parameters
    ----------
    source : str or path-like
        The .npy, .npz or .parquet file that the unrefined vectors were read from.
    target : str or path-like
        The output; it appears whole or not at all.
    vectors : array of shape (N, d)
        They take the place of the N vectors of the source.
    outputs : Outputs, optional
        What it changes together with; by default it is replaced alone.
    """
    unusable = without_direction(vectors)
    if unusable:
        raise ModelError(f"{unusable}, so that {target} is not written; refine with another model, or fit it again")
    if outputs is None:
        with Outputs(overwrite=True) as alone:
            return write_like(source, target, vectors, alone)
    source = Path(source)
    # An open file: numpy would add .npy or .npz to the name of any that does not end so, such as OUT.NPY.
    with outputs.file(target).open("wb") as opened:
        if source.suffix.lower() == ".npy":
            np.save(opened, vectors.astype(_float_type(np.load(source, mmap_mode="r").dtype)))
        elif source.suffix.lower() == ".npz":
            with readable(source), source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                name = _npz_vectors(source, arrays)
                held = {key: arrays[key] for key in arrays.files if key != ENCODER}
            refined = {name: vectors.astype(_float_type(held[name].dtype)), REFINED: np.array(["yes"])}
            _save_npz(opened, held | refined)
        else:
            _write_parquet_like(source, opened, vectors)


def _columns(path: Path, wanted: dict[str, tuple[Column, str | None]]) -> dict[str, NDArray[Any]]:
    """The arrays of a vectors file under the names vectors, ids, ..., as far as they are wanted and there."""
    with readable(path):
        if path.suffix.lower() == ".npy":
            return {"vectors": np.load(path, mmap_mode="r", allow_pickle=False)}
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                columns = {"vectors": arrays[_npz_vectors(path, arrays)]}
                return columns | known_columns(path, columns["vectors"], arrays.files, wanted, arrays.__getitem__)
        return _parquet_columns(path, wanted)


def _npz_vectors(path: Path, arrays: NpzFile) -> str:
    known = [name for name in _VECTOR_NAMES if name in arrays.files]
    tables = known or [name for name in arrays.files if arrays[name].ndim == 2]
    if len(tables) != 1:
        raise FileError(
            f"{path} holds the arrays {few(arrays.files, 'arrays')}; wanted exactly one array of vectors, called "
            "`vectors`: rename it so"
        )
    return tables[0]


def _save_npz(target: IO[bytes], arrays: dict[str, NDArray[Any]]) -> None:
    """As np.savez, for arrays of any name: its own arguments are called file and allow_pickle."""
    with zipfile.ZipFile(target, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _parquet_columns(path: Path, wanted: dict[str, tuple[Column, str | None]]) -> dict[str, NDArray[Any]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {"vectors": _list_column(table, _parquet_vectors(path, table.schema))}
    return columns | known_columns(
        path, columns["vectors"], table.column_names, wanted, lambda key: plain_column(table, key)
    )


def _parquet_vectors(path: Path, schema: "pa.Schema") -> str:
    lists = [field.name for field in schema if holds_vectors(field.type)]
    chosen = [name for name in _VECTOR_NAMES if name in lists] or lists
    if len(chosen) != 1:
        raise FileError(
            f"{path} has the columns {few(schema.names, 'columns')}, {len(lists)} of them lists of numbers; "
            f"wanted one such list, called `vector`: {_parquet_fix(schema, lists)}"
        )
    return str(chosen[0])


def _parquet_fix(schema: "pa.Schema", lists: list[str]) -> str:
    numbers = [field.name for field in schema if is_number(field.type)]
    if lists:
        return "rename it so"
    return f"put {few(numbers, 'columns')} into one" if len(numbers) > 1 else "write each vector as such a list"


def _list_column(table: "pa.Table", name: str) -> NDArray[Any]:
    column = table.column(name).combine_chunks()
    if not len(column):
        raise InputError(f"column `{name}` has 0 rows; at least one item is needed")
    return vectors_of(name, column)


def _write_parquet_like(source: Path, target: IO[bytes], vectors: FloatArray) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(source)
    position = table.schema.get_field_index(_parquet_vectors(source, table.schema))
    field = refined_field(table.schema.field(position), vectors.shape[1])
    table = table.set_column(position, field, lists_of(field, vectors))
    pq.write_table(table.replace_schema_metadata(refined_metadata(table.schema)), target)


def _float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "f" else np.dtype(np.float32)
