"""Vectors written block by block: the same as written at once, whole or not at all."""

import os

import numpy as np
import pytest

from entourage.errors import FileError
from entourage.stores import check_streamable, encoder_of_vectors, labels_beside, read_vectors, write_blocks, write_like

VECTORS = np.eye(5, 4, dtype=np.float32) + 0.5
IDS = np.array(["a, b", 'say "c"', "d", "é", "f"])


def blocks(stop: int = 5):
    yield from (VECTORS[:2], VECTORS[2:2], VECTORS[2:stop])


@pytest.mark.parametrize(
    "labels", [np.array([3, 3, 1, 1, 2]), np.array(["x", "x", "y", "y,z", "w"])], ids=["int", "str"]
)
@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".npy"])
def test_what_is_written_is_read_back(tmp_path, suffix, labels):
    path = tmp_path / f"v{suffix}"
    write_blocks(path, blocks(), 4, IDS, labels)
    items = read_vectors(path, labels=labels_beside(path) if suffix == ".npy" else None)
    np.testing.assert_allclose(items.vectors, VECTORS / np.linalg.norm(VECTORS, axis=1)[:, None], atol=1e-7)
    assert items.labels.astype(str).tolist() == labels.astype(str).tolist()
    if suffix != ".npy":
        assert items.ids.tolist() == IDS.tolist() and items.labels.dtype.kind == labels.dtype.kind


def test_a_npy_can_be_mapped_into_memory_and_a_npz_is_numpys(tmp_path):
    write_blocks(tmp_path / "v.npy", blocks(), 4, IDS, np.arange(5))
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy", mmap_mode="r"), VECTORS)
    write_blocks(tmp_path / "v.npz", blocks(), 4, IDS, np.arange(5))
    with np.load(tmp_path / "v.npz", allow_pickle=False) as arrays:
        assert arrays.files == ["vectors", "ids", "labels"] and arrays["vectors"].dtype == np.float32


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_vectors_say_who_made_them_until_they_are_others(tmp_path, suffix):
    path, refined = tmp_path / f"v{suffix}", tmp_path / f"r{suffix}"
    write_blocks(path, blocks(), 4, IDS, encoder="0123abcd")
    assert encoder_of_vectors(path) == "0123abcd" and read_vectors(path).ids.tolist() == IDS.tolist()
    write_like(path, refined, VECTORS[::-1])
    assert encoder_of_vectors(refined) is None and read_vectors(refined).ids.tolist() == IDS.tolist()
    write_blocks(path, blocks(), 4, IDS)
    assert encoder_of_vectors(path) is None


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".npy"])
def test_a_failure_on_the_way_leaves_nothing(tmp_path, suffix):
    def broken():
        yield VECTORS[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_blocks(tmp_path / f"v{suffix}", broken(), 4, IDS, np.arange(5))
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_written_is_refused_beforehand(tmp_path):
    (tmp_path / "v.csv").touch()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(FileError, match=r"v\.csv exists already"):
        check_streamable(tmp_path / "v.npy", overwrite=False)
    with pytest.raises(FileError, match=r"ends in \.txt; vectors are written to \.npz, \.parquet, \.npy"):
        check_streamable(tmp_path / "v.txt", overwrite=False)
    with pytest.raises(FileError, match="is a folder; wanted the name of a file"):
        check_streamable(tmp_path / "folder.npz", overwrite=True)
    assert check_streamable(tmp_path / "v.npz", overwrite=False) == tmp_path / "v.npz"


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_cameras_and_sequences_come_back_where_they_are_asked_for(tmp_path, suffix):
    path, cameras = tmp_path / f"v{suffix}", np.array([1, 2, 1, 2, 3])
    write_blocks(path, blocks(), 4, IDS, np.arange(5), cameras=cameras, sequences=np.array(list("stuvw")))
    items = read_vectors(path, exclusions=True)
    assert (items.cameras.tolist(), items.sequences.tolist()) == (cameras.tolist(), list("stuvw"))
    assert read_vectors(path).cameras is None
    assert items.take([4, 0]).cameras.tolist() == [3, 1]


def test_labels_may_be_unknown(tmp_path):
    write_blocks(tmp_path / "v.npz", blocks(), 4, IDS)
    assert read_vectors(tmp_path / "v.npz").labels is None
