"""Vectors from and to every format: ids, order, number type and all else kept; damaged files refused, never run."""

import itertools
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from entourage.errors import EntourageError, FileError
from entourage.stores import check_writable_like, read_vectors, write_like

COUNT, DIM = 12, 4
IDS = [f"item {number}" for number in reversed(range(COUNT))]
LABELS = ["x", "y", "z"] * 4
FORMATS = [".npy", ".npz", ".parquet"]


@pytest.fixture
def raw():
    return np.random.default_rng(0).normal(size=(COUNT, DIM)).astype(np.float32)


def save(path: Path, vectors, ids=IDS, labels=LABELS) -> Path:
    """Vectors in the format of the suffix, with ids, labels and one thing more where the format allows."""
    if path.suffix == ".npy":
        np.save(path, vectors)
    elif path.suffix == ".npz":
        np.savez(path, extra=np.arange(3), vectors=vectors, ids=ids, labels=labels)
    else:
        table = pa.table({"id": ids, "extra": range(COUNT), "vector": list(vectors), "label": labels})
        pq.write_table(table.replace_schema_metadata({"made by": "a test"}), path)
    return path


def stored(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        return np.load(path)["vectors"]
    column = pq.read_table(path).column("vector").combine_chunks()
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


# ---- reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_reading_normalises_and_keeps_order_ids_and_labels(tmp_path, raw, suffix):
    items = read_vectors(save(tmp_path / f"v{suffix}", raw))
    np.testing.assert_allclose(items.vectors, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-6)
    if suffix == ".npy":
        assert (items.ids.tolist(), items.named, items.labels) == (list(range(COUNT)), False, None)
    else:
        assert (items.ids.tolist(), items.named, items.labels.tolist()) == (IDS, True, LABELS)


@pytest.mark.parametrize("name", ["vectors", "vector", "embeddings", "embedding", "arr_0", "anything"])
def test_npz_vectors_go_by_several_names(tmp_path, raw, name):
    np.savez(tmp_path / "v.npz", **{name: raw, "id": np.arange(COUNT), "label": np.zeros(COUNT, int)})
    items = read_vectors(tmp_path / "v.npz")
    assert (len(items), items.dim, items.named, items.labels.tolist()) == (COUNT, DIM, True, [0] * COUNT)


def test_a_named_npz_array_wins_over_other_tables(tmp_path, raw):
    np.savez(tmp_path / "v.npz", pictures=np.ones((COUNT, 9)), embeddings=raw)
    assert read_vectors(tmp_path / "v.npz").dim == DIM


LISTS = {
    "list": lambda x: pa.array(x.tolist(), pa.list_(pa.float32())),
    "large list": lambda x: pa.array(x.tolist(), pa.large_list(pa.float32())),
    "fixed-size list": lambda x: pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), DIM),
    "list of doubles": lambda x: pa.array(x.tolist(), pa.list_(pa.float64())),
    "list of halves": lambda x: pa.array(x.astype(np.float16).tolist(), pa.list_(pa.float16())),
}


@pytest.mark.parametrize("kind", LISTS)
def test_every_kind_of_parquet_list_is_read_and_written_as_itself(tmp_path, raw, kind):
    source, target = tmp_path / "v.parquet", tmp_path / "out.parquet"
    # Two row groups and a dictionary: what pandas and others write.
    table = pa.table({"id": pa.array(IDS).dictionary_encode(), "vector": LISTS[kind](raw)})
    pq.write_table(table, source, row_group_size=5)
    items = read_vectors(source)
    assert items.ids.tolist() == IDS
    np.testing.assert_allclose(items.vectors, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-3)
    write_like(source, target, items.vectors)
    assert pq.read_schema(target).equals(pq.read_schema(source))
    np.testing.assert_allclose(stored(target), items.vectors, atol=1e-3)


# ---- writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("given", "kept"),
    [("float16", "float16"), ("float32", "float32"), ("float64", "float64"), ("int32", "float32")],
)
def test_writing_keeps_the_number_type_if_it_can_hold_fractions(tmp_path, raw, suffix, given, kept):
    source = save(tmp_path / f"v{suffix}", (raw * 9).astype(given))
    write_like(source, tmp_path / f"out{suffix}", raw)
    result = stored(tmp_path / f"out{suffix}")
    assert result.dtype == kept
    np.testing.assert_array_equal(result, raw.astype(kept))


@pytest.mark.parametrize("dim", [DIM, 2, 7])
def test_npz_keeps_every_other_array(tmp_path, raw, dim):
    source = save(tmp_path / "v.npz", raw)
    write_like(source, tmp_path / "out.npz", np.ones((COUNT, dim), np.float32))
    with np.load(source) as before, np.load(tmp_path / "out.npz") as after:
        assert after.files == [*before.files, "entourage_refined"]
        for name in ("extra", "ids", "labels"):
            np.testing.assert_array_equal(after[name], before[name])
        assert after["vectors"].tolist() == [[1.0] * dim] * COUNT


@pytest.mark.parametrize("dim", [DIM, 2, 7])
def test_parquet_keeps_every_other_column_and_its_metadata(tmp_path, raw, dim):
    source = save(tmp_path / "v.parquet", raw)
    write_like(source, tmp_path / "out.parquet", np.ones((COUNT, dim), np.float32))
    before, after = pq.read_table(source), pq.read_table(tmp_path / "out.parquet")
    assert after.column_names == before.column_names
    assert after.schema.metadata == {b"made by": b"a test", b"entourage_refined": b"yes"}
    assert after.drop_columns("vector").equals(before.drop_columns("vector"))
    assert after.column("vector").to_pylist() == [[1.0] * dim] * COUNT


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_was_written_is_read_back_with_the_same_ids_and_labels(tmp_path, raw, suffix):
    source, target = save(tmp_path / f"v{suffix}", raw), tmp_path / f"out{suffix}"
    before = read_vectors(source)
    write_like(source, target, before.vectors)
    after = read_vectors(target)
    np.testing.assert_array_equal(after.ids, before.ids)
    np.testing.assert_array_equal(after.labels, before.labels)
    np.testing.assert_allclose(after.vectors, before.vectors, atol=1e-7)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_may_be_replaced_by_its_own_refinement(tmp_path, raw, suffix):
    source = save(tmp_path / f"v{suffix}", raw)
    write_like(source, source, -raw)
    np.testing.assert_array_equal(stored(source), -raw)


def test_a_failed_write_leaves_no_file(tmp_path, raw):
    source = save(tmp_path / "v.parquet", raw)
    with pytest.raises(pa.ArrowInvalid):
        write_like(source, tmp_path / "out.parquet", raw[:5])  # fewer rows than the other columns have
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


def test_the_output_must_be_free_and_of_the_same_format(tmp_path, raw):
    given = save(tmp_path / "v.npy", raw)
    (tmp_path / "there.npy").write_text("")
    (tmp_path / "folder.npy").mkdir()
    check_writable_like(given, tmp_path / "new.npy", overwrite=False)
    check_writable_like(given, tmp_path / "there.npy", overwrite=True)
    with pytest.raises(FileError, match="exists already"):
        check_writable_like(given, tmp_path / "there.npy", overwrite=False)
    with pytest.raises(FileError, match=r"folder\.npy is a folder; wanted the name of a file"):
        check_writable_like(given, tmp_path / "folder.npy", overwrite=True)
    with pytest.raises(FileError, match=r"new.npz is not a .npy file, .* call it .*new.npy"):
        check_writable_like(given, tmp_path / "new.npz", overwrite=True)


# ---- damaged files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused_at_any_length(tmp_path, raw, suffix, share):
    path = save(tmp_path / f"v{suffix}", raw)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileError, match=r"v\.\w+ .*write it again") as caught:
        read_vectors(path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_damaged_byte_anywhere_raises_nothing_but_our_own_errors(tmp_path, raw, suffix):
    path = save(tmp_path / f"v{suffix}", raw)
    whole = path.read_bytes()
    refused = 0
    for position in range(0, len(whole), 23):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            read_vectors(path)  # damage within the numbers themselves may go unseen
        except EntourageError:
            refused += 1
    assert refused


@pytest.mark.parametrize(("suffix", "other"), list(itertools.permutations([*FORMATS, ".txt"], 2)))
def test_a_file_of_another_kind_is_recognised_by_its_beginning(tmp_path, raw, suffix, other):
    content = b"0.1, 0.2\n0.3, 0.4\n" if other == ".txt" else save(tmp_path / f"real{other}", raw).read_bytes()
    path = tmp_path / f"v{suffix}"
    path.write_bytes(content)
    expected = "ends in .txt" if suffix == ".txt" else rf"begins with b.*, but a {suffix} file begins with"
    with pytest.raises(FileError, match=expected):
        read_vectors(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.npy", "the vectors file nothing.npy does not exist; check the path"),
        ("v.json", "v.json ends in .json; vectors are read from .npy, .npz, .parquet files"),
        ("v", "v ends in nothing; vectors are read from"),
    ],
)
def test_a_missing_file_or_unknown_suffix_is_refused(name, message):
    with pytest.raises(FileError, match=message):
        read_vectors(name)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({"vector": [[1, 2], [3]]}, "column `vector` has rows of 1 or 2 values", id="ragged"),
        pytest.param({"vector": [[1, 2], None]}, "rows of 2 values and 1 without any", id="missing vector"),
        pytest.param({"vector": [[1.0, 2.0], [None, 1.0]]}, "row 1 of the vectors contains NaN", id="missing value"),
        pytest.param({"vector": [["a"], ["b"]]}, "columns vector, 0 of them lists of numbers", id="text"),
        pytest.param({"vector": pa.array([], pa.list_(pa.float32()))}, "column `vector` has 0 rows", id="no rows"),
        pytest.param({"id": [1, 2]}, "has the columns id, 0 of them lists of numbers; wanted one", id="no vectors"),
        pytest.param({"a": [[1], [2]], "b": [[1], [2]]}, "columns a, b, 2 of them lists", id="which vectors?"),
        pytest.param({"vector": [[1], [2]], "id": ["a", None]}, "column `id` has 1 missing value;", id="missing id"),
        pytest.param({"vector": [[1], [2]], "id": ["a", "a"]}, "id 'a' appears 2 times", id="repeated id"),
    ],
)
def test_a_parquet_table_without_one_vector_per_row_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    with pytest.raises(EntourageError, match=rf"v\.parquet.*{message}"):
        read_vectors(tmp_path / "v.parquet")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        pytest.param({}, r"holds the arrays none; wanted exactly one", id="nothing"),
        pytest.param({"a": np.eye(2), "b": np.eye(2)}, "holds the arrays a, b; wanted exactly one", id="which?"),
        pytest.param({"vectors": np.eye(2), "ids": [1, 2, 3]}, "v.npz: 3 ids for 2 vectors", id="ids too many"),
        pytest.param({"vectors": np.eye(2), "ids": [1, 1]}, "v.npz: id 1 appears 2 times", id="repeated id"),
        pytest.param({"vectors": np.eye(2), "labels": [1]}, "v.npz: 1 labels for 2 vectors", id="labels too few"),
    ],
)
def test_an_npz_without_one_vector_per_item_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(EntourageError, match=message):
        read_vectors(tmp_path / "v.npz")


# ---- code in files -----------------------------------------------------------------------------------------


class Trap:
    """Creates a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("kind", ["object .npy", "object .npz", "object ids in .npz", "pickle", "labels"])
def test_reading_never_runs_code_from_a_file(tmp_path, raw, kind):
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)] * COUNT, dtype=object)
    source, labels = tmp_path / ("v.npz" if ".npz" in kind else "v.npy"), None
    if kind == "labels":
        np.save(source, raw)
        labels = tmp_path / "labels.npy"
    if kind == "pickle":
        source.write_bytes(pickle.dumps(trap))
    elif kind == "object ids in .npz":
        np.savez(source, vectors=raw, ids=trap)
    elif kind == "object .npz":
        np.savez(source, vectors=trap)
    else:
        np.save(labels or source, trap, allow_pickle=True)
    with pytest.raises(FileError, match=r"holds Python objects, which are never loaded|begins with"):
        read_vectors(source, labels=labels)
    assert not sprung.exists()
    pickle.loads(pickle.dumps(trap))
    assert sprung.exists(), "the trap does not work, so the test proves nothing"


def test_objects_beside_the_vectors_are_not_carried_along(tmp_path, raw):
    np.savez(tmp_path / "v.npz", vectors=raw, extra=np.array([Trap(tmp_path / "sprung")], dtype=object))
    with pytest.raises(FileError, match="holds Python objects"):
        write_like(tmp_path / "v.npz", tmp_path / "out.npz", raw)
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]
