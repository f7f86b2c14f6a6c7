"""Any folder of images, one folder per class.

    FOLDER/robin/1.jpg                  half of the classes, in sorted order, train and the others test
    FOLDER/train/robin/1.jpg            or the folder says so itself: train/ and test/,
    FOLDER/test/wren/2.jpg              or train/, query/ and gallery/

A picture may lie anywhere below the folder of its class. Its label is the name of that folder. The split "all" is every
picture of every class, to be embedded; there a folder may also hold pictures alone, which then have no labels.
"""

import os
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from entourage.data.files import ImageFiles
from entourage.data.layout import (
    IMAGE_SUFFIXES,
    Archives,
    Expected,
    check_split,
    data_root,
    is_image_name,
    warn_of_shared_classes,
    warn_of_unreadable,
)
from entourage.errors import EntourageWarning, FileError, InputError

__all__ = ["divided_classes", "load", "splits", "warn_of_single_images"]

TITLE = "a folder of images, one folder per class"
EXPECTED: Expected = {}
ARCHIVES: Archives = ()

_OWN_SPLITS = (("train", "query", "gallery"), ("train", "test"))


def load(split: str, root: str | PathLike[str] | None = None, *, train_share: float | None = None) -> ImageFiles:
    """Load a split of a folder, sorted by class and file.

    Parameters
    ----------
    split : str
        One of `splits`, or "all" for every picture.
    root : path-like, optional
        The folder; default: the one ENTOURAGE_DATA names.
    train_share : float, optional
        Share of the classes that train, where the folder has no splits of its own; default: half.

    Returns
    -------
    ImageFiles
        Labels are the names of the classes' folders.
    """
    folder = data_root(root, "a folder of images")
    own = _own_splits(folder)
    check_split(split, (*splits(folder), "all"), str(folder))
    if split == "all":
        return _whole(folder, own)
    if own:
        if train_share is not None:
            raise InputError(f"train_share is {train_share} but {folder} has a folder for each split; leave it out")
        by_split = {each: _files_by_class(folder / each) for each in own}
        tested_classes = {label for each in own if each != "train" for label in by_split[each]}
        warn_of_shared_classes(folder, list(by_split["train"]), list(tested_classes))
        return _as_images(folder, f"{split}/", by_split[split], split)
    files = _files_by_class(folder)
    trained, tested = divided_classes(folder, sorted(files), 0.5 if train_share is None else train_share)
    chosen = trained if split == "train" else tested
    return _as_images(folder, "", {label: files[label] for label in chosen}, split)


def splits(root: str | PathLike[str] | None = None, **options: Any) -> tuple[str, ...]:
    """The splits of a folder: train and test, or train, query and gallery.

    Parameters
    ----------
    root : path-like, optional
        The folder; default: the one ENTOURAGE_DATA names.
    **options
        Options of `load`, which are ignored.

    Returns
    -------
    tuple of str
        Their names, train first.
    """
    return _own_splits(data_root(root, "a folder of images")) or ("train", "test")


def warn_of_single_images(where: str | PathLike[str], labels: np.ndarray, split: str) -> None:
    """Warn of classes with one image, of which nothing can be found.

    Parameters
    ----------
    where : path-like
        What the warning names.
    labels : ndarray, shape (N,)
        The class of each image of the split.
    split : str
        Its name.
    """
    classes, counts = np.unique(labels, return_counts=True)
    single = classes[counts == 1]
    if len(single):
        warnings.warn(
            f"{where} has {len(single):,} of {len(classes):,} classes with only one image in {split}, the first is "
            f"{single[0].item()!r}; no other image of such a class can be found: add images or leave the class out",
            EntourageWarning,
            stacklevel=4,
        )


def _whole(folder: Path, own: tuple[str, ...]) -> ImageFiles:
    """Every picture, whatever it is for."""
    loose = _loose_files(folder)
    if not own and not _class_names(folder) and any(map(is_image_name, loose)):
        warn_of_unreadable(folder, loose)
        return ImageFiles(folder, np.array([name for name in loose if is_image_name(name)]), None)
    prefixes = [f"{each}/" for each in own] or [""]
    parts = [_as_images(folder, prefix, _files_by_class(folder / prefix), "all") for prefix in prefixes]
    names, labels = (np.concatenate([getattr(part, name) for part in parts]) for name in ("names", "labels"))
    return ImageFiles(folder, names, labels)


def _own_splits(folder: Path) -> tuple[str, ...]:
    for names in _OWN_SPLITS:
        if all((folder / name).is_dir() for name in names):
            return names
    return ()


def _files_by_class(folder: Path) -> dict[str, list[str]]:
    """Every class with its files, relative to the folder; what is left out is told by warnings."""
    below = {label: _files_below(folder, label) for label in _class_names(folder)}
    files = {label: [name for name in found if is_image_name(Path(name).name)] for label, found in below.items()}
    loose = _loose_files(folder)
    warn_of_unreadable(folder, [*loose, *(name for found in below.values() for name in found)])
    empty = [label for label, found in files.items() if not found]
    pictures = [name for name in loose if is_image_name(name)]
    if len(empty) == len(files):
        fix = "sort its pictures so, or embed them with --split all" if pictures and not files else "check the path"
        raise FileError(
            f"{folder} has no folders with images in them; wanted one folder per class, with files such as "
            f"{', '.join(IMAGE_SUFFIXES[:3])}: {fix}"
        )
    if empty:
        _warn(
            f"{folder / empty[0]} holds no image ({len(empty)} such folder{'s' if len(empty) > 1 else ''}) and is left "
            "out; wanted one folder per class"
        )
    if pictures:
        _warn(
            f"{len(pictures):,} pictures of {folder} lie beside the folders of its classes and are left out, the first "
            f"is {pictures[0]}; put each into the folder of its class"
        )
    return {label: found for label, found in files.items() if found}


def _warn(text: str) -> None:
    warnings.warn(text, EntourageWarning, stacklevel=5)


def _class_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _loose_files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())


def _files_below(folder: Path, label: str) -> list[str]:
    """All files of a class in sorted order; hidden folders, of thumbnails for instance, are passed over."""
    found = []
    for place, inner, names in os.walk(folder / label):
        inner[:] = [name for name in inner if not name.startswith(".")]
        inside = Path(place).relative_to(folder).as_posix()
        found += [f"{inside}/{name}" for name in names]
    return sorted(found)


def divided_classes(where: Path, classes: list[Any], share: float) -> tuple[list[Any], list[Any]]:
    """Divide classes into those that train and those that test.

    Parameters
    ----------
    where : Path
        What an error names.
    classes : list
        In order.
    share : float
        The share of them that trains, above 0 and below 1.

    Returns
    -------
    train, test : list
        The first of the classes and the others, one at least of each.
    """
    if not 0 < share < 1:
        raise InputError(f"train_share is {share}; wanted more than 0 and less than 1, as a share of the classes")
    if len(classes) < 2:
        raise FileError(
            f"{where} has 1 class, {classes[0]!r}; wanted two or more classes, to train on some and test on the others"
        )
    count = min(max(int(len(classes) * share + 1e-9), 1), len(classes) - 1)  # 0.29 * 100 is a little less than 29
    return classes[:count], classes[count:]


def _as_images(folder: Path, prefix: str, files: dict[str, list[str]], split: str) -> ImageFiles:
    names = [prefix + name for found in files.values() for name in found]
    labels = np.repeat(list(files), [len(found) for found in files.values()])
    if split in ("train", "test"):  # a query's match is in the gallery
        warn_of_single_images(folder, labels, split)
    return ImageFiles(folder, np.array(names), labels)
