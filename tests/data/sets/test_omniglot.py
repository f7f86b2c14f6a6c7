"""Omniglot, on miniatures of its two layouts."""

import pytest
from PIL import Image
from tests.data.pictures import write_pictures

from entourage.data.layout import Count
from entourage.data.sets import omniglot
from entourage.errors import EntourageWarning, FileError, InputError

TRAIN = ["Greek/character01/0394_01.png", "Greek/character01/0394_02.png", "Latin/character02/0694_01.png"]
TEST = ["Manipuri/character01/0994_01.png", "Tibetan/character01/1462_01.png"]
GENUINE = dict(omniglot.EXPECTED)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(omniglot, "EXPECTED", {"train": Count(3, 2), "test": Count(2, 2)})


@pytest.fixture(params=["omniglot", "omniglot-py", "omniglot/python", "."])
def root(request, tmp_path):
    write_pictures(tmp_path / request.param / "images_background", TRAIN)
    write_pictures(tmp_path / request.param / "images_evaluation", TEST)
    return tmp_path


def test_alphabets_of_the_background_set_train_and_those_of_the_evaluation_set_test(root):
    train, test = omniglot.load("train", root), omniglot.load("test", root)
    assert train.ids.tolist() == [f"images_background/{name}" for name in TRAIN]
    assert train.labels.tolist() == ["Greek/character01", "Greek/character01", "Latin/character02"]
    assert test.labels.tolist() == ["Manipuri/character01", "Tibetan/character01"]
    assert train.picture(0).size == (8, 6)


def test_pictures_of_one_bit_come_as_grey(root):
    path = next(root.rglob("0394_01.png"))
    Image.new("1", (105, 105), 1).save(path)
    assert omniglot.load("train", root).picture(0).mode == "L"


def test_the_genuine_counts():
    assert GENUINE == {"train": (964 * 20, 964), "test": (659 * 20, 659)}


def test_a_missing_picture_shows_in_the_counts(root):
    next(root.rglob("0394_02.png")).unlink()
    with pytest.raises(FileError, match="images_background names 2 images of 2 classes; wanted 3 of 2"):
        omniglot.load("train", root)


def test_a_half_that_is_missing_is_named(tmp_path):
    write_pictures(tmp_path / "omniglot/images_background", TRAIN)
    with pytest.raises(FileError, match="images_evaluation is missing; wanted 2 images"):
        omniglot.load("test", tmp_path)


def test_a_character_in_both_sets_is_warned_of(root):
    place = next(root.rglob("images_evaluation"))
    write_pictures(place, [TRAIN[0]])
    with pytest.warns(EntourageWarning, match="omniglot has 1 of its classes both"):
        omniglot.load("train", root)


def test_the_original_has_its_own_split(root):
    with pytest.raises(InputError, match="comes divided by alphabet"):
        omniglot.load("train", root, train_share=0.5)


@pytest.mark.parametrize("place", ["omniglot/images", "omniglot"])
def test_one_folder_a_class_is_read_as_any_folder(tmp_path, place):
    write_pictures(tmp_path / place, [f"{label}/{n}.png" for label in "abcd" for n in range(2)])
    assert omniglot.load("train", tmp_path).labels.tolist() == ["a", "a", "b", "b"]
    assert omniglot.load("test", tmp_path).labels.tolist() == ["c", "c", "d", "d"]
    assert omniglot.load("test", tmp_path / "omniglot", train_share=0.75).labels.tolist() == ["d", "d"]


def test_a_wrong_root_is_not_taken_for_one_folder_a_class(tmp_path):
    write_pictures(tmp_path / "photos", ["a/1.png", "b/1.png"])
    with pytest.raises(FileError, match=r"omniglot is not under .*omniglot/images_background"):
        omniglot.load("train", tmp_path / "photos")
