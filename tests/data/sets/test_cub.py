"""CUB-200-2011, on a miniature of its layout."""

import pytest
from tests.data.pictures import value_of, write_pictures, write_text

from entourage.data.layout import Count
from entourage.data.sets import cub
from entourage.errors import FileError, InputError

NAMES = ["001.A/x_1.jpg", "001.A/x_2.jpg", "100.B/y.jpg", "101.C/z.jpg", "200.D/w_1.jpg", "200.D/w_2.jpg"]
CLASSES = [1, 1, 100, 101, 200, 200]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(cub, "EXPECTED", {"train": Count(3, 2), "test": Count(3, 2)})
    folder = tmp_path / "CUB_200_2011"
    write_pictures(folder / "images", NAMES)
    write_text(folder / "images.txt", "".join(f"{n} {name}\n" for n, name in enumerate(NAMES, 1)))
    # In another order: the files are joined by id.
    labels = [f"{n} {label}\n" for n, label in enumerate(CLASSES, 1)]
    write_text(folder / "image_class_labels.txt", "".join(reversed(labels)))
    # Divides every class, and must not be obeyed.
    write_text(folder / "train_test_split.txt", "".join(f"{n} {n % 2}\n" for n in range(1, 7)))
    write_text(folder / "bounding_boxes.txt", "".join(f"{n} 1.0 2.0 {n}.0 3.0\n" for n in range(1, 7)))
    return tmp_path


def test_the_first_hundred_classes_train(root):
    images = cub.load("train", root)
    assert images.ids.tolist() == [f"images/{name}" for name in NAMES[:3]]
    assert images.labels.tolist() == [1, 1, 100]
    assert value_of(images.picture(1)) == 1


def test_the_others_test(root):
    images = cub.load("test", root)
    assert images.ids.tolist() == [f"images/{name}" for name in NAMES[3:]]
    assert images.labels.tolist() == [101, 200, 200]


def test_the_root_may_be_the_folder_itself_or_named_by_the_environment(root, monkeypatch):
    assert len(cub.load("test", root / "CUB_200_2011")) == 3
    monkeypatch.setenv("ENTOURAGE_DATA", str(root))
    assert len(cub.load("test")) == 3


def test_boxes_crop_to_the_bird_if_asked(root):
    assert cub.load("train", root).boxes is None
    images = cub.load("test", root, boxes=True)
    assert images.boxes[0].tolist() == [1, 2, 5, 5]
    assert images.picture(0).size == (4, 3)


def test_the_genuine_counts():
    assert cub.EXPECTED == {"train": (5864, 100), "test": (5924, 100)}


def _lose_a_picture(folder):
    (folder / "images" / NAMES[1]).unlink()
    (folder / "images" / NAMES[2]).unlink()


def _lose_a_line(folder):
    lines = (folder / "images.txt").read_text().splitlines()
    (folder / "images.txt").write_text("\n".join(lines[1:]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_lose_a_picture, r"images/001\.A/x_2\.jpg is missing \(2 of 3 images are\)"),
        (_lose_a_line, r"images\.txt names 2 images of 2 classes; wanted 3 of 2"),
        (lambda folder: (folder / "image_class_labels.txt").unlink(), r"image_class_labels\.txt is missing"),
        (lambda folder: write_text(folder / "image_class_labels.txt", "1 1\n"), r"no line for image 2 \(5 of 6"),
        (lambda folder: write_text(folder / "images.txt", "1 a b\n"), r"line 1 of .*images\.txt has 3 columns"),
        (lambda folder: (folder / "images.txt").write_bytes(b"\xff\xfe"), r"images\.txt is not UTF-8"),
        (
            lambda folder: write_text(folder / "image_class_labels.txt", "".join(f"{n} bird\n" for n in range(1, 7))),
            "holds text where a number was wanted",
        ),
    ],
)
def test_what_is_missing_is_named(root, damage, message):
    damage(root / "CUB_200_2011")
    with pytest.raises(FileError, match=message):
        cub.load("train", root)


def test_a_wrong_root_says_what_was_looked_for(tmp_path):
    with pytest.raises(FileError, match=r"cub is not under .*: wanted .*CUB_200_2011/images\.txt"):
        cub.load("train", tmp_path)
    with pytest.raises(FileError, match="nowhere does not exist"):
        cub.load("train", tmp_path / "nowhere")


def test_no_root_at_all(monkeypatch):
    monkeypatch.delenv("ENTOURAGE_DATA", raising=False)
    with pytest.raises(FileError, match="no folder is given; wanted root, --root or ENTOURAGE_DATA"):
        cub.load("train")


def test_an_unknown_split_is_named(root):
    with pytest.raises(InputError, match="unknown split 'query' of cub; wanted one of train, test"):
        cub.load("query", root)
