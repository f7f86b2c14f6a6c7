"""Market-1501, on a miniature of its layout."""

import pytest
from tests.data.pictures import write_picture, write_pictures

from entourage.data.layout import Count
from entourage.data.sets import market1501
from entourage.errors import EntourageWarning, FileError

TRAIN = ["0002_c1s1_000451_03.jpg", "0002_c3s1_000551_00.jpg", "0007_c2s3_070952_01.jpg"]
QUERY = ["0001_c1s1_001051_00.jpg"]
GALLERY = [
    "-1_c1s1_000401_03.jpg",
    "-1_c6s4_000001_03.jpg",
    "0000_c2s1_000151_01.jpg",
    "0001_c1s1_001051_03.jpg",
    "0001_c6s3_001051_00.jpg",
]
PLACES = {"bounding_box_train": TRAIN, "query": QUERY, "bounding_box_test": GALLERY}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(market1501, "EXPECTED", {"train": Count(3, 2), "query": Count(1, 1), "gallery": Count(3, 2)})
    monkeypatch.setattr(market1501, "FILES", {"train": 3, "query": 1, "gallery": 5})
    folder = tmp_path / "Market-1501-v15.09.15"
    for place, names in PLACES.items():
        write_pictures(folder / place, reversed(names))
        (folder / place / "Thumbs.db").write_bytes(b"left by a file browser")
    return tmp_path


def test_persons_and_cameras_are_read_from_the_names(root):
    images = market1501.load("train", root)
    assert images.ids.tolist() == [f"bounding_box_train/{name}" for name in TRAIN]
    assert images.labels.tolist() == [2, 2, 7]
    assert images.cameras.tolist() == [1, 3, 2]


def test_junk_is_dropped_and_distractors_stay(root):
    images = market1501.load("gallery", root)
    assert images.ids.tolist() == [f"bounding_box_test/{name}" for name in GALLERY[2:]]
    assert images.labels.tolist() == [0, 1, 1]
    assert images.cameras.tolist() == [2, 1, 6]


def test_queries_share_persons_and_cameras_with_the_gallery_but_no_pictures(root):
    query = market1501.load("query", root)
    assert (query.labels.tolist(), query.cameras.tolist()) == ([1], [1])
    assert not set(query.ids) & set(market1501.load("gallery", root).ids)


def test_the_genuine_counts():
    assert market1501.FILES == {"train": 12936, "query": 3368, "gallery": 19732}
    assert [count.images for count in market1501.EXPECTED.values()] == [12936, 3368, 15913]


def test_a_missing_picture_and_folder_are_named(root):
    (root / "Market-1501-v15.09.15/bounding_box_test" / GALLERY[0]).unlink()
    with pytest.raises(FileError, match="bounding_box_test holds 4 images; wanted 5"):
        market1501.load("gallery", root)
    for file in (root / "Market-1501-v15.09.15/query").iterdir():
        file.unlink()
    (root / "Market-1501-v15.09.15/query").rmdir()
    with pytest.raises(FileError, match=r"the folder .*query is missing"):
        market1501.load("query", root)


def test_a_picture_of_another_name_is_refused(root):
    place = root / "Market-1501-v15.09.15/bounding_box_train"
    (place / TRAIN[0]).rename(place / "holiday.jpg")
    with pytest.raises(FileError, match=r"holiday\.jpg is not named like 0002_c1s1"):
        market1501.load("train", root)


def test_a_person_in_train_and_gallery_is_warned_of(root, monkeypatch):
    write_picture(root / "Market-1501-v15.09.15/query/0007_c2s3_000001_00.jpg")
    with pytest.warns(EntourageWarning, match="market1501 has 1 of its classes both .* 7;"):
        market1501.load("train", root)


def test_a_wrong_root(tmp_path):
    with pytest.raises(FileError, match=r"market1501 is not under .*bounding_box_train"):
        market1501.load("train", tmp_path)
