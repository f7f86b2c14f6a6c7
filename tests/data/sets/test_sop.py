"""Stanford Online Products, on a miniature of its layout."""

import pytest
from tests.data.pictures import value_of, write_pictures, write_text

from entourage.data.layout import Count
from entourage.data.sets import sop
from entourage.errors import EntourageWarning, FileError

HEADER = "image_id class_id super_class_id path\n"
TRAIN = ["1 1 1 bicycle_final/1_0.JPG", "2 1 1 bicycle_final/1_1.JPG", "3 2 2 mug_final/2_0.JPG"]
TEST = ["4 3 2 mug_final/3_0.JPG", "5 3 2 mug_final/3_1.JPG"]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(sop, "EXPECTED", {"train": Count(3, 2), "test": Count(2, 1)})
    folder = tmp_path / "Stanford_Online_Products"
    write_pictures(folder, [line.split()[3] for line in TRAIN + TEST])
    write_text(folder / "Ebay_train.txt", HEADER + "\n".join(TRAIN) + "\n")
    write_text(folder / "Ebay_test.txt", HEADER + "\n".join(TEST) + "\n")
    return tmp_path


def test_the_lists_say_which_train_and_test(root):
    train, test = sop.load("train", root), sop.load("test", root)
    assert train.ids.tolist() == ["bicycle_final/1_0.JPG", "bicycle_final/1_1.JPG", "mug_final/2_0.JPG"]
    assert (train.labels.tolist(), test.labels.tolist()) == ([1, 1, 2], [3, 3])
    assert value_of(test.picture(1)) == 4


def test_the_genuine_counts():
    assert sop.EXPECTED == {"train": (59551, 11318), "test": (60502, 11316)}


def test_a_class_in_both_lists_is_warned_of(root):
    write_text(root / "Stanford_Online_Products/Ebay_test.txt", HEADER + "\n".join(TEST).replace(" 3 2", " 2 2") + "\n")
    with pytest.warns(EntourageWarning, match="sop has 1 of its classes both in train and in test, the first is 2"):
        sop.load("test", root)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "Ebay_test.txt").unlink(), r"Ebay_test\.txt is missing"),
        (
            lambda folder: write_text(folder / "Ebay_train.txt", HEADER + TRAIN[0]),
            "names 1 images of 1 classes; wanted 3 of 2",
        ),
        (lambda folder: (folder / "mug_final/2_0.JPG").unlink(), r"mug_final/2_0\.JPG is missing \(1 of 3"),
        (lambda folder: write_text(folder / "Ebay_train.txt", HEADER + "1 1 1\n"), "line 2 .* has 3 columns"),
    ],
)
def test_what_is_missing_is_named(root, damage, message):
    damage(root / "Stanford_Online_Products")
    with pytest.raises(FileError, match=message):
        sop.load("train", root)


def test_a_wrong_root(tmp_path):
    with pytest.raises(FileError, match=r"sop is not under .*Ebay_train\.txt"):
        sop.load("train", tmp_path)
