"""Tables of Postgres with vectors of the extension pgvector, by psycopg.

The twin is filled, indexed and put in its place in one transaction: readers see the one before, or the new one whole.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError, StoreError, few
from entourage.runtime.threads import blocks
from entourage.stores.databases.store import (
    BATCH,
    Address,
    Refined,
    Store,
    chosen_column,
    engine_faults,
    kept_keys,
    twin_name,
)
from entourage.values import FloatArray, LabelArray

if TYPE_CHECKING:
    from psycopg.sql import Composable, Composed, Identifier

__all__ = ["PgvectorStore"]

_MARK = "entourage: refined vectors of "
_NUMBERS: dict[str, np.dtype[Any]] = {"vector": np.dtype(">f4"), "halfvec": np.dtype(">f2")}
_HEADER = 4  # bytes before the numbers of a vector: how many there are, and nothing
_SECONDS = 5  # in which a server has to answer


class PgvectorStore(Store):
    """A table of Postgres.

    Parameters
    ----------
    address : Address
        [USER@]HOST[:PORT]/DATABASE, where HOST may be the folder of a socket, and the table, or SCHEMA.TABLE. Whatever
        it leaves out, such as a password, is taken from the variables that every client of Postgres reads (PGPASSWORD).
    column : str, optional
        The column of vectors, if it has several.
    """

    def __init__(self, address: Address, column: str | None = None) -> None:
        self.url, self._name, self._place = address.url, address.name, address.place
        self.refined_url = address.url.removesuffix(address.name) + twin_name(address.name)
        self._connection = _connected(address)
        try:
            with engine_faults(self.url):
                self._kinds = self._columns()
                vectors = [name for name, (kind, _) in self._kinds.items() if kind in _NUMBERS]
                others = [name for name in self._kinds if name not in vectors]
                self.column = chosen_column(self.url, column, vectors, others)
                self._key = self._primary_key()
                self.dim = self._kinds[self.column][1] or self._first_dim()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        with engine_faults(self.url):
            return int(self._asked("select count(*) from {table}")[0][0])

    @property
    def version(self) -> str:
        """How many items there are, and which transactions wrote them."""
        with engine_faults(self.url):
            told = self._asked("select count(*), coalesce(sum(hashtext(xmin::text)), 0) from {table}")
        return f"{told[0][0]} items, {told[0][1]}"

    @property
    def beside(self) -> Path:
        place = re.sub(r"[^\w.-]+", "-", self._place).strip("-")
        return Path(f"{place}-{self._name}.refining")

    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        query = self._sql("select {key}::text, {column} from {table} order by {key}")
        with (
            engine_faults(self.url),
            self._connection.transaction(),  # in which a cursor sees the table as it was when it was opened
            self._connection.cursor("entourage") as cursor,
        ):
            cursor.execute(query, binary=True)
            while rows := cursor.fetchmany(size):
                yield self._keys([key for key, _ in rows]), self._vectors(rows)

    def has_refined(self) -> bool:
        with engine_faults(self.url):
            return self._asked("select to_regclass(%s)", _quoted(twin_name(self._name)))[0][0] is not None

    def check_twin(self) -> None:
        with engine_faults(self.url):
            told = self._asked("select obj_description(to_regclass(%s), 'pg_class')", _quoted(twin_name(self._name)))
        if self.has_refined() and not str(told[0][0]).startswith(_MARK):
            raise StoreError(
                f"{self.refined_url} is a table that Entourage did not write, and is never replaced; rename it"
            )

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        filling = f"{twin_name(self._name)}_{refined.tag}"
        with engine_faults(self.refined_url), self._connection.transaction():
            self._copy_in(refined, done)
            held = self._fill(filling)
            self._index(filling)
            self.check_twin()
            self._run("drop table if exists {twin}")
            self._run("alter table {filling} rename to {new}", filling=filling)
            self._run("drop table entourage_refined")
        return held

    def close(self) -> None:
        self._connection.close()

    # ---- what is there -------------------------------------------------------------------------------------------

    def _columns(self) -> dict[str, tuple[str, int | None]]:
        """The columns that can be written: what kind of value each holds and, of vectors of one size, that size."""
        table = self._asked("select to_regclass(%s)::oid", _quoted(self._name))[0][0]
        if table is None:
            found = self._asked("select relname from pg_stat_user_tables order by 1")
            raise StoreError(
                f"{self.url}: there is no table '{self._name}'; wanted one of "
                f"{few([name for (name,) in found], 'tables')}"
            )
        rows = self._asked(
            "select attname, typname, atttypmod from pg_attribute join pg_type on pg_type.oid = atttypid "
            "where attrelid = %s and attnum > 0 and not attisdropped and attgenerated = '' order by attnum",
            table,
        )
        return {name: (kind, size if kind in _NUMBERS and size > 0 else None) for name, kind, size in rows}

    def _primary_key(self) -> str:
        rows = self._asked(
            "select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey) "
            "where indrelid = to_regclass(%s) and indisprimary",
            _quoted(self._name),
        )
        if len(rows) != 1:
            raise StoreError(
                f"{self.url} has {few([name for (name,) in rows], 'columns')} as its primary key; wanted one column "
                "that names an item: add it"
            )
        return str(rows[0][0])

    def _first_dim(self) -> int:
        """Of a column that takes vectors of any size: that of the first."""
        rows = self._asked("select vector_dims({column}) from {table} where {column} is not null limit 1")
        return int(rows[0][0]) if rows else 0

    def _keys(self, found: list[str]) -> LabelArray:
        whole = self._kinds[self._key][0] in ("int2", "int4", "int8")
        return np.array(found, np.int64) if whole else kept_keys(self.url, found)

    def _vectors(self, rows: list[tuple[str, bytes | None]]) -> FloatArray:
        numbers = _NUMBERS[self._kinds[self.column][0]]
        length = _HEADER + self.dim * numbers.itemsize
        for key, value in rows:
            if value is None:
                raise InputError(
                    f"{self.url}: item {key} has no vector in '{self.column}'; every item needs one: delete or encode "
                    "it"
                )
            if len(value) != length:
                dim = (len(value) - _HEADER) // numbers.itemsize
                raise InputError(
                    f"{self.url}: item {key} has {dim} values in '{self.column}', and the first has {self.dim}; wanted "
                    "vectors of one encoder"
                )
        flat = np.frombuffer(b"".join(value[_HEADER:] for _, value in rows if value), numbers)
        vectors: FloatArray = flat.reshape(len(rows), self.dim).astype(numbers.newbyteorder("="))
        return vectors

    # ---- what is written -----------------------------------------------------------------------------------------

    def _copy_in(self, refined: Refined, done: Callable[[int], None] | None) -> None:
        """Refined vectors by key, in a table of this connection alone."""
        self._run("create temporary table entourage_refined as select {key} as key, {column} as refined from {table}"
                  " with no data")  # fmt: skip
        query = self._sql("copy entourage_refined (key, refined) from stdin")
        with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            for rows in blocks(len(refined), BATCH):
                for key, vector in zip(refined.keys[rows].tolist(), _texts(refined.vectors[rows]), strict=True):
                    copy.write_row((str(key), vector))
                if done:
                    done(rows.stop)

    def _fill(self, filling: str) -> int:
        """A table of the same columns and checks, and the rows that are still there; how many they are."""
        self._run(
            "create table {filling} (like {table} including comments including compression including constraints "
            "including generated including storage)",
            filling=filling,
        )
        from psycopg import sql

        names = [name for name in self._kinds if name != self.column]
        others = sql.SQL("").join(sql.SQL(", ") + sql.Identifier("t", name) for name in names)
        into = sql.SQL("").join(sql.SQL(", ") + sql.Identifier(name) for name in names)
        held = self._run(
            "insert into {filling} ({column}{into}) select refined{others} from {table} t "
            "join entourage_refined on key = {of_key}",
            filling=filling, others=others, into=into, of_key=sql.Identifier("t", self._key),
        )  # fmt: skip
        self._run("comment on table {filling} is {mark}", filling=filling, mark=sql.Literal(_MARK + self.url))
        return held

    def _index(self, filling: str) -> None:
        """The keys and indexes of the table, now that there is something to be indexed."""
        from psycopg import sql

        of_table = "= to_regclass(%s) and "
        name = _quoted(self._name)
        for (constraint,) in self._asked(
            f"select pg_get_constraintdef(oid) from pg_constraint where conrelid {of_table}contype in ('p', 'u')", name
        ):
            self._run("alter table {filling} add {what}", filling=filling, what=sql.SQL(constraint))
        for unique, made_by in self._asked(
            f"select indisunique, pg_get_indexdef(indexrelid) from pg_index where indrelid {of_table}"
            "not exists (select from pg_constraint where conindid = indexrelid)",
            name,
        ):
            kind, how = sql.SQL("unique " * unique), sql.SQL(made_by.partition(" USING ")[2])
            self._run("create {kind}index on {filling} using {how}", filling=filling, kind=kind, how=how)

    # ---- how it is asked -----------------------------------------------------------------------------------------

    def _asked(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(self._sql(query), values or None).fetchall()
        return rows

    def _run(self, query: str, filling: str = "", **parts: "Composable") -> int:
        """How many rows it has written, if it writes any."""
        return int(self._connection.execute(self._sql(query, filling, **parts)).rowcount)

    def _sql(self, query: str, filling: str = "", **parts: "Composable") -> "Composed":
        from psycopg import sql

        known = {
            "table": _identifier(self._name),
            "twin": _identifier(twin_name(self._name)),
            "new": sql.Identifier(twin_name(self._name).rpartition(".")[2]),
            "filling": _identifier(filling or self._name),
            "key": sql.Identifier(getattr(self, "_key", "")) if getattr(self, "_key", "") else sql.SQL(""),
            "column": sql.Identifier(self.column) if getattr(self, "column", "") else sql.SQL(""),
        }
        return sql.SQL(query).format(**known, **parts)


def _connected(address: Address) -> Any:
    import psycopg

    who, _, place = address.place.rpartition("@")
    place, _, database = place.rpartition("/")
    host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
    given: dict[str, Any] = {"user": who, "host": host, "port": port, "dbname": database}
    try:
        return psycopg.connect(
            autocommit=True, connect_timeout=_SECONDS, **{name: value for name, value in given.items() if value}
        )
    except psycopg.Error as error:
        text = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), "no answer")
        raise StoreError(
            f"{address.url}: no database '{database}' of Postgres answers at {host or 'the usual place'} ({text}); "
            "start it, or correct the address"
        ) from error


def _identifier(name: str) -> "Identifier":
    """A table, or SCHEMA.TABLE."""
    from psycopg import sql

    return sql.Identifier(*name.split("."))


def _quoted(name: str) -> str:
    """The same as a text that Postgres reads a name from.

    >>> _quoted("Shop.items")
    '"Shop"."items"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def _texts(vectors: NDArray[Any]) -> Iterator[str]:
    """Vectors (n, d) as Postgres reads them."""
    for vector in np.asarray(vectors, np.float32):
        yield "[" + ",".join(map(str, vector.tolist())) + "]"
