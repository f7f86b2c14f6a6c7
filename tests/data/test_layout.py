"""What the loaders share: finding places, and naming what is missing."""

import numpy as np
import pytest
from tests.data.pictures import write_text

from entourage.data import layout
from entourage.data.layout import Count
from entourage.errors import EntourageWarning, FileError, InputError


def test_pictures_are_known_by_their_suffix():
    names = ["a.jpg", "A.JPEG", "b.Png", "._a.jpg", "a.txt", "jpg", "Thumbs.db"]
    assert [layout.is_image_name(name) for name in names] == [True, True, True, False, False, False, False]


def test_the_root_given_wins_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ENTOURAGE_DATA", "/nowhere")
    assert layout.data_root(tmp_path, "x") == tmp_path
    with pytest.raises(layout.NotFound, match="/nowhere does not exist"):
        layout.data_root(None, "x")


def test_a_dataset_is_found_under_any_of_its_names_or_at_the_root(tmp_path):
    write_text(tmp_path / "b" / "mark.txt", "")
    assert layout.dataset_folder(tmp_path, "x", ("a", "b"), ("mark.txt",)) == tmp_path / "b"
    assert layout.dataset_folder(tmp_path / "b", "x", ("a", "b"), ("mark.txt",)) == tmp_path / "b"
    with pytest.raises(
        layout.NotFound, match=r"wanted .*/a/other\.txt; check the root, or see `entourage datasets get x`"
    ):
        layout.dataset_folder(tmp_path, "x", ("a", "b"), ("other.txt",))


def test_the_first_place_that_exists(tmp_path):
    write_text(tmp_path / "two", "")
    assert layout.first_existing(tmp_path, ["one", "two"], "a list") == tmp_path / "two"
    with pytest.raises(FileError, match=r"/one \(or three\) is missing; wanted a list"):
        layout.first_existing(tmp_path, ["one", "three"], "a list")


def test_missing_pictures_are_counted_and_the_first_is_named(tmp_path):
    for name in ("top.jpg", "a/1.jpg"):
        write_text(tmp_path / name, "")
    layout.check_present(tmp_path, ["top.jpg", "a/1.jpg"])
    with pytest.raises(FileError, match=r"a/2\.jpg is missing \(2 of 4 images are\)"):
        layout.check_present(tmp_path, ["top.jpg", "a/1.jpg", "a/2.jpg", "b/1.jpg"])


def test_counts_are_of_images_and_classes():
    layout.check_counts("list", np.array([1, 1, 2]), Count(3, 2))
    with pytest.raises(FileError, match="list names 3 images of 2 classes; wanted 3 of 3"):
        layout.check_counts("list", np.array([1, 1, 2]), Count(3, 3))


def test_an_unknown_split_lists_the_known():
    with pytest.raises(InputError, match="unknown split 'dev' of x; wanted one of a, b, c"):
        layout.check_split("dev", ("a", "b", "c"), "x")


def test_classes_of_both_splits_are_warned_of_whatever_their_type():
    with pytest.warns(EntourageWarning, match="x has 2 of its classes both in train and in test, the first is 'b'"):
        layout.warn_of_shared_classes("x", np.array(["a", "b", "c", "c"]), ["b", "c"])


def test_columns_are_padded_and_counted(tmp_path):
    path = write_text(tmp_path / "list.txt", "header\n\na    1  \nb\t2\n")
    assert layout.read_columns(path, ("name", "number"), header=1) == [["a", "1"], ["b", "2"]]
    with pytest.raises(FileError, match=r"line 3 of .*list\.txt has 2 columns; wanted 1 \(name\)"):
        layout.read_columns(path, ("name",), header=1)
    assert layout.whole_numbers(path, ["1", "2"]).tolist() == [1, 2]
    with pytest.raises(FileError, match="holds text where a number was wanted"):
        layout.whole_numbers(path, ["one"])
