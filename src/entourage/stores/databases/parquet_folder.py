"""Folders of Parquet files, read and written file by file: the twin is a folder of files of the same names."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entourage import __version__
from entourage.errors import InputError, StoreError, few
from entourage.stores.atomic import new_folder, write_json
from entourage.stores.databases.store import BATCH, Address, Refined, Store, chosen_column, engine_faults, twin_name
from entourage.stores.filenames import PARQUET
from entourage.stores.parquet import holds_vectors, lists_of, refined_field, refined_metadata, vectors_of
from entourage.stores.paths import resolved
from entourage.stores.reading import named
from entourage.stores.replacing import check_folder, check_kept
from entourage.values import FloatArray, LabelArray

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["ParquetStore"]

_WRITTEN = 2**13  # rows of a group in the twin


class ParquetStore(Store):
    """The .parquet files of a folder, in the order of their names. Items are known by their place among all.

    Parameters
    ----------
    address : Address
        The folder.
    column : str, optional
        The column of vectors, if it has several.
    twin : Path, optional
        The folder for refined vectors; by default one beside it.
    """

    def __init__(self, address: Address, column: str | None = None, twin: Path | None = None) -> None:
        self.url, self._folder = address.url, address.path
        self._twin = twin or self._folder.with_name(twin_name(self._folder.resolve().name))
        self.refined_url = f"parquet:{self._twin}" if twin is None else str(twin)
        if not self._folder.is_dir():
            raise StoreError(f"{self.url}: there is no folder '{self._folder}'; wanted a folder of .parquet files")
        check_kept((self._twin,), (self._folder,))
        if resolved(self._folder) in resolved(self._twin).parents:
            raise InputError(f"{self._twin} lies in the input {self._folder}; give what is written a place of its own")
        self._files = _files(self.url, self._folder)
        with engine_faults(self.url):
            self._counts = [self._open(file).metadata.num_rows for file in self._files]
            schema = self._open(self._files[0]).schema_arrow
        vectors = [field.name for field in schema if holds_vectors(field.type)]
        self.column = chosen_column(self.url, column, vectors, [name for name in schema.names if name not in vectors])
        self.dim = self._first_dim()

    def __len__(self) -> int:
        return sum(self._counts)

    @property
    def version(self) -> str:
        seen = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in self._files]
        return f"{len(self._files)} files, {hashlib.sha256(repr(seen).encode()).hexdigest()[:16]}"

    @property
    def beside(self) -> Path:
        return self._twin.with_name(f"{self._twin.name}.refining")

    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        start = 0
        for file in self._files:
            for batch in self._read(file, [self.column], size):
                with named(file):
                    vectors = self._vectors(batch)
                yield np.arange(start, start + len(vectors)), vectors
                start += len(vectors)

    def has_refined(self) -> bool:
        return self._twin.exists()

    def check_twin(self) -> None:
        check_folder(self._twin, overwrite=True)

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        if len(refined) != len(self):
            raise StoreError(f"{self.url} has {len(self)} rows and had {len(refined)} when it was read; start again")
        with new_folder(self._twin, overwrite=True) as folder, engine_faults(self.refined_url):
            self.mark(folder)
            written = 0
            for file in self._files:
                for count in self._write_file(file, folder / file.name, refined, written):
                    written += count
                    if done:
                        done(written)
        return written

    def shards(self) -> list["ParquetStore"]:
        """Each file as a store of its own, to be read and written by whoever has it, here or elsewhere."""
        shards = []
        for file, count in zip(self._files, self._counts, strict=True):
            shard = copy.copy(self)
            shard._files, shard._counts = [file], [count]
            shards.append(shard)
        return shards

    def write_shard(self, target: Path, vectors: FloatArray) -> None:
        """Write the one file of a shard under another name, with refined vectors (n, d)."""
        (file,) = self._files
        with engine_faults(self.refined_url):
            for _ in self._write_file(file, target, Refined(np.arange(len(vectors)), vectors, ""), 0):
                pass

    @property
    def file_name(self) -> str:
        """The name of the first file."""
        return self._files[0].name

    def named(self) -> AbstractContextManager[None]:
        """Name the first file in whatever is refused in the block."""
        return named(self._files[0])

    def mark(self, folder: Path) -> None:
        """Mark a folder as one of refined files."""
        write_json(folder / PARQUET, {"entourage": __version__, "refined": self.url, "column": self.column})

    def close(self) -> None:
        pass  # files are opened as they are read

    def _write_file(self, file: Path, target: Path, refined: Refined, start: int) -> Iterator[int]:
        """Write one file, all columns but the vectors as they are; yields how many rows each part has."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = self._open(file).schema_arrow
        place = schema.get_field_index(self.column)
        field = refined_field(schema.field(place), self.dim)
        schema = schema.set(place, field).with_metadata(refined_metadata(schema))
        with pq.ParquetWriter(target, schema) as writer:
            for batch in self._read(file, None, _WRITTEN):
                rows = slice(start, start + len(batch))
                columns = [*batch.columns]
                columns[place] = lists_of(field, refined.vectors[rows])
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                start = rows.stop
                yield len(batch)

    def _read(self, file: Path, columns: list[str] | None, size: int) -> Iterator["pa.RecordBatch"]:
        with engine_faults(self.url):
            opened = self._open(file)
            names = opened.schema_arrow.names
            if self.column not in names:
                raise StoreError(
                    f"{file} has no '{self.column}', only {few(names, 'columns')}; wanted it in every file"
                )
            yield from opened.iter_batches(size, columns=columns)

    def _open(self, file: Path) -> "pq.ParquetFile":
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(file)
        except (OSError, ValueError) as error:
            raise StoreError(f"{file} cannot be read as Parquet ({error}); mend or move it") from error

    def _vectors(self, batch: "pa.RecordBatch") -> FloatArray:
        vectors = vectors_of(self.column, batch.column(0))
        if vectors.shape[1] != self.dim:
            raise InputError(
                f"column `{self.column}` has {vectors.shape[1]} values a row, and {self.dim} in the first file; wanted "
                "vectors of one encoder"
            )
        return vectors

    def _first_dim(self) -> int:
        for file in self._files:
            for batch in self._read(file, [self.column], 1):
                with named(file):
                    return int(vectors_of(self.column, batch.column(0)).shape[1])
        return 0


def _files(url: str, folder: Path) -> list[Path]:
    inside = [file for file in sorted(folder.rglob("*.parquet")) if not file.name.startswith((".", "_"))]
    deeper = next((file for file in inside if file.parent != folder), None)
    if deeper is not None:
        raise StoreError(f"{url} holds {deeper.relative_to(folder)}; wanted all files in the folder itself: move it")
    if not inside:
        raise StoreError(f"{url} holds no .parquet file; wanted a folder of them")
    return inside
