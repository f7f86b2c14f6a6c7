"""LanceDB tables: a folder on disk, read by batches of columns.

The twin is written as one version of a table, which is there whole or not at all. A second column of the table itself
would have to be merged into every row: rows move, and indexes of the original vectors no longer cover them.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.errors import InputError, StoreError, few
from entourage.stores.databases.store import BATCH, Address, Refined, Store, chosen_column, engine_faults, twin_name
from entourage.values import FloatArray, LabelArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LanceStore"]

_ROW = "_rowid"


class LanceStore(Store):
    """A table of a LanceDB folder.

    Parameters
    ----------
    address : Address
        The folder and the table.
    column : str, optional
        The column of vectors, if it has several.
    """

    def __init__(self, address: Address, column: str | None = None) -> None:
        import lancedb

        self.url, self._name, self._folder = address.url, address.name, address.path
        self.refined_url = f"lance://{address.place}/{twin_name(address.name)}"
        if not self._folder.is_dir():
            raise StoreError(f"{self.url}: there is no folder '{address.place}'; wanted a folder of LanceDB tables")
        with engine_faults(self.url):
            self._database = lancedb.connect(str(self._folder))
            names = _names(self._database)
            if address.name not in names:
                raise StoreError(
                    f"{self.url}: there is no table '{address.name}'; wanted one of {few(names, 'tables')}"
                )
            self._table = self._database.open_table(address.name)
            self._table.checkout(self._table.version)  # what is written meanwhile is not read
            schema = self._table.schema
        vectors = [field.name for field in schema if _holds_vectors(field.type)]
        self.column = chosen_column(self.url, column, vectors, [name for name in schema.names if name not in vectors])
        self.dim = int(schema.field(self.column).type.list_size)

    def __len__(self) -> int:
        return int(self._table.count_rows())

    @property
    def version(self) -> str:
        return str(self._table.version)

    @property
    def beside(self) -> Path:
        return self._folder / f"{self._name}.refining"

    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        for batch in self._scan([self.column], size):
            yield batch.column(_ROW).to_numpy().astype(np.int64), self._vectors(batch)

    def has_refined(self) -> bool:
        with engine_faults(self.url):
            return twin_name(self._name) in _names(self._database)

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        import pyarrow as pa

        fields = [
            pa.field(field.name, pa.list_(pa.from_numpy_dtype(refined.vectors.dtype), self.dim))
            if field.name == self.column
            else field
            for field in self._table.schema
        ]
        schema = pa.schema(fields)  # without its metadata, which may tell how to embed what is searched for
        rows = _Kept(self._replaced(refined, schema, done))
        with engine_faults(self.refined_url):
            try:
                self._write_table(pa.RecordBatchReader.from_batches(schema, rows))
                return int(self._database.open_table(twin_name(self._name)).count_rows())
            except Exception:
                if rows.raised is not None:
                    raise rows.raised from None
                raise

    def close(self) -> None:
        pass  # tables of a folder are files, opened as they are read

    def _write_table(self, rows: "pa.RecordBatchReader") -> None:
        """Write the twin: as a new version of it, or in a folder of its own until all of it is there."""
        import lancedb

        name = twin_name(self._name)
        aside = self._folder / f".{name}.entourage"
        shutil.rmtree(aside, ignore_errors=True)  # of one that was killed
        if self.has_refined():
            self._database.create_table(name, rows, mode="overwrite")
            return
        try:
            lancedb.connect(str(aside)).create_table(name, rows)
            (aside / f"{name}.lance").rename(self._folder / f"{name}.lance")
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _scan(self, columns: list[str], size: int) -> Iterator["pa.RecordBatch"]:
        with engine_faults(self.url):
            query = self._table.search().select(columns).with_row_id(True)
            yield from query.to_batches(size)

    def _vectors(self, batch: "pa.RecordBatch") -> FloatArray:
        column = batch.column(self.column)
        if column.null_count:
            raise InputError(
                f"{self.url}: {column.null_count} rows have no vector in '{self.column}'; every item needs one: "
                "delete or encode them"
            )
        values: FloatArray = column.flatten().to_numpy(zero_copy_only=False)
        return values.reshape(len(column), self.dim)

    def _replaced(
        self, refined: Refined, schema: "pa.Schema", done: Callable[[int], None] | None
    ) -> Iterator["pa.RecordBatch"]:
        """The rows of the table with refined vectors in place of the original ones."""
        import pyarrow as pa

        written = 0
        for batch in self._scan(schema.names, BATCH):
            rows = slice(written, written + len(batch))
            if not np.array_equal(batch.column(_ROW).to_numpy(), refined.keys[rows]):
                raise StoreError(
                    f"{self.url} has changed since it was read and is at version {self.version}: start again"
                )
            flat = pa.array(np.ascontiguousarray(refined.vectors[rows]).ravel())
            vectors = pa.FixedSizeListArray.from_arrays(flat, self.dim)
            columns = [vectors if name == self.column else batch.column(name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            written = rows.stop
            if done:
                done(written)


class _Kept:
    """Batches, and what was raised while they were made: on its way through the engine it becomes another error."""

    def __init__(self, batches: Iterator["pa.RecordBatch"]) -> None:
        self._batches = batches
        self.raised: BaseException | None = None

    def __iter__(self) -> Iterator["pa.RecordBatch"]:
        try:
            yield from self._batches
        except BaseException as error:
            self.raised = error
            raise


def _names(database: Any) -> list[str]:
    """The tables of a folder, however many pages they fill."""
    answer = database.list_tables()
    names = list(answer.tables)
    while answer.page_token:
        answer = database.list_tables(page_token=answer.page_token)
        names += answer.tables
    return names


def _holds_vectors(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))
