"""Any folder of images, one folder per class."""

import pytest
from tests.data.pictures import value_of, write_pictures, write_text

from entourage.data import folder
from entourage.errors import EntourageWarning, FileError, InputError


@pytest.fixture
def root(tmp_path):
    """Five classes, two pictures each, the first two nested or oddly named; and things that are no pictures."""
    names = ["e/1.jpg", "e/2.jpg", "a/deep/er/1.PNG", "a/2.jpeg", "b/1.jpg", "b/2.jpg", "c/1.webp", "c/2.bmp"]
    write_pictures(tmp_path, [*names, "d/1.jpg", "d/2.jpg"])
    write_text(tmp_path / "a/notes.txt", "not a picture")
    write_text(tmp_path / "a/._2.jpeg", "left by a Mac")
    write_text(tmp_path / ".cache/1.jpg", "hidden")
    write_text(tmp_path / "README.md", "not a class")
    return tmp_path


def test_the_first_half_of_the_sorted_classes_trains(root):
    train, test = folder.load("train", root), folder.load("test", root)
    assert train.ids.tolist() == ["a/2.jpeg", "a/deep/er/1.PNG", "b/1.jpg", "b/2.jpg"]
    assert train.labels.tolist() == ["a", "a", "b", "b"]
    assert test.labels.tolist() == ["c", "c", "d", "d", "e", "e"]
    assert value_of(train.picture(2)) == 4


@pytest.mark.parametrize(("share", "count"), [(0.2, 1), (0.6, 3), (0.79, 3), (0.8, 4), (0.01, 1), (0.99, 4)])
def test_another_share_of_the_classes(root, share, count):
    assert len(set(folder.load("train", root, train_share=share).labels)) == count
    assert len(set(folder.load("test", root, train_share=share).labels)) == 5 - count


@pytest.mark.parametrize("share", [0, 1, -0.5, 2])
def test_a_share_of_no_meaning_is_refused(root, share):
    with pytest.raises(InputError, match=f"train_share is {share}"):
        folder.load("train", root, train_share=share)


def test_a_folder_may_say_itself_what_trains(tmp_path):
    write_pictures(tmp_path, ["train/a/1.jpg", "train/a/2.jpg", "test/b/1.jpg", "test/b/2.jpg"])
    assert folder.splits(tmp_path) == ("train", "test")
    assert folder.load("train", tmp_path).ids.tolist() == ["train/a/1.jpg", "train/a/2.jpg"]
    assert folder.load("test", tmp_path).labels.tolist() == ["b", "b"]
    with pytest.raises(InputError, match="has a folder for each split; leave it out"):
        folder.load("train", tmp_path, train_share=0.5)


def test_queries_and_gallery_may_be_apart(tmp_path):
    write_pictures(tmp_path, ["train/a/1.jpg", "train/a/2.jpg", "query/b/1.jpg", "gallery/b/2.jpg"])
    assert folder.splits(tmp_path) == ("train", "query", "gallery")
    assert folder.load("gallery", tmp_path).ids.tolist() == ["gallery/b/2.jpg"]
    with pytest.raises(InputError, match="wanted one of train, query, gallery, all"):
        folder.load("test", tmp_path)


@pytest.mark.filterwarnings("error::entourage.errors.EntourageWarning")
def test_all_is_every_picture_whatever_it_is_for(root, tmp_path):
    every = folder.load("all", root)
    assert every.labels.tolist() == [label for label in "abcde" for _ in range(2)]
    assert folder.splits(root) == ("train", "test")
    own = tmp_path / "e" / "own"  # classes on both sides, and of one picture, are no doubt where nothing is tested
    write_pictures(own, ["train/a/1.jpg", "test/a/2.jpg", "test/b/1.jpg"])
    assert folder.load("all", own).ids.tolist() == ["train/a/1.jpg", "test/a/2.jpg", "test/b/1.jpg"]
    assert folder.load("all", own).labels.tolist() == ["a", "a", "b"]
    assert len(folder.load("all", own / "train")) == 1  # one class cannot be divided, but embedded


def test_all_takes_pictures_without_classes(tmp_path):
    write_pictures(tmp_path, ["2.jpg", "1.jpg"])
    (tmp_path / ".cache").mkdir()
    every = folder.load("all", tmp_path)
    assert (every.ids.tolist(), every.labels) == (["1.jpg", "2.jpg"], None)
    assert every.take([1]).ids.tolist() == ["2.jpg"]
    with pytest.raises(FileError, match=r"has no folders with images in them; .* or embed them with --split all"):
        folder.load("test", tmp_path)


def test_a_class_in_train_and_test_is_warned_of(tmp_path):
    write_pictures(tmp_path, ["train/a/1.jpg", "train/a/2.jpg", "test/a/3.jpg", "test/a/4.jpg"])
    with pytest.warns(EntourageWarning, match="1 of its classes both in train and in test, the first is 'a'"):
        folder.load("test", tmp_path)


def test_a_class_of_one_image_is_warned_of_and_kept(tmp_path):
    write_pictures(tmp_path, ["a/1.jpg", "b/1.jpg", "b/2.jpg"])
    with pytest.warns(EntourageWarning, match="1 of 1 classes with only one image in train, the first is 'a'"):
        assert len(folder.load("train", tmp_path)) == 1


def test_an_empty_class_is_warned_of_and_left_out(tmp_path):
    write_pictures(tmp_path, ["a/1.jpg", "a/2.jpg", "c/1.jpg", "c/2.jpg"])
    (tmp_path / "b").mkdir()
    with pytest.warns(EntourageWarning, match=r"/b holds no image \(1 such folder\)"):
        assert set(folder.load("train", tmp_path).labels) == {"a"}


def test_a_folder_without_classes_is_refused(tmp_path):
    with pytest.raises(FileError, match="has no folders with images in them; wanted one folder per class"):
        folder.load("train", tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(FileError, match="has no folders with images in them"):
        folder.load("train", tmp_path)


def test_one_class_cannot_be_divided(tmp_path):
    write_pictures(tmp_path, ["a/1.jpg", "a/2.jpg"])
    with pytest.raises(FileError, match="has 1 class, 'a'; wanted two or more"):
        folder.load("train", tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="nowhere does not exist"):
        folder.load("train", tmp_path / "nowhere")


def test_an_unknown_split_is_named(root):
    with pytest.raises(InputError, match=r"unknown split 'dev' of .*; wanted one of train, test, all"):
        folder.load("dev", root)


@pytest.mark.parametrize("split", ["train", "all"])
def test_pictures_that_are_left_out_are_told(tmp_path, split):
    write_pictures(tmp_path, ["a/Bild 1.JPG", "a/2.webp", "b/1.png", "b/2.png", "beside.jpg", "a/.thumbs/1.jpg"])
    for name in ("a/Thumbs.db", ".DS_Store", "a/._1.jpg", "a/IMG_1.HEIC"):
        (tmp_path / name).write_bytes(b"")
    with pytest.warns(EntourageWarning) as told:
        images = folder.load(split, tmp_path)
    assert images.ids.tolist()[:2] == ["a/2.webp", "a/Bild 1.JPG"]
    texts = [str(each.message) for each in told]
    assert [text for text in texts if "1 pictures of" in text and "a/IMG_1.HEIC; convert them" in text]
    assert [text for text in texts if "lie beside the folders of its classes" in text and "beside.jpg" in text]
    assert len(texts) == 2
