"""Vectors that stay on disk are read as numpy would read them, scaled to length 1."""

import numpy as np
import pytest

from entourage.errors import FileError, InputError
from entourage.stores.mapped import MappedVectors, map_vectors, mapped_array
from entourage.values import Embeddings


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("rows", [slice(None), slice(3, 9), np.array([7, 2, 2, 11])])
def test_rows_are_those_of_embeddings(tmp_path, dtype, rows):
    vectors = (20 * np.random.default_rng(0).normal(size=(12, 5))).astype(dtype)
    np.save(tmp_path / "x.npy", vectors)
    mapped = map_vectors(tmp_path / "x.npy")
    assert mapped.shape == (12, 5) and mapped[rows].dtype == np.float32
    np.testing.assert_allclose(mapped[rows], Embeddings.from_vectors(vectors).vectors[rows], atol=2e-7)


def test_every_finite_half_is_read_exactly():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].reshape(-1, 64)
    found = MappedVectors(halves, np.ones(len(halves), np.float32))[:]
    np.testing.assert_array_equal(found, halves.astype(np.float32))


def test_arrays_are_opened_again_as_they_were_left(tmp_path):
    array = mapped_array(tmp_path / "a.npy", (3, 2), np.float32)
    array[1] = 7
    array.flush()
    np.testing.assert_array_equal(mapped_array(tmp_path / "a.npy", (3, 2), np.float32)[1], [7, 7])
    np.testing.assert_array_equal(mapped_array(tmp_path / "a.npy", (4, 2), np.float32), np.zeros((4, 2)))


def test_what_holds_no_vectors_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(4))
    with pytest.raises(InputError, match=r"shape \(4,\)"):
        map_vectors(tmp_path / "x.npy")
    with pytest.raises(FileError):
        map_vectors(tmp_path / "y.npy")


def test_a_new_array_is_there_with_its_header_or_not_at_all(tmp_path, monkeypatch):
    """Killed before the header is written, it was an empty file that could not be resumed."""

    def killed(path, *given):
        path.touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(np.lib.format, "open_memmap", killed)
        mapped_array(tmp_path / "a.npy", (3, 2), np.float32)
    assert not (tmp_path / "a.npy").exists()
    mapped_array(tmp_path / "a.npy", (3, 2), np.float32)[1] = 5
    again = mapped_array(tmp_path / "a.npy", (3, 2), np.float32)
    assert again.tolist() == [[0, 0], [5, 5], [0, 0]]
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
