"""Milvus collections: a Milvus Lite file or a server, by the same client.

The twin is filled under a name of its own; an alias then makes it NAME_refined in one step.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.errors import StoreError, few
from entourage.runtime.threads import blocks
from entourage.stores.databases.store import (
    BATCH,
    Address,
    Refined,
    Store,
    check_held,
    chosen_column,
    engine_faults,
    from_environment,
    is_filling,
    kept_keys,
    twin_name,
)
from entourage.values import FloatArray, LabelArray

if TYPE_CHECKING:
    from pymilvus import MilvusClient

__all__ = ["MilvusStore"]

_PORT = 19530
_SECONDS = 10.0  # to wait for a server
_NAMES = 9  # that are tried for a collection
_ESCAPED = {'"', "\\", *map(chr, range(32))}  # in texts of an expression
_STRONG = {"consistency_level": "Strong"}  # what was written just now is read


class MilvusStore(Store):
    """A collection of Milvus.

    Parameters
    ----------
    address : Address
        The file or server, and the collection. A server may want a token, in MILVUS_TOKEN.
    column : str, optional
        The field of vectors, if it has several.
    """

    def __init__(self, address: Address, column: str | None = None) -> None:
        self.url, self._name, self._address = address.url, address.name, address
        self.refined_url = address.url.removesuffix(address.name) + twin_name(address.name)
        with _faults(self.url):
            self._client = _client(address)
            if not self._client.has_collection(self._name):
                names = self._client.list_collections()
                raise StoreError(
                    f"{self.url}: there is no collection '{self._name}'; wanted one of {few(names, 'collections')}"
                )
            self._described = self._client.describe_collection(self._name)
            self._load(self._name)
        fields = {field["name"]: field for field in self._described["fields"]}
        vectors = [name for name, field in fields.items() if field["type"].name in _READERS]
        self.column = chosen_column(self.url, column, vectors, [name for name in fields if name not in vectors])
        self._key = next(name for name, field in fields.items() if field.get("is_primary"))
        self.dim, self._kind = int(fields[self.column]["params"]["dim"]), fields[self.column]["type"].name

    def __len__(self) -> int:
        with _faults(self.url):
            return self._count(self._name)

    @property
    def version(self) -> str:
        return f"{len(self)} items"

    @property
    def beside(self) -> Path:
        if self._address.local:
            return self._address.path.with_name(f"{self._address.path.name}-{self._name}.refining")
        return Path(f"{self._address.place.replace(':', '-')}-{self._name}.refining")

    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        read = _READERS[self._kind]
        with _faults(self.url):
            for rows in self._pages(size):
                keys = kept_keys(self.url, [row[self._key] for row in rows])
                yield keys, read([row[self.column] for row in rows])

    def has_refined(self) -> bool:
        with _faults(self.url):
            return bool(self._client.has_collection(twin_name(self._name)))

    def check_twin(self) -> None:
        alias = twin_name(self._name)
        if self.has_refined() and self._client.describe_collection(alias)["collection_name"] == alias:
            raise StoreError(
                f"{self.refined_url} is a collection that Entourage did not write, and is never replaced; rename it"
            )

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        written = 0
        with _faults(self.refined_url):
            filling = self._filling(refined.tag)
            for rows in blocks(len(refined), BATCH):
                keys = refined.keys[rows].tolist()
                if rows.stop > start or not self._holds(filling, keys):
                    written += self._upsert(filling, keys, refined.vectors[rows])
                else:
                    written += len(keys)
                if done:
                    done(rows.stop)
            self._client.flush(filling)
            held = self._count(filling)
            check_held(self.refined_url, held, written)
            self._show(filling)
        return held

    def close(self) -> None:
        self._client.close()

    def _count(self, collection: str) -> int:
        return int(self._client.query(collection, filter="", output_fields=["count(*)"], **_STRONG)[0]["count(*)"])

    def _pages(self, size: int) -> Iterator[list[dict[str, Any]]]:
        """All items, in order of their keys.

        The client goes on after the last key of a page, which it does not quote: where that has to be, a new iterator
        goes on after it.
        """
        fields, after = [self._key, self.column], ""
        while True:
            pages = self._client.query_iterator(
                self._name, batch_size=size, filter=after, output_fields=fields, **_STRONG
            )
            after = ""
            try:
                while not after and (rows := pages.next()):
                    yield rows
                    last = rows[-1][self._key]
                    after = f"{self._key} > {_quoted(last)}" if isinstance(last, str) and _ESCAPED & set(last) else ""
            finally:
                pages.close()
            if not after:
                return

    def _get(self, collection: str, keys: list[Any], fields: list[str]) -> list[dict[str, Any]]:
        """Some items by their keys; the client's own `get` does not quote what is in them."""
        wanted = f"{self._key} in [{', '.join(map(_quoted, keys))}]"
        return list(self._client.query(collection, filter=wanted, output_fields=fields, **_STRONG))

    def _load(self, collection: str) -> None:
        """Nothing can be read before that."""
        if self._client.get_load_state(collection)["state"].name != "Loaded":
            self._client.load_collection(collection)

    def _filling(self, tag: str) -> str:
        """The collection that the twin is to be, with all its indexes: the one that was begun, or a new one.

        Making one takes several steps. Whoever is killed between them leaves a collection that cannot be loaded, or, in
        a file of Milvus Lite, a name that cannot be used: the next name is taken, and `_show` deletes the others.
        """
        wanted = len(self._client.list_indexes(self._name))
        for number in range(1, _NAMES + 1):
            filling = f"{twin_name(self._name)}_{tag}" + (f"_{number}" if number > 1 else "")
            try:
                if not self._client.has_collection(filling):
                    self._create(filling)
                if len(self._client.list_indexes(filling)) == wanted:
                    self._load(filling)
                    return filling
            except Exception:
                if number == _NAMES:
                    raise
        raise StoreError(f"{self.refined_url} cannot be filled: {_NAMES} attempts were cut short; start again")

    def _create(self, filling: str) -> None:
        """A collection of the same fields and indexes; keys are given, whoever made those of the original."""
        from pymilvus import CollectionSchema

        fields = [field | {"auto_id": False} for field in self._described["fields"]]
        schema = CollectionSchema.construct_from_dict(self._described | {"fields": fields, "auto_id": False})
        indexes = self._client.prepare_index_params()
        for name in self._client.list_indexes(self._name):
            index = self._client.describe_index(self._name, name)
            indexes.add_index(
                index["field_name"],
                index_type=index["index_type"],
                index_name=index["index_name"],
                metric_type=index.get("metric_type", ""),
                params={key: value for key, value in index.items() if key in _INDEX_PARAMETERS},
            )
        self._client.create_collection(filling, schema=schema, index_params=indexes)

    def _holds(self, filling: str, keys: list[Any]) -> bool:
        return len(self._get(filling, keys, [self._key])) == len(keys)

    def _upsert(self, filling: str, keys: list[Any], vectors: Any) -> int:
        """Write a batch, with the other fields that the items have now; how many there still are."""
        new = dict(zip(keys, vectors, strict=True))
        dtype = np.float16 if self._kind == "FLOAT16_VECTOR" else np.float32
        held = self._get(self._name, keys, ["*"])
        data = [dict(row) | {self.column: np.asarray(new[row[self._key]], dtype)} for row in held]
        if data:
            self._client.upsert(filling, data)
        return len(data)

    def _show(self, filling: str) -> None:
        """Let NAME_refined be this collection from now on, and delete others that were to be it."""
        alias = twin_name(self._name)
        self.check_twin()
        if not self._client.has_collection(alias):
            self._client.create_alias(filling, alias)
        elif self._client.describe_collection(alias)["collection_name"] != filling:
            self._client.alter_alias(filling, alias)
        for name in self._client.list_collections():
            if is_filling(name, alias) and name != filling:  # the one it was, and what was given up
                self._client.drop_collection(name)


_INDEX_PARAMETERS = ("M", "efConstruction", "nlist", "m", "nbits")
_READERS: dict[str, Callable[[list[Any]], FloatArray]] = {
    "FLOAT_VECTOR": lambda vectors: np.array(vectors, np.float32),
    "FLOAT16_VECTOR": lambda vectors: np.stack([_halves(vector) for vector in vectors]),
}
"""The kinds of vectors that can be refined, and how each becomes an array (n, d)."""


def _quoted(key: int | str) -> str:
    """A key as an expression of Milvus has it.

    >>> print(_quoted(7), _quoted('5" disc'))
    7 "5\\" disc"
    """
    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else str(key)


def _halves(vector: Any) -> FloatArray:
    """A vector of half precision, which arrives as bytes."""
    vector = vector[0] if isinstance(vector, list) else vector
    return np.frombuffer(vector, np.float16)


def _client(address: Address) -> "MilvusClient":
    from pymilvus import MilvusClient

    if address.local:
        if not address.path.exists():
            raise StoreError(f"{address.url}: there is no file '{address.place}'; wanted a file of Milvus Lite")
        try:
            return MilvusClient(str(address.path))
        except Exception as error:
            raise StoreError(
                f"{address.url}: '{address.place}' cannot be opened; wanted a file of Milvus Lite, which one process "
                "at a time can open: end the other one, or correct the address"
            ) from error
    try:
        return MilvusClient(address.server(_PORT), token=from_environment("MILVUS_TOKEN") or "", timeout=_SECONDS)
    except Exception as error:
        raise StoreError(
            f"{address.url}: there is no file '{address.place}', and no server answers at {address.server(_PORT)}; "
            "start it, or correct the address"
        ) from error


@contextmanager
def _faults(url: str) -> Iterator[None]:
    """As `engine_faults`; what the client writes to its log, with tracebacks, is said in the sentence instead."""
    logs = [logging.getLogger(name) for name in ("pymilvus", "milvus_lite", "grpc")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        with engine_faults(url):
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
