"""Omniglot: 1,623 handwritten characters of 50 alphabets, drawn by 20 people each.

    omniglot/images_background/Greek/character01/0394_01.png     30 alphabets train
    omniglot/images_evaluation/Manipuri/character01/0994_01.png  20 other alphabets test
    omniglot/images/CLASS/...                                    or a part of it, one folder per class

The second form is read as any folder of images: half of the classes train, and no count is checked.
"""

import os
from os import PathLike
from pathlib import Path

import numpy as np

from entourage.data import folder as class_folders
from entourage.data.download import Archive
from entourage.data.files import ImageFiles
from entourage.data.layout import (
    Count,
    NotFound,
    check_counts,
    check_split,
    data_root,
    is_image_name,
    warn_of_shared_classes,
)
from entourage.errors import FileError, InputError

__all__ = ["load"]

TITLE = "Omniglot, handwritten characters"
EXPECTED = {"train": Count(19_280, 964), "test": Count(13_180, 659)}
FOLDERS = ("omniglot", "omniglot-py", "omniglot/python", "Omniglot")
HOME = "https://github.com/brendenlake/omniglot"
_ADDRESS = "https://github.com/brendenlake/omniglot/raw/master/python"
# The addresses are those of the authors' repository; sizes and SHA-256 are the ones tensorflow_datasets records
# (url_checksums/omniglot.txt).
ARCHIVES = (
    Archive(
        f"{_ADDRESS}/images_background.zip",
        size=9_464_212,
        checksum="sha256:ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
        folder="images_background",
        to="omniglot/images_background",
    ),
    Archive(
        f"{_ADDRESS}/images_evaluation.zip",
        size=6_462_886,
        checksum="sha256:1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
        folder="images_evaluation",
        to="omniglot/images_evaluation",
    ),
)

_PLACES = {"train": "images_background", "test": "images_evaluation"}


def load(split: str, root: str | PathLike[str] | None = None, *, train_share: float | None = None) -> ImageFiles:
    """Load a split, sorted by alphabet, character and file.

    Parameters
    ----------
    split : str
        train or test.
    root : path-like, optional
        The folder the dataset is under; default: the one ENTOURAGE_DATA names.
    train_share : float, optional
        Share of the classes that train, for the plain form only; default: half.

    Returns
    -------
    ImageFiles
        Labels read "Greek/character01".
    """
    check_split(split, EXPECTED, "omniglot")
    place = data_root(root, "omniglot")
    folder = _original(place)
    if folder is None:
        return class_folders.load(split, _one_folder_a_class(place), train_share=train_share)
    if train_share is not None:
        raise InputError(f"train_share is {train_share} but omniglot comes divided by alphabet; leave it out")
    if not (folder / _PLACES[split]).is_dir():
        raise FileError(
            f"{folder / _PLACES[split]} is missing; wanted {EXPECTED[split].images:,} images: complete the download"
        )
    characters = {each: _characters(folder / place) for each, place in _PLACES.items()}
    warn_of_shared_classes("omniglot", characters["train"], characters["test"])
    names, labels = _pictures(folder, _PLACES[split], characters[split])
    check_counts(folder / _PLACES[split], labels, EXPECTED[split])
    return ImageFiles(folder, names, labels)


def _original(root: Path) -> Path | None:
    places = [root / name for name in FOLDERS] + [root]
    return next((place for place in places for name in _PLACES.values() if (place / name).is_dir()), None)


def _one_folder_a_class(root: Path) -> Path:
    """The plain form: only where the name says it is this dataset, since any folder of folders looks like it."""
    places = [root / name for name in FOLDERS] + ([root] if root.name.lower().startswith("omniglot") else [])
    for place in places:
        if place.is_dir():
            return place / "images" if (place / "images").is_dir() else place
    raise NotFound(
        f"omniglot is not under {root}: wanted {root / FOLDERS[0] / _PLACES['train']}; "
        "check the root, or see `entourage datasets get omniglot`"
    )


def _characters(place: Path) -> list[str]:
    """Every "alphabet/character" folder, sorted."""
    return sorted(character.relative_to(place).as_posix() for character in place.glob("*/*") if character.is_dir())


def _pictures(folder: Path, place: str, characters: list[str]) -> tuple[np.ndarray, np.ndarray]:
    names, labels = [], []
    for character in characters:
        found = sorted(name for name in os.listdir(folder / place / character) if is_image_name(name))
        names += [f"{place}/{character}/{name}" for name in found]
        labels += [character] * len(found)
    return np.array(names, dtype=str), np.array(labels, dtype=str)
