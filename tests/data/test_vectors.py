"""A file of vectors as a dataset: divided by class, as it is, or refused."""

import numpy as np
import pytest

from entourage import data
from entourage.errors import FileError, InputError

VECTORS = np.eye(6, dtype=np.float32)


@pytest.fixture
def file(tmp_path):
    np.savez(tmp_path / "v.npz", vectors=VECTORS, labels=list("cabacb"), cameras=[1, 2, 3, 1, 2, 3])
    return tmp_path / "v.npz"


def test_half_of_the_classes_train_and_the_others_test_in_the_order_of_the_file(file):
    assert data.splits(file) == ("train", "test")
    train, test = (data.load(file, split) for split in ("train", "test"))
    assert (train.labels.tolist(), train.ids.tolist()) == (["a", "a"], [1, 3])
    assert (test.labels.tolist(), test.ids.tolist()) == (list("cbcb"), [0, 2, 4, 5])
    assert test.vectors.tolist() == VECTORS[[0, 2, 4, 5]].tolist() and test.cameras.tolist() == [1, 3, 2, 3]
    assert data.load(str(file), "train", train_share=0.7, exclusions=False).labels.tolist() == list("abab")
    assert data.load(file, "test", exclusions=False).cameras is None


def test_the_whole_file_needs_no_labels(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS)
    assert len(data.load(tmp_path / "v.npy", "all")) == 6
    with pytest.raises(InputError, match=r"v\.npy has no labels of its own; wanted one for each vector"):
        data.load(tmp_path / "v.npy", "train")
    np.save(tmp_path / "l.npy", [0, 0, 1, 1, 2, 2])
    assert data.load(tmp_path / "v.npy", "test", labels=str(tmp_path / "l.npy")).labels.tolist() == [1, 1, 2, 2]


def test_a_file_is_named_by_its_path_alone(file, tmp_path):
    with pytest.raises(InputError, match=r"v\.npz is a file itself; leave root out"):
        data.load(file, "train", tmp_path)
    with pytest.raises(InputError, match="vectors are read from a file but none is given"):
        data.load("vectors", "train")


def test_what_cannot_be_divided_is_refused(file, tmp_path):
    with pytest.raises(InputError, match="train_share is 1"):
        data.load(file, "train", train_share=1)
    with pytest.raises(InputError, match="split"):
        data.load(file, "query")
    with pytest.raises(FileError, match="does not exist"):
        data.load(tmp_path / "nothing.npz", "train")
    np.savez(tmp_path / "one.npz", vectors=VECTORS, labels=["a"] * 6)
    with pytest.raises(FileError, match="has 1 class, 'a'; wanted two or more"):
        data.load(tmp_path / "one.npz", "train")
