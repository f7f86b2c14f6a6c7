"""Vectors written block by block, so that only one block of them is ever in memory; to a file, or a folder of them."""

import csv
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from entourage import __version__
from entourage.errors import FileError
from entourage.stores.atomic import Outputs, new_folder, write_json
from entourage.stores.columns import ENCODER
from entourage.stores.filenames import PARQUET
from entourage.stores.paths import StrPath
from entourage.stores.replacing import check_file, check_folder, check_kept
from entourage.values import LabelArray

__all__ = ["check_streamable", "is_folder", "labels_beside", "write_blocks", "write_parquet_folder"]

FORMATS = (".npz", ".parquet", ".npy")


def check_streamable(target: StrPath, *, overwrite: bool, inputs: Sequence[StrPath | None] = ()) -> Path:
    """Raise FileError unless `write_blocks` can write this file, or `write_parquet_folder` this folder.

    Parameters
    ----------
    target : str or path-like
        A name that ends in .npz, .parquet or .npy; one without an ending is a folder.
    overwrite : bool
        Whether files that exist may be replaced.
    inputs : sequence of paths
        What is read, which neither this file nor the one beside it may replace.

    Returns
    -------
    Path
        The same path.
    """
    target = Path(target)
    if is_folder(target):
        check_kept((target,), inputs)
        return check_folder(target, overwrite=overwrite)
    if target.suffix.lower() not in FORMATS:
        raise FileError(
            f"the output {target} ends in {target.suffix}; vectors are written to {', '.join(FORMATS)}, or to a folder "
            "of .parquet files, whose name has no ending: choose one of them"
        )
    beside = labels_beside(target) if target.suffix.lower() == ".npy" else None
    check_kept((target, beside), inputs)
    if beside is not None:
        check_file(beside, overwrite=overwrite, ours=_is_of_labels)
    return check_file(target, overwrite=overwrite)


def is_folder(target: StrPath) -> bool:
    """Whether an output is a folder of .parquet files: its name has no ending.

    >>> is_folder("shop/vectors"), is_folder("vectors.npz")
    (True, False)
    """
    return not Path(target).suffix


def labels_beside(target: StrPath) -> Path:
    """The .csv of the same name, which holds the ids and labels of a .npy, as that has no place for them."""
    return Path(target).with_suffix(".csv")


def write_blocks(
    target: StrPath,
    blocks: Iterable[NDArray[np.float32]],
    dim: int,
    ids: LabelArray,
    labels: LabelArray | None = None,
    *,
    cameras: LabelArray | None = None,
    sequences: LabelArray | None = None,
    split: LabelArray | None = None,
    encoder: str | None = None,
    overwrite: bool = True,
) -> None:
    """Write vectors block by block to a file that appears whole or not at all, together with the one beside it.

    Parameters
    ----------
    target : str or path-like
        A .npz or .parquet, which hold everything, or a .npy, which can be memory-mapped; beside a .npy a .csv of the
        same name holds the other columns.
    blocks : iterable of arrays of shape (n_i, d)
        N vectors in all, in the order of the ids.
    dim : int
        The number of dimensions, d.
    ids : array of shape (N,)
    labels, cameras, sequences, split : array of shape (N,), optional
    encoder : str, optional
        The fingerprint of the encoder that made the vectors, for `encoder_of_vectors`.
    overwrite : bool
        Whether files that exist are replaced.
    """
    target = Path(target)
    known = {"ids": ids, "labels": labels, "cameras": cameras, "sequences": sequences, "split": split}
    columns = {name: values for name, values in known.items() if values is not None}
    suffix = target.suffix.lower()
    with Outputs(overwrite=overwrite) as outputs:
        new = outputs.file(target)
        if suffix == ".parquet":
            _write_parquet(new, blocks, dim, columns, encoder)
        elif suffix == ".npz":
            _write_npz(new, blocks, dim, columns, encoder)
        else:
            beside = outputs.file(labels_beside(target), ours=_is_of_labels)
            with new.open("wb") as file:
                _write_array(file, blocks, (len(ids), dim))
            _write_csv(beside, columns)


def write_parquet_folder(
    target: StrPath,
    shards: Iterable[tuple[NDArray[np.float32], Mapping[str, LabelArray]]],
    *,
    encoder: str | None = None,
    overwrite: bool = True,
) -> None:
    """Write vectors as a folder of .parquet files, which appears whole or not at all.

    Parameters
    ----------
    target : str or path-like
        The folder.
    shards : iterable of (array of shape (n_i, d), dict)
        Each becomes a file: vectors, and columns (n_i,) such as ids and labels, by their names in the plural.
    encoder : str, optional
        As in `write_blocks`.
    overwrite : bool
        Whether a folder of ours that is there is replaced.
    """
    with new_folder(target, overwrite=overwrite) as new:
        write_json(new / PARQUET, {"entourage": __version__, "encoder": encoder})
        for number, (vectors, columns) in enumerate(shards):
            _write_parquet(new / f"{number:05}.parquet", [vectors], vectors.shape[1], dict(columns), encoder)


def _write_npz(
    path: Path, blocks: Iterable[NDArray[np.float32]], dim: int, columns: dict[str, LabelArray], encoder: str | None
) -> None:
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        with archive.open("vectors.npy", "w", force_zip64=True) as file:
            _write_array(file, blocks, (len(columns["ids"]), dim))
        made_by = {} if encoder is None else {ENCODER: np.array([encoder])}
        for name, column in (columns | made_by).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(column), allow_pickle=False)


def _write_array(file: IO[bytes], blocks: Iterable[NDArray[np.float32]], shape: tuple[int, int]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for block in blocks:
        file.write(np.ascontiguousarray(block, "<f4").tobytes())


def _singular(name: str) -> str:
    """What a column of a table is called: a cell holds one of them."""
    return name.removesuffix("s")


def _write_parquet(
    path: Path, blocks: Iterable[NDArray[np.float32]], dim: int, columns: dict[str, LabelArray], encoder: str | None
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    others = [(_singular(name), pa.array(column[:1]).type) for name, column in columns.items()]
    schema = pa.schema([("vector", pa.list_(pa.float32())), *others], None if encoder is None else {ENCODER: encoder})
    start = 0
    with pq.ParquetWriter(path, schema) as writer:
        for block in blocks:
            rows = slice(start, start + len(block))
            offsets = np.arange(len(block) + 1, dtype=np.int32) * dim
            vectors = pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(block, np.float32).ravel()))
            cells = [pa.array(column[rows]) for column in columns.values()]
            writer.write_table(pa.table([vectors, *cells], schema=schema))
            start = rows.stop


def _is_of_labels(path: Path) -> bool:
    """Whether a .csv has the columns that are written beside a .npy, and no other: else it is a table of the user's."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return set(file.readline().strip().split(",")) <= {"id", "label", "camera", "sequence", "split"}


def _write_csv(path: Path, columns: dict[str, LabelArray]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(map(_singular, columns))
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
