"""Where vectors live besides single files: LanceDB, Milvus, Qdrant, Postgres, faiss, folders of Parquet.

lance://FOLDER/TABLE
pgvector://HOST:PORT/DATABASE/TABLE                           Postgres with the extension pgvector
milvus://FILE/COLLECTION      qdrant://FOLDER/COLLECTION      on this machine's disk
milvus://HOST:PORT/NAME       qdrant://HOST:PORT/NAME         on a server; milvus+https, qdrant+https
faiss:FILE                    parquet:FOLDER
"""

import re
from pathlib import Path

from entourage.errors import InputError
from entourage.runtime.extras import require
from entourage.stores.databases.store import Address, Refined, Store
from entourage.stores.paths import StrPath

__all__ = ["Refined", "Store", "is_store", "open_parquet", "open_store"]

_URL = re.compile(r"(lance|milvus|pgvector|qdrant)(\+https)?://(.*)", re.DOTALL)
_LIBRARIES = {
    "lance": "lancedb",
    "milvus": "pymilvus",
    "qdrant": "qdrant_client",
    "faiss": "faiss",
    "pgvector": "psycopg",
}
_PATHS = ("faiss", "parquet")  # engines whose addresses are nothing but a path


def is_store(text: object) -> bool:
    """Whether a text is the address of a vector store, rather than the name of a file.

    Parameters
    ----------
    text : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_store("lance://shop/items"), is_store("faiss:items.index"), is_store("vectors.npy")
    (True, True, False)
    """
    if not isinstance(text, str):
        return False
    return text.startswith(tuple(f"{engine}:" for engine in _PATHS)) or _URL.fullmatch(text) is not None


def open_store(url: str, column: str | None = None) -> Store:
    """Open the table, collection or index of an address.

    Parameters
    ----------
    url : str
        lance://FOLDER/TABLE, milvus://FILE/COLLECTION, milvus://HOST:PORT/COLLECTION, qdrant://FOLDER/COLLECTION,
        qdrant://HOST:PORT/COLLECTION, pgvector://[USER@]HOST[:PORT]/DATABASE/TABLE, faiss:FILE or parquet:FOLDER.
    column : str, optional
        The column, field or named vector that is meant, where there are several.

    Returns
    -------
    Store
        Opened, to be used in a `with` block.
    """
    engine, address = _parsed(url)
    if engine == "parquet":
        return open_parquet(address.place, column, url=url)
    require(_LIBRARIES[engine], f"opening {engine}:")
    if engine == "lance":
        from entourage.stores.databases.lance import LanceStore

        return LanceStore(address, column)
    if engine == "milvus":
        from entourage.stores.databases.milvus import MilvusStore

        return MilvusStore(address, column)
    if engine == "qdrant":
        from entourage.stores.databases.qdrant import QdrantStore

        return QdrantStore(address, column)
    if engine == "pgvector":
        from entourage.stores.databases.pgvector import PgvectorStore

        return PgvectorStore(address, column)
    from entourage.stores.databases.faiss_index import FaissStore

    return FaissStore(address, column)


def open_parquet(folder: StrPath, column: str | None = None, twin: Path | None = None, url: str | None = None) -> Store:
    """Open a folder of .parquet files.

    Parameters
    ----------
    folder : str or path-like
    column : str, optional
        The column of vectors, where there are several.
    twin : Path, optional
        The folder for the refined vectors; by default FOLDER_refined.
    url : str, optional
        What messages call it; by default the folder.

    Returns
    -------
    Store
        Opened, to be used in a `with` block.
    """
    from entourage.stores.databases.parquet_folder import ParquetStore

    return ParquetStore(Address(url or str(folder), str(folder), ""), column, twin)


def _parsed(url: str) -> tuple[str, Address]:
    """The engine of an address, and its parts."""
    engine, _, path = url.partition(":")
    if engine in _PATHS and Path(path).name:
        return engine, Address(url, path, "")
    parts = _URL.fullmatch(url)
    place, _, name = parts[3].rstrip("/").rpartition("/") if parts else ("", "", "")
    if parts is None or not place or not name:
        raise InputError(
            f"the store is {url!r}; wanted lance://FOLDER/TABLE, milvus://FILE-or-HOST:PORT/COLLECTION, "
            "qdrant://FOLDER-or-HOST:PORT/COLLECTION, pgvector://HOST:PORT/DATABASE/TABLE, faiss:FILE or parquet:FOLDER"
        )
    return parts[1], Address(url, place, name, secure=bool(parts[2]))
