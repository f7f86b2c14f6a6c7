"""Every store through the same story, with its real engine: read, write a twin, resume, replace, refuse."""

import numpy as np
import pytest
from tests.stores.engines import ENGINES, NAME

from entourage import stores
from entourage.errors import FileError, InputError, MissingExtra, StoreError
from entourage.stores.databases import Refined, store

COUNT, DIM = 60, 16
KEYS = np.arange(COUNT) * 7 + 3


def unit(seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(COUNT, DIM)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(params=ENGINES)
def engine(request):
    pytest.importorskip(ENGINES[request.param].library, reason=f"{request.param}: its package is not installed")
    return ENGINES[request.param]


@pytest.fixture
def small_batches(monkeypatch):
    """Several of them."""
    for module in ("lance", "milvus", "pgvector", "qdrant"):
        monkeypatch.setattr(f"entourage.stores.databases.{module}.BATCH", 20)
    monkeypatch.setattr("entourage.stores.databases.faiss_index._ADDED", 20)
    monkeypatch.setattr("entourage.stores.databases.parquet_folder._WRITTEN", 20)


def opened(engine, folder, vectors=None, **options):
    return stores.open(engine.fill(folder, KEYS, unit(0) if vectors is None else vectors), **options)


def everything(opened_store, size=20):
    keys, vectors = zip(*opened_store.batches(size), strict=True)
    return np.concatenate(keys), np.concatenate(vectors)


def in_place_of(opened_store, new: np.ndarray, tag="aaaaaaaaaa") -> Refined:
    """`new` as the refined vectors: those of the n-th item in the order of KEYS, wherever the store has it."""
    keys, old = everything(opened_store)
    order = (old @ unit(0).T).argmax(axis=1)
    return Refined(keys, new[order], tag)


def assert_holds(found: dict, vectors: np.ndarray):
    assert sorted(found) == sorted(KEYS.tolist())
    for row, key in enumerate(KEYS.tolist()):
        np.testing.assert_allclose(found[key][0], vectors[row], atol=1e-6)
        assert found[key][1] == ("red", "green", "blue")[key % 3]


def test_all_items_are_read_once_as_they_are(engine, tmp_path):
    with opened(engine, tmp_path) as opened_store:
        keys, vectors = everything(opened_store)
        assert (len(opened_store), opened_store.dim) == (COUNT, DIM) and len(np.unique(keys)) == len(keys) == COUNT
        assert len(list(opened_store.batches(20))) >= 3
        np.testing.assert_allclose(np.sort(vectors, axis=0), np.sort(unit(0), axis=0), atol=1e-6)


def test_refined_vectors_stand_in_a_twin_with_the_same_ids_and_fields(engine, tmp_path, small_batches):
    with opened(engine, tmp_path) as opened_store:
        assert not opened_store.has_refined()
        opened_store.write(in_place_of(opened_store, unit(1)))
        assert opened_store.has_refined() and f"{NAME}_refined" in opened_store.refined_url
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(1))
    assert_holds(engine.read(tmp_path, NAME), unit(0))
    with stores.open(opened_store.refined_url) as twin:  # it can be read, and refined, like any other
        assert (len(twin), twin.dim) == (COUNT, DIM)


def test_the_same_again_changes_nothing(engine, tmp_path, small_batches):
    with opened(engine, tmp_path) as opened_store:
        for _ in range(2):
            opened_store.write(in_place_of(opened_store, unit(1)))
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(1))


def test_another_refinement_takes_the_place_of_the_first(engine, tmp_path, small_batches):
    with opened(engine, tmp_path) as opened_store:
        opened_store.write(in_place_of(opened_store, unit(1), tag="aaaaaaaaaa"))
        opened_store.write(in_place_of(opened_store, unit(2), tag="bbbbbbbbbb"))
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(2))
    assert engine.read(tmp_path, f"{NAME}_refined_aaaaaaaaaa") == {}


def test_what_is_interrupted_is_not_seen_and_is_resumed(engine, tmp_path, small_batches):
    class Interrupted(BaseException):
        """As KeyboardInterrupt: nothing catches it on its way out."""

    written = []

    def stop_after_two(count):
        written.append(count)
        if len(written) == 2:
            raise Interrupted

    with opened(engine, tmp_path) as opened_store:
        refined = in_place_of(opened_store, unit(1))
        with pytest.raises(Interrupted):
            opened_store.write(refined, done=stop_after_two)
        assert not opened_store.has_refined()
        opened_store.write(refined, start=written[-1])
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(1))
    assert_holds(engine.read(tmp_path, NAME), unit(0))


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


def killed(*_, **__):
    raise Killed


@pytest.mark.parametrize("step", ["create_index", "load_collection", "upsert", "flush", "create_alias"])
def test_a_collection_of_milvus_that_was_cut_short_is_made_again(tmp_path, step, small_batches, monkeypatch):
    pymilvus = pytest.importorskip("pymilvus")
    engine = ENGINES["milvus"]
    with opened(engine, tmp_path) as opened_store:
        refined = in_place_of(opened_store, unit(1))
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(pymilvus.MilvusClient, step, killed)
            opened_store.write(refined)
        assert not opened_store.has_refined()
        opened_store.write(refined)
        indexes = opened_store._client.list_indexes
        assert indexes(f"{NAME}_refined") == indexes(NAME) != []
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(1))


def test_a_name_that_milvus_cannot_use_any_more_is_left_alone(tmp_path, small_batches):
    pytest.importorskip("pymilvus")
    engine = ENGINES["milvus"]
    with opened(engine, tmp_path) as opened_store:
        (folder,) = (path for path in tmp_path.rglob(NAME) if path.is_dir())
        folder.with_name(f"{NAME}_refined_aaaaaaaaaa").mkdir()  # all there is of a collection, at first
        opened_store.write(in_place_of(opened_store, unit(1)))
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(1))


def test_what_a_store_has_lost_of_a_twin_is_written_again(tmp_path, small_batches):
    pytest.importorskip("pymilvus")
    engine = ENGINES["milvus"]
    with opened(engine, tmp_path) as opened_store:
        refined = in_place_of(opened_store, unit(1))
        opened_store.write(refined)
        opened_store._client.delete(f"{NAME}_refined_aaaaaaaaaa", ids=[int(KEYS[5])])
        opened_store.write(refined, start=COUNT)
    assert_holds(engine.read(tmp_path, f"{NAME}_refined"), unit(1))


def test_what_others_wrote_under_the_name_of_a_twin_stays(tmp_path):
    (tmp_path / f"{NAME}_refined").mkdir()
    (tmp_path / f"{NAME}_refined" / "diary.txt").write_text("dear diary")
    with opened(ENGINES["parquet"], tmp_path) as opened_store:
        for act in (opened_store.check_twin, lambda: opened_store.write(in_place_of(opened_store, unit(1)))):
            with pytest.raises(FileError, match="Entourage did not write"):
                act()
    assert (tmp_path / f"{NAME}_refined" / "diary.txt").exists()


@pytest.mark.parametrize("wanted", ["price", "colour"])
def test_a_column_that_holds_no_vectors_is_refused(engine, tmp_path, wanted):
    with pytest.raises(StoreError, match=rf"'{wanted}'"):
        opened(engine, tmp_path, column=wanted)


@pytest.mark.parametrize("ending", ["_of_others", "_of_others/x"])
def test_a_table_that_is_not_there_is_refused_and_nothing_is_made(engine, tmp_path, ending):
    url = engine.fill(tmp_path, KEYS, unit(0))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match=r"there is no|does not work|no database"):
        stores.open(url + ending)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("url", ["milvus://127.0.0.1:9/items", "qdrant://127.0.0.1:9/items"])
def test_a_server_that_does_not_answer_is_one_sentence(url):
    engine = ENGINES[url.partition(":")[0]]
    pytest.importorskip(engine.library)
    with pytest.raises(StoreError, match=r"no server answers at http://127.0.0.1:9.*start it, or correct the address$"):
        stores.open(url)


def test_a_postgres_that_does_not_answer_is_one_sentence():
    pytest.importorskip("psycopg", reason="the package psycopg is not installed: pip install 'entourage[pgvector]'")
    with pytest.raises(StoreError, match=r"no database 'shop' of Postgres answers at 127.0.0.1 \(.*; start it"):
        stores.open("pgvector://127.0.0.1:9/shop/items")


@pytest.mark.parametrize(
    "url",
    ["lance://", "lance://folder", "milvus:///", "qdrant://x/", "faiss:", "parquet:", "pgvector://x", "nobody://a/b"],
)
def test_an_address_without_its_parts_is_refused(url):
    with pytest.raises(InputError, match="wanted lance://FOLDER/TABLE"):
        stores.open(url)


def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch):
    monkeypatch.setattr("entourage.runtime.extras.is_installed", lambda library: False)
    with pytest.raises(MissingExtra, match=r"entourage\[lance\]"):
        stores.open("lance://folder/table")


def test_of_several_columns_one_has_to_be_named():
    assert store.chosen_column("url", None, ["vector", "image"], []) == "vector"
    assert store.chosen_column("url", "image", ["vector", "image"], []) == "image"
    with pytest.raises(StoreError, match="text, image; wanted one of them: name it by --column"):
        store.chosen_column("url", None, ["text", "image"], [])


@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "IVF4,Flat", "IDMap2,HNSW8", "HNSW8,SQfp16", "IVF4,SQ8"])
def test_the_twin_of_an_index_is_of_the_same_kind_and_finds_the_same(tmp_path, kind):
    faiss = pytest.importorskip("faiss")
    index = faiss.index_factory(DIM, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(unit(0))
    keyed = kind.startswith("I")
    index.add_with_ids(unit(0), KEYS) if keyed else index.add(unit(0))
    faiss.write_index(index, str(tmp_path / "items.index"))
    with stores.open(f"faiss:{tmp_path}/items.index") as opened_store:
        opened_store.write(Refined(everything(opened_store)[0], unit(1), "a1"))
    twin = faiss.read_index(str(tmp_path / "items_refined.index"))
    assert type(twin) is type(faiss.read_index(str(tmp_path / "items.index")))
    faiss.ParameterSpace().set_index_parameter(twin, "nprobe", 4) if "IVF" in kind else None
    found = twin.search(unit(1), 1)[1][:, 0]
    assert (found == (KEYS if keyed else np.arange(COUNT))).mean() > 0.98


def test_a_file_that_is_no_index_is_refused(tmp_path):
    pytest.importorskip("faiss")
    np.save(tmp_path / "items.npy", unit(0))
    with pytest.raises(StoreError, match="is not an index that faiss can read"):
        stores.open(f"faiss:{tmp_path}/items.npy")


def test_an_index_that_does_not_give_its_vectors_back_is_refused(tmp_path):
    faiss = pytest.importorskip("faiss")
    index = faiss.index_factory(DIM, "ITQ8,LSH")
    index.train(unit(0))
    index.add(unit(0))
    faiss.write_index(index, str(tmp_path / "items.index"))
    with pytest.raises(StoreError, match="IndexPreTransform does not give its vectors back"):
        stores.open(f"faiss:{tmp_path}/items.index")


def write_parquet(file, **columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns).replace_schema_metadata({"encoder_fingerprint": "x", "by": "us"}), file)


@pytest.mark.parametrize("number", [np.float16, np.float64, np.int8])
def test_files_of_parquet_keep_their_names_their_kind_of_lists_and_what_they_say(tmp_path, number, small_batches):
    import pyarrow.parquet as pq

    vectors = (unit(0) * 100).astype(number)
    for name, rows in {"b": slice(0, 50), "a": slice(50, 60)}.items():
        write_parquet(tmp_path / "items" / f"{name}.parquet", embedding=list(vectors[rows]), id=KEYS[rows])
    (tmp_path / "items" / "_SUCCESS").touch()
    with stores.open(f"parquet:{tmp_path}/items") as opened_store:
        keys, found = everything(opened_store)
        np.testing.assert_array_equal(found, vectors[np.r_[50:60, 0:50]])
        opened_store.write(Refined(keys, unit(1), "aaaaaaaaaa"))
    twin = pq.read_table(tmp_path / "items_refined" / "b.parquet")
    assert pq.read_table(tmp_path / "items_refined").num_rows == COUNT
    np.testing.assert_allclose(np.stack(twin["embedding"].to_numpy()), unit(1)[10:], atol=1e-3)
    kept = twin["embedding"].type.value_type.to_pandas_dtype()
    assert kept == (number if np.dtype(number).kind == "f" else np.float32)
    assert twin.schema.metadata == {b"entourage_refined": b"yes", b"by": b"us"}


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "holds no .parquet file"),
        ({"a": {"v": [[1.0]]}, "b": {"w": [[1.0]]}}, r"b.parquet has no 'v', only w; wanted it in every file"),
        (
            {"a": {"v": [[1.0]]}, "b": {"v": [[1.0, 2.0]]}},
            r"b.parquet: column `v` has 2 values a row, and 1 in",
        ),
        ({"a": {"v": [[1.0], None]}}, r"a.parquet: column `v` has rows of 1 values and 1 without any"),
        ({"a": {"v": [1.0]}}, "has no vectors, only v"),
        ({"a": {"v": [[1.0]]}, "b": None}, "b.parquet cannot be read as Parquet"),
        ({"inner/a": {"v": [[1.0]]}}, "holds inner/a.parquet; wanted all files in the folder itself"),
    ],
)
def test_folders_that_cannot_be_read_are_refused_by_the_name_of_the_file(tmp_path, files, sentence):
    (tmp_path / "items").mkdir()
    for name, columns in files.items():
        file = tmp_path / "items" / f"{name}.parquet"
        file.write_text("not at all") if columns is None else write_parquet(file, **columns)
    with pytest.raises((StoreError, InputError), match=sentence), stores.open(f"parquet:{tmp_path}/items") as opened:
        everything(opened, size=1000)
