"""In-Shop, on a miniature of its layouts."""

import pytest
from tests.data.pictures import value_of, write_pictures, write_text

from entourage.data.layout import Count
from entourage.data.sets import in_shop
from entourage.errors import EntourageWarning, FileError, InputError

LINES = [
    ("img/WOMEN/Dresses/id_00000002/02_1_front.jpg", "id_00000002", "train"),
    ("img/WOMEN/Dresses/id_00000002/02_2_side.jpg", "id_00000002", "train"),
    ("img/MEN/Denim/id_00000001/01_1_front.jpg", "id_00000001", "query"),
    ("img/MEN/Denim/id_00000001/01_2_side.jpg", "id_00000001", "gallery"),
    ("img/MEN/Denim/id_00000003/01_2_side.jpg", "id_00000003", "gallery"),
]


def partition(lines) -> str:
    """Padded with spaces, as the genuine file."""
    rows = [("image_name", "item_id", "evaluation_status"), *lines]
    return f"{len(lines)}\n" + "".join(f"{name:<70}{item:<16}{status} \n" for name, item, status in rows)


@pytest.fixture(params=["img", "Img/img", "img_highres"])
def root(request, tmp_path, monkeypatch):
    monkeypatch.setattr(in_shop, "EXPECTED", {"train": Count(2, 1), "query": Count(1, 1), "gallery": Count(2, 2)})
    folder = tmp_path / "in_shop"
    write_pictures(folder / request.param, [name.removeprefix("img/") for name, _, _ in LINES])
    place = "Eval/" if request.param == "Img/img" else ""
    write_text(folder / f"{place}list_eval_partition.txt", partition(LINES))
    return tmp_path


def test_three_splits_from_any_of_the_three_places(root):
    train, query, gallery = (in_shop.load(split, root) for split in ("train", "query", "gallery"))
    assert [len(train), len(query), len(gallery)] == [2, 1, 2]
    assert gallery.labels.tolist() == ["id_00000001", "id_00000003"]
    assert query.ids[0].endswith("/MEN/Denim/id_00000001/01_1_front.jpg")
    assert [value_of(images.picture(0)) for images in (train, query, gallery)] == [0, 2, 3]
    assert not set(query.ids) & set(gallery.ids)


def test_the_genuine_counts():
    assert [count.images for count in in_shop.EXPECTED.values()] == [25882, 14218, 12612]
    assert sum(count.images for count in in_shop.EXPECTED.values()) == 52712


def test_there_is_no_test_split(root):
    with pytest.raises(InputError, match=r"unknown split 'test' of in_shop; wanted one of train, query, gallery"):
        in_shop.load("test", root)


def _list_of(root):
    return next(root.rglob("list_eval_partition.txt"))


def test_a_list_that_breaks_off_is_refused(root):
    path = _list_of(root)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(FileError, match="announces 5 images in its first line and names 4"):
        in_shop.load("train", root)


def test_another_count_is_refused(root):
    _list_of(root).write_text(partition(LINES[1:]))
    with pytest.raises(FileError, match="train, names 1 images of 1 classes; wanted 2 of 1"):
        in_shop.load("train", root)


def test_a_missing_picture_is_named(root):
    next(root.rglob("02_2_side.jpg")).unlink()
    with pytest.raises(FileError, match=r"02_2_side\.jpg is missing \(1 of 2 images are\)"):
        in_shop.load("train", root)


def test_a_garment_in_train_and_gallery_is_warned_of(root):
    _list_of(root).write_text(partition([*LINES[:4], (LINES[4][0], "id_00000002", "gallery")]))
    with pytest.warns(EntourageWarning, match="in_shop has 1 of its classes both"):
        in_shop.load("gallery", root)


def test_no_pictures_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(in_shop, "EXPECTED", {"train": Count(2, 1)})
    write_text(tmp_path / "list_eval_partition.txt", partition(LINES))
    with pytest.raises(FileError, match=r"img \(or Img/img, img_highres, .*is missing; wanted 5 images"):
        in_shop.load("train", tmp_path)


def test_a_wrong_root(tmp_path):
    with pytest.raises(FileError, match=r"in_shop is not under .*list_eval_partition\.txt"):
        in_shop.load("train", tmp_path)
