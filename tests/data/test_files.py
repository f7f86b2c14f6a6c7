"""Pictures on disk: what a set of them checks, holds and decodes."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from PIL import Image
from tests.data.pictures import value_of, write_picture, write_pictures

from entourage.data.files import ImageFiles
from entourage.errors import CorruptImage, FileError, InputError


def one(path, **fields) -> ImageFiles:
    return ImageFiles(path.parent, np.array([path.name]), np.array([0]), **fields)


def test_a_set_of_files_has_what_every_image_set_has(tmp_path):
    write_pictures(tmp_path, ["a/0.png", "a/1.png", "b/2.png"])
    images = ImageFiles(tmp_path, np.array(["a/0.png", "a/1.png", "b/2.png"]), np.array(["a", "a", "b"]))
    assert len(images) == 3
    assert images.ids.tolist() == ["a/0.png", "a/1.png", "b/2.png"]
    assert images.paths == [tmp_path / "a/0.png", tmp_path / "a/1.png", tmp_path / "b/2.png"]
    assert value_of(images.picture(2)) == 2
    assert images.picture(0).size == (8, 6)


def test_taking_rows_keeps_everything_about_them(tmp_path):
    columns = {"boxes": np.array([[0, 0, 2, 3], [1, 1, 4, 4], [0, 0, 0, 0]]), "cameras": [1, 2, 3]}
    images = ImageFiles(tmp_path, ["x", "y", "z"], [5, 6, 7], ["i", "j", "k"], sequences=["s", "t", "u"], **columns)
    some = images.take([2, 0])
    assert isinstance(some, ImageFiles)
    seen = [getattr(some, name).tolist() for name in ("names", "labels", "ids", "boxes", "cameras", "sequences")]
    assert seen == [["z", "x"], [7, 5], ["k", "i"], [[0, 0, 0, 0], [0, 0, 2, 3]], [3, 1], ["u", "s"]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": [0]}, "1 labels for 2 images"),
        ({"labels": [0.5, 1.5]}, "labels are float64 and not whole numbers"),
        ({"names": ["x", "x"]}, "id 'x' appears 2 times"),
        ({"ids": ["i", "i"]}, "id 'i' appears 2 times"),
        ({"cameras": [1]}, "1 cameras for 2 images"),
        ({"boxes": [[0, 0, 1, 1]]}, r"boxes are int64 of shape \(1, 4\)"),
        ({"boxes": [[0, 0, 1.5, 1], [0, 0, 1, 1]]}, "boxes are float64"),
        ({"boxes": [[0, 0, 0, 0], [3, 0, 3, 5]]}, r"box of y is \[3, 0, 3, 5\]"),
        ({"boxes": [[0, 0, 0, 0], [-1, 0, 3, 5]]}, r"box of y is \[-1, 0, 3, 5\]"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_birth(tmp_path, fields, message):
    with pytest.raises(InputError, match=message):
        ImageFiles(tmp_path, **({"names": ["x", "y"], "labels": [0, 1]} | fields))


def test_a_set_is_frozen(tmp_path):
    images = ImageFiles(tmp_path, ["x"], [0])
    with pytest.raises(ValueError, match="read-only"):
        images.labels[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        images.labels = None


def test_a_hundred_thousand_names_take_little_memory(tmp_path):
    names = np.array([f"class_{row % 1000:04}/picture_{row:06}.jpg" for row in range(100_000)])
    tracemalloc.start()
    images = ImageFiles(tmp_path, names, np.arange(100_000) % 1000)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 5_000_000
    assert np.shares_memory(images.ids, images.names) and np.shares_memory(images.names, names)


# ---- decoding ------------------------------------------------------------------------------------------------------


def test_a_box_crops_and_is_cut_off_at_the_edge(tmp_path):
    pixels = np.arange(48, dtype=np.uint8).reshape(6, 8)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    picture = one(tmp_path / "p.png", boxes=np.array([[2, 1, 5, 3]])).picture(0)
    assert np.asarray(picture).tolist() == pixels[1:3, 2:5].tolist()
    assert one(tmp_path / "p.png", boxes=np.array([[6, 4, 20, 20]])).picture(0).size == (2, 2)
    assert one(tmp_path / "p.png", boxes=np.array([[0, 0, 0, 0]])).picture(0).size == (8, 6)


def test_a_box_outside_its_picture_is_corrupt(tmp_path):
    write_picture(tmp_path / "p.png")
    with pytest.raises(CorruptImage, match=r"box \(8, 0, 9, 1\) lies outside its 8 x 6 pixels"):
        one(tmp_path / "p.png", boxes=np.array([[8, 0, 9, 1]])).picture(0)


def test_a_picture_taken_sideways_is_turned_upright_before_it_is_cropped(tmp_path):
    picture = Image.new("RGB", (8, 6))
    exif = picture.getexif()
    exif[0x0112] = 6  # turn by 90 degrees
    picture.save(tmp_path / "p.jpg", exif=exif)
    assert one(tmp_path / "p.jpg").picture(0).size == (6, 8)
    assert one(tmp_path / "p.jpg", boxes=np.array([[0, 6, 6, 8]])).picture(0).size == (6, 2)


@pytest.mark.parametrize(
    ("made", "mode", "value"),
    [
        (lambda: Image.new("L", (4, 4), 90), "L", 90),
        (lambda: Image.new("1", (4, 4), 1), "L", 255),
        (lambda: Image.new("I;16", (4, 4), 90 * 257), "L", 90),
        (lambda: Image.new("P", (4, 4), 0), "RGB", 0),
        (lambda: Image.new("RGBA", (4, 4), (9, 9, 9, 255)), "RGB", 9),
        (lambda: Image.new("RGBA", (4, 4), (9, 9, 9, 0)), "RGB", 255),  # transparent: the white below
        (lambda: Image.new("LA", (4, 4), (9, 255)), "RGB", 9),
    ],
    ids=["grey", "bits", "16 bits", "palette", "opaque", "transparent", "grey with alpha"],
)
def test_every_kind_of_picture_comes_as_grey_or_colour(tmp_path, made, mode, value):
    made().save(tmp_path / "p.png")
    picture = one(tmp_path / "p.png").picture(0)
    assert (picture.mode, value_of(picture)) == (mode, value)


def _damaged(folder):
    whole = write_picture(folder / "whole.jpg", 7, (64, 64)).read_bytes()
    (folder / "cut.jpg").write_bytes(whole[:-20])
    png = write_picture(folder / "whole.png", 7, (64, 64)).read_bytes()
    (folder / "cut.png").write_bytes(png[:60])
    (folder / "flipped.png").write_bytes(png[:45] + bytes(20) + png[65:])
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "page.jpg").write_text("<html>404</html>")
    (folder / "folder.jpg").mkdir()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cut.jpg", "(?i)truncated"),
        ("cut.png", "."),
        ("flipped.png", "."),
        ("empty.jpg", "it is empty"),
        ("page.jpg", "it is not an image"),
        ("folder.jpg", "it is a folder"),
        ("nothing.jpg", "there is no such file"),
    ],
)
def test_what_cannot_be_decoded_is_named(tmp_path, name, reason):
    _damaged(tmp_path)
    with pytest.raises(CorruptImage, match=reason) as caught:
        one(tmp_path / name).picture(0)
    assert isinstance(caught.value, FileError)
    assert caught.value.path == str(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)
