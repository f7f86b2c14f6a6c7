"""Cars196: 16,185 photographs of 196 models of cars; the first 98 train, the others test. Three layouts are around.

    cars_annos.mat, car_ims/                                                            one list for all
    devkit/cars_train_annos.mat, cars_test_annos_withlabels.mat, cars_train/, cars_test/
    anno_train.csv, anno_test.csv, car_data/{train,test}/MODEL/                         as on Kaggle

The two halves of the last two divide every class; they are put together here and split by class. Some
pictures are grey.
"""

import csv
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import numpy as np

from entourage.data.files import ImageFiles
from entourage.data.layout import (
    Archives,
    Count,
    check_counts,
    check_present,
    check_split,
    dataset_folder,
    first_existing,
    read_text,
    whole_numbers,
)
from entourage.errors import FileError
from entourage.stores.reading import readable

__all__ = ["load"]

TITLE = "Cars196 (Stanford Cars)"
EXPECTED = {"train": Count(8_054, 98), "test": Count(8_131, 98)}
FOLDERS = ("cars196", "CARS196", "Cars196", "cars", "stanford_cars", "stanford-cars")
HOME = "https://ai.stanford.edu/~jkrause/cars/car_dataset.html (if it is down: github.com/pytorch/vision/issues/7545)"
PUT = "cars196/cars_annos.mat and cars196/car_ims/ (or devkit/, cars_train/ and cars_test/; or Kaggle's car_data/)"
ARCHIVES: Archives = ()

Annotations = tuple[list[str], np.ndarray, np.ndarray]
"""Names, classes (N,) and boxes (N, 4)."""

_LAST_OF_TRAIN = 98
_HALVES = ("train", "test")
_CORNERS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")


def load(split: str, root: str | PathLike[str] | None = None, *, boxes: bool = False) -> ImageFiles:
    """Load a split, in the order of the annotations.

    Parameters
    ----------
    split : str
        train or test.
    root : path-like, optional
        The folder the dataset is under; default: the one ENTOURAGE_DATA names.
    boxes : bool
        Whether pictures are cropped to the car.

    Returns
    -------
    ImageFiles
        Labels are the class numbers 1..196.
    """
    check_split(split, EXPECTED, "cars")
    marks = tuple(mark for layout in _LAYOUTS for mark in layout)
    folder = dataset_folder(root, "cars", FOLDERS, marks)
    layout = next(layout for layout in _LAYOUTS if any((folder / mark).exists() for mark in layout))
    names, labels, corners = _LAYOUTS[layout](folder)
    chosen = np.flatnonzero((labels <= _LAST_OF_TRAIN) == (split == "train"))
    check_counts(f"{folder}, {split},", labels[chosen], EXPECTED[split])
    images = ImageFiles(folder, np.array(names), labels, boxes=corners if boxes else None).take(chosen)
    check_present(folder, images.names.tolist())
    return images


def _one_list(folder: Path) -> Annotations:
    return _annotations(folder / "cars_annos.mat", "relative_im_path")


def _devkit(folder: Path) -> Annotations:
    lists = {
        "train": ("devkit/cars_train_annos.mat", "cars_train_annos.mat"),
        "test": ("cars_test_annos_withlabels.mat", "devkit/cars_test_annos_withlabels.mat"),
    }
    halves = []
    for half in _HALVES:
        path = first_existing(folder, lists[half], "the classes of its images, which cars_test_annos.mat leaves out")
        pictures = _below(folder, (f"cars_{half}/cars_{half}", f"cars_{half}"))
        names, labels, corners = _annotations(path, "fname")
        halves.append(([f"{pictures}/{name}" for name in names], labels, corners))
    return _joined(halves)


def _kaggle(folder: Path) -> Annotations:
    halves = []
    for half in _HALVES:
        path = folder / f"anno_{half}.csv"
        rows = [row for row in csv.reader(read_text(path).splitlines()) if row]
        if any(len(row) != 6 for row in rows):
            raise FileError(
                f"{path} has lines of other than 6 columns; wanted file, x1, y1, x2, y2, class: get it again"
            )
        pictures = _below(folder, (f"car_data/car_data/{half}", f"car_data/{half}", half))
        # One folder a model; file names are unique, and safer than model names ("Ram C/V" is a folder "Ram C-V").
        where = {file.name: file.relative_to(folder).as_posix() for file in (folder / pictures).glob("*/*")}
        names = [where.get(row[0], f"{pictures}/{row[0]}") for row in rows]
        numbers = whole_numbers(path, (cell for row in rows for cell in row[1:])).reshape(-1, 5)
        halves.append((names, numbers[:, 4], numbers[:, :4]))
    return _joined(halves)


# What gives each layout away, and its reader.
_LAYOUTS: dict[tuple[str, ...], Callable[[Path], Annotations]] = {
    ("cars_annos.mat",): _one_list,
    ("devkit/cars_train_annos.mat", "cars_train_annos.mat", "cars_test_annos_withlabels.mat"): _devkit,
    ("anno_train.csv", "anno_test.csv"): _kaggle,
}


def _annotations(path: Path, name_field: str) -> Annotations:
    """Names, classes (N,) and boxes (N, 4) of a MATLAB file with an array of structs."""
    from scipy.io import loadmat

    with readable(path):
        table = np.atleast_1d(loadmat(path, squeeze_me=True)["annotations"])
        corners = np.stack([table[corner].astype(np.int64) for corner in _CORNERS], axis=1)
        return [str(name) for name in table[name_field]], table["class"].astype(np.int64), corners


def _below(folder: Path, choices: tuple[str, ...]) -> str:
    return first_existing(folder, choices, "a folder of images").relative_to(folder).as_posix()


def _joined(halves: list[Annotations]) -> Annotations:
    names, labels, corners = zip(*halves, strict=True)
    return [name for half in names for name in half], np.concatenate(labels), np.concatenate(corners)
