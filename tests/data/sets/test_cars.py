"""Cars196, on miniatures of its three layouts."""

import numpy as np
import pytest
from scipy.io import savemat
from tests.data.pictures import value_of, write_picture, write_text

from entourage.data.layout import Count
from entourage.data.sets import cars
from entourage.errors import FileError

# half, file, class, box
CARS = [
    ("train", "00001.jpg", 1, (1, 1, 5, 4)),
    ("train", "00002.jpg", 99, (0, 0, 8, 6)),
    ("train", "00003.jpg", 98, (2, 1, 8, 6)),
    ("test", "00001.jpg", 1, (0, 1, 4, 5)),
    ("test", "00002.jpg", 196, (0, 0, 3, 3)),
]
GENUINE = dict(cars.EXPECTED)
CORNERS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cars, "EXPECTED", {"train": Count(3, 2), "test": Count(2, 2)})


def write_mat(path, name_field: str, rows) -> None:
    """An array of structs, as MATLAB writes it: rows are (name, class, box)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds = [(corner, object) for corner in CORNERS] + [("class", object), (name_field, object)]
    table = np.empty((1, len(rows)), dtype=kinds)
    for column, (name, label, box) in enumerate(rows):
        cells = [np.array([[corner]], np.uint16) for corner in box]
        table[0, column] = (*cells, np.array([[label]], np.uint8), name)
    savemat(path, {"annotations": table})


def one_list(folder):
    rows = [(f"car_ims/{n:06}.jpg", label, box) for n, (_, _, label, box) in enumerate(CARS, 1)]
    write_mat(folder / "cars_annos.mat", "relative_im_path", rows)
    for value, (name, _, _) in enumerate(rows):
        write_picture(folder / name, value, mode="L" if value == 2 else "RGB")  # some of them are grey


def devkit(folder, *, test_list="cars_test_annos_withlabels.mat"):
    for half, path in (("train", "devkit/cars_train_annos.mat"), ("test", test_list)):
        write_mat(folder / path, "fname", [(file, label, box) for each, file, label, box in CARS if each == half])
    for value, (half, file, _, _) in enumerate(CARS):
        write_picture(folder / f"cars_{half}" / file, value, mode="L" if value == 2 else "RGB")


def devkit_inside(folder):
    devkit(folder, test_list="devkit/cars_test_annos_withlabels.mat")


def kaggle(folder, *, place="car_data/car_data"):
    for half in ("train", "test"):
        lines = [f"{file},{','.join(map(str, box))},{label}\n" for each, file, label, box in CARS if each == half]
        write_text(folder / f"anno_{half}.csv", "".join(lines))
    write_text(folder / "names.csv", "AM General Hummer SUV 2000\n")
    for value, (half, file, label, _) in enumerate(CARS):
        model = "Ram C-V Cargo Van Minivan 2012" if label == 99 else f"Model {label}"
        write_picture(folder / place / half / model / file, value, mode="L" if value == 2 else "RGB")


def kaggle_flat(folder):
    kaggle(folder, place="car_data")


LAYOUTS = [one_list, devkit, devkit_inside, kaggle, kaggle_flat]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_split_by_class(tmp_path, layout):
    layout(tmp_path / "cars196")
    train, test = cars.load("train", tmp_path), cars.load("test", tmp_path)
    assert train.labels.tolist() == [1, 98, 1]  # both halves together, in the order of the annotations
    assert test.labels.tolist() == [99, 196]
    assert [value_of(train.picture(row)) for row in range(3)] == [0, 2, 3]
    assert [value_of(test.picture(row)) for row in range(2)] == [1, 4]
    assert [train.picture(row).mode for row in range(3)] == ["RGB", "L", "RGB"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes_crop_to_the_car_if_asked(tmp_path, layout):
    layout(tmp_path / "cars196")
    assert cars.load("train", tmp_path).boxes is None
    images = cars.load("train", tmp_path, boxes=True)
    assert images.boxes.tolist() == [[1, 1, 5, 4], [2, 1, 8, 6], [0, 1, 4, 5]]
    assert images.picture(0).size == (4, 3)


def test_the_genuine_counts():
    assert GENUINE == {"train": (8054, 98), "test": (8131, 98)}


def test_one_annotation_is_read_too(tmp_path):
    write_mat(tmp_path / "one.mat", "fname", [("a.jpg", 7, (0, 0, 1, 1))])
    names, labels, boxes = cars._annotations(tmp_path / "one.mat", "fname")
    assert (names, labels.tolist(), boxes.tolist()) == (["a.jpg"], [7], [[0, 0, 1, 1]])


@pytest.mark.parametrize(
    ("layout", "gone", "message"),
    [
        (one_list, "car_ims/000003.jpg", r"car_ims/000003\.jpg is missing \(1 of 3"),
        (devkit, "cars_test_annos_withlabels.mat", r"cars_test_annos_withlabels\.mat .*is missing; wanted the classes"),
        (devkit, "cars_test/00001.jpg", r"cars_test/00001\.jpg is missing \(1 of 3"),
        (kaggle, "anno_test.csv", r"anno_test\.csv is missing"),
        (kaggle, "car_data/car_data/train/Model 1/00001.jpg", r"train/00001\.jpg is missing \(1 of 3"),
    ],
)
def test_what_is_missing_is_named(tmp_path, layout, gone, message):
    layout(tmp_path / "cars196")
    (tmp_path / "cars196" / gone).unlink()
    with pytest.raises(FileError, match=message):
        cars.load("train", tmp_path)


def test_other_counts_are_refused(tmp_path, monkeypatch):
    one_list(tmp_path / "cars196")
    monkeypatch.setattr(cars, "EXPECTED", {"train": Count(8054, 98), "test": Count(8131, 98)})
    with pytest.raises(FileError, match="names 3 images of 2 classes; wanted 8,054 of 98"):
        cars.load("train", tmp_path)


def test_a_damaged_annotation_file_is_named(tmp_path):
    one_list(tmp_path / "cars196")
    whole = (tmp_path / "cars196/cars_annos.mat").read_bytes()
    (tmp_path / "cars196/cars_annos.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"cars_annos\.mat cannot be read as \.mat"):
        cars.load("train", tmp_path)


def test_a_csv_of_other_columns_is_refused(tmp_path):
    kaggle(tmp_path / "cars196")
    write_text(tmp_path / "cars196/anno_train.csv", "00001.jpg,1\n")
    with pytest.raises(FileError, match="lines of other than 6 columns"):
        cars.load("train", tmp_path)


def test_a_wrong_root(tmp_path):
    with pytest.raises(FileError, match=r"cars is not under .*cars196/cars_annos\.mat"):
        cars.load("train", tmp_path)
