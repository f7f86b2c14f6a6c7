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
    chosen_column,
    engine_faults,
    from_environment,
    is_filling,
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
            self._settings = self._client.get_collection(self._name).config.params
        vectors = self._settings.vectors or {}
        named = vectors if isinstance(vectors, dict) else {_UNNAMED: vectors}
        single = [name for name, settings in named.items() if settings.multivector_config is None]
        self.column = chosen_column(self.url, column, single, [name for name in named if name not in single])
        self.dim = int(named[self.column].size)

    def __len__(self) -> int:
        with engine_faults(self.url):
            return int(self._client.count(self._name, exact=True).count)

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
                yield np.array([point.id for point in points]), self._vectors(points)
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

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> None:
        filling = f"{twin_name(self._name)}_{refined.tag}"
        with engine_faults(self.refined_url):
            if not self._client.collection_exists(filling):
                self._client.create_collection(
                    filling,
                    vectors_config=self._settings.vectors,
                    sparse_vectors_config=self._settings.sparse_vectors,
                )
                start = 0
            for rows in blocks(len(refined), BATCH):
                if rows.stop > start:
                    self._upsert(filling, refined, rows)
                if done:
                    done(rows.stop)
            self._show(filling)

    def close(self) -> None:
        self._client.close()

    def _aliases(self) -> set[str]:
        with engine_faults(self.url):
            return {each.alias_name for each in self._client.get_aliases().aliases}

    def _vectors(self, points: list[Any]) -> FloatArray:
        found = [point.vector.get(self.column) if self.column else point.vector for point in points]
        missing = [point.id for point, vector in zip(points, found, strict=True) if vector is None]
        if missing:
            raise InputError(
                f"{self.url}: item {missing[0]} has no vector{f' {self.column}' * bool(self.column)}; every item needs "
                "one: delete or encode it"
            )
        return np.array(found, np.float32)

    def _upsert(self, filling: str, refined: Refined, rows: slice) -> None:
        """Write a batch, with the payloads and other vectors that the items have now."""
        from qdrant_client.models import PointStruct

        keys = refined.keys[rows].tolist()
        new = dict(zip(keys, np.asarray(refined.vectors[rows], np.float32).tolist(), strict=True))
        held = self._client.retrieve(self._name, keys, with_payload=True, with_vectors=True)
        points = [
            PointStruct(
                id=point.id,
                payload=point.payload,
                vector={**point.vector, self.column: new[point.id]} if self.column else new[point.id],
            )
            for point in held
        ]
        if points:
            self._client.upsert(filling, points, wait=True)

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
