"""CUB-200-2011: 11,788 photographs of 200 kinds of birds; the first hundred train, the others test.

    CUB_200_2011/images.txt              1 001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg
    CUB_200_2011/image_class_labels.txt  1 1
    CUB_200_2011/images/...

train_test_split.txt divides every class and is of no use here.
"""

from collections.abc import Collection
from os import PathLike
from pathlib import Path

import numpy as np

from entourage.data.download import Archive
from entourage.data.files import ImageFiles
from entourage.data.layout import (
    Count,
    check_counts,
    check_present,
    check_split,
    dataset_folder,
    read_columns,
    whole_numbers,
)
from entourage.errors import FileError

__all__ = ["load"]

TITLE = "CUB-200-2011, birds"
EXPECTED = {"train": Count(5864, 100), "test": Count(5924, 100)}
FOLDERS = ("CUB_200_2011", "cub", "CUB")
HOME = "https://data.caltech.edu/records/65de6-vp158"
# The address is that of the record at CaltechDATA, and the one pytorch-metric-learning fetches; the MD5 is the one that
# loaders such as github.com/TDeVries/cub2011_dataset state; the size is the one tensorflow_datasets records.
ARCHIVES = (
    Archive(
        "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
        size=1_150_585_339,
        checksum="md5:97eceeb196236b17998738112f37df78",
        folder="CUB_200_2011",
        to="CUB_200_2011",
    ),
)

_LAST_OF_TRAIN = 100


def load(split: str, root: str | PathLike[str] | None = None, *, boxes: bool = False) -> ImageFiles:
    """Load a split, in the order of the image ids.

    Parameters
    ----------
    split : str
        train or test.
    root : path-like, optional
        The folder the dataset is under; default: the one ENTOURAGE_DATA names.
    boxes : bool
        Whether pictures are cropped to the bird.

    Returns
    -------
    ImageFiles
        Labels are the class ids 1..200.
    """
    check_split(split, EXPECTED, "cub")
    folder = dataset_folder(root, "cub", FOLDERS, ("images.txt",))
    names = _by_id(folder / "images.txt", ("image_id", "image_name"))
    classes = _by_id(folder / "image_class_labels.txt", ("image_id", "class_id"), keys=names)
    labels = whole_numbers(folder / "image_class_labels.txt", (classes[image][0] for image in names))
    chosen = np.flatnonzero((labels <= _LAST_OF_TRAIN) == (split == "train"))
    check_counts(folder / "images.txt", labels[chosen], EXPECTED[split])
    images = ImageFiles(
        folder,
        np.array([f"images/{name}" for (name,) in names.values()]),
        labels,
        boxes=_boxes(folder, names) if boxes else None,
    ).take(chosen)
    check_present(folder, images.names.tolist())
    return images


def _by_id(path: Path, columns: tuple[str, ...], keys: Collection[str] = ()) -> dict[str, list[str]]:
    """The lines of a file by their image id; one for each of the keys, if any are given."""
    rows = {row[0]: row[1:] for row in read_columns(path, columns)}
    missing = [key for key in keys if key not in rows]
    if missing:
        raise FileError(
            f"{path} has no line for image {missing[0]} ({len(missing):,} of {len(keys):,} are missing); "
            "download it again"
        )
    return rows


def _boxes(folder: Path, names: Collection[str]) -> np.ndarray:
    """(N, 4) left, top, right, bottom of each image; the file has x, y, width, height."""
    path = folder / "bounding_boxes.txt"
    rows = _by_id(path, ("image_id", "x", "y", "width", "height"), keys=names)
    x, y, width, height = np.array([rows[image] for image in names], np.float64).T
    return np.stack([x, y, x + width, y + height], axis=1).astype(np.int64)
