"""Qdrant collections: a folder on disk or a server, by the same client.

The twin is filled under a name of its own; an alias then makes it NAME_refined in one step, as Qdrant's own guide for
changing a collection has it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.errors import InputError, StoreError, few
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
    from qdrant_client import QdrantClient

__all__ = ["QdrantStore"]

_PORT = 6333
_UNNAMED = ""  # the only vector of a collection that has no names for them


class QdrantStore(Store):
    """A collection of Qdrant.

    Parameters
    ----------
    address : Address
        The folder or server, and the collection. A server may want a token, in QDRANT_API_KEY.
    column : str, optional
        The named vector, if it has several.
    """

    def __init__(self, address: Address, column: str | None = None) -> None:
        self.url, self._name, self._address = address.url, address.name, address
        self.refined_url = address.url.removesuffix(address.name) + twin_name(address.name)
        with engine_faults(self.url):
            self._client = _client(address)
            if not self._client.collection_exists(self._name):
                names = [each.name for each in self._client.get_collections().collections]
                raise StoreError(
                    f"{self.url}: there is no collection '{self._name}'; wanted one of {few(names, 'collections')}"
                )
            self._told = self._client.get_collection(self._name)
        vectors = self._told.config.params.vectors or {}
        named = vectors if isinstance(vectors, dict) else {_UNNAMED: vectors}
        single = [name for name, settings in named.items() if settings.multivector_config is None]
        self.column = chosen_column(self.url, column, single, [name for name in named if name not in single])
        self.dim = int(named[self.column].size)

    def __len__(self) -> int:
        with engine_faults(self.url):
            return self._count(self._name)

    @property
    def version(self) -> str:
        return f"{len(self)} items"

    @property
    def beside(self) -> Path:
        if self._address.local:
            return self._address.path / f"{self._name}.refining"
        return Path(f"{self._address.place.replace(':', '-')}-{self._name}.refining")

    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        wanted = [self.column] if self.column else True
        offset: Any = None
        while True:
            with engine_faults(self.url):
                points, offset = self._client.scroll(
                    self._name, limit=size, offset=offset, with_payload=False, with_vectors=wanted
                )
            if points:
                yield _keys(self.url, [point.id for point in points]), self._vectors(points)
            if offset is None:
                return

    def has_refined(self) -> bool:
        with engine_faults(self.url):
            return bool(self._client.collection_exists(twin_name(self._name)))

    def check_twin(self) -> None:
        if self.has_refined() and twin_name(self._name) not in self._aliases():
            raise StoreError(
                f"{self.refined_url} is a collection that Entourage did not write, and is never replaced; rename it"
            )

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        filling, written = f"{twin_name(self._name)}_{refined.tag}", 0
        with engine_faults(self.refined_url):
            if not self._client.collection_exists(filling):
                self._create(filling)
            self._index_payloads(filling)
            for rows in blocks(len(refined), BATCH):
                keys = _point_ids(refined.keys[rows])
                if rows.stop > start or not self._holds(filling, keys):
                    written += self._upsert(filling, keys, refined.vectors[rows])
                else:
                    written += len(keys)
                if done:
                    done(rows.stop)
            held = self._count(filling)
            check_held(self.refined_url, held, written)
            self._show(filling)
        return held

    def close(self) -> None:
        self._client.close()

    def _aliases(self) -> set[str]:
        with engine_faults(self.url):
            return {each.alias_name for each in self._client.get_aliases().aliases}

    def _count(self, collection: str) -> int:
        return int(self._client.count(collection, exact=True).count)

    def _holds(self, collection: str, keys: list[int | str]) -> bool:
        return len(self._client.retrieve(collection, keys, with_payload=False, with_vectors=False)) == len(keys)

    def _vectors(self, points: list[Any]) -> FloatArray:
        found = [_by_name(point.vector).get(self.column) for point in points]
        missing = [point.id for point, vector in zip(points, found, strict=True) if vector is None]
        if missing:
            raise InputError(
                f"{self.url}: item {missing[0]} has no vector{f' {self.column}' * bool(self.column)}; every item needs "
                "one: delete or encode it"
            )
        return np.array(found, np.float32)

    def _create(self, filling: str) -> None:
        """A collection of the same settings, of which an embedded one heeds those of vectors alone."""
        from qdrant_client import models

        config, params = self._told.config, self._told.config.params
        self._client.create_collection(
            filling,
            vectors_config=params.vectors,
            sparse_vectors_config=params.sparse_vectors,
            shard_number=params.shard_number,
            replication_factor=params.replication_factor,
            write_consistency_factor=params.write_consistency_factor,
            on_disk_payload=params.on_disk_payload,
            hnsw_config=models.HnswConfigDiff(**config.hnsw_config.model_dump(exclude_none=True)),
            optimizers_config=models.OptimizersConfigDiff(**config.optimizer_config.model_dump(exclude_none=True)),
            quantization_config=config.quantization_config,
        )

    def _index_payloads(self, filling: str) -> None:
        """The indexes of payloads: before there are points, as Qdrant links points by them; again changes nothing."""
        for field, index in self._told.payload_schema.items():
            self._client.create_payload_index(filling, field, index.params or index.data_type, wait=True)

    def _upsert(self, filling: str, keys: list[int | str], vectors: Any) -> int:
        """Write a batch, with the payloads and other vectors that the items have now; how many there still are."""
        from qdrant_client.models import PointStruct

        new = dict(zip(keys, np.asarray(vectors, np.float32).tolist(), strict=True))
        held = self._client.retrieve(self._name, keys, with_payload=True, with_vectors=True)
        points = [
            PointStruct(
                id=point.id,
                payload=point.payload,
                vector=_as_given(_by_name(point.vector) | {self.column: new[point.id]}),
            )
            for point in held
        ]
        if points:
            self._client.upsert(filling, points, wait=True)
        return len(points)

    def _show(self, filling: str) -> None:
        """Let NAME_refined be this collection from now on, and delete others that were to be it."""
        from qdrant_client import models

        alias = twin_name(self._name)
        self.check_twin()
        changes: list[Any] = []
        if alias in self._aliases():
            changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
        created = models.CreateAlias(collection_name=filling, alias_name=alias)
        changes.append(models.CreateAliasOperation(create_alias=created))
        self._client.update_collection_aliases(change_aliases_operations=changes)
        for name in [each.name for each in self._client.get_collections().collections]:
            if is_filling(name, alias) and name != filling:  # the one it was, and what was given up
                self._client.delete_collection(name)


def _keys(url: str, ids: list[int | str]) -> LabelArray:
    """Ids as an array: numbers of 64 bits without a sign or, where UUIDs are among them, all as texts."""
    if all(isinstance(each, int) for each in ids):
        return kept_keys(url, ids, np.uint64)
    return kept_keys(url, [str(each) for each in ids])


def _point_ids(keys: LabelArray) -> list[int | str]:
    """The ids that `_keys` has made an array of; no UUID is a number.

    >>> _point_ids(np.array(["7", "f47ac10b-58cc-4372-a567-0e02b2c3d479"]))
    [7, 'f47ac10b-58cc-4372-a567-0e02b2c3d479']
    """
    return [int(key) if str(key).isdecimal() else key for key in keys.tolist()]


def _by_name(vectors: Any) -> dict[str, Any]:
    """The vectors of a point by name: the client gives the only one of a collection without names by itself."""
    return vectors if isinstance(vectors, dict) else {} if vectors is None else {_UNNAMED: vectors}


def _as_given(vectors: dict[str, Any]) -> Any:
    """What `_by_name` has made a dict of."""
    return vectors[_UNNAMED] if vectors.keys() == {_UNNAMED} else vectors


def _client(address: Address) -> "QdrantClient":
    from qdrant_client import QdrantClient

    if address.local:
        if not address.path.is_dir():
            raise StoreError(f"{address.url}: there is no folder '{address.place}'; wanted a folder of Qdrant")
        return QdrantClient(path=str(address.path))
    client = QdrantClient(
        url=address.server(_PORT), api_key=from_environment("QDRANT_API_KEY"), check_compatibility=False
    )
    try:
        client.get_collections()
    except Exception as error:
        raise StoreError(
            f"{address.url}: there is no folder '{address.place}', and no server answers at {address.server(_PORT)} "
            f"({str(error).splitlines()[0]}); start it, or correct the address"
        ) from error
    return client
