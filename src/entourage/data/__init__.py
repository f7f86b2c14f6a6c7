"""Datasets by name, one module each, and folders and tables of images by their path.

A module offers load(split, root=None, **options) -> an image set, TITLE, EXPECTED (the counts of its splits),
HOME and PUT (where to get it and where to put it) and ARCHIVES (what can be fetched).

An image set has len(), labels (N,), ids (N,) of text, picture(row) -> a PIL image, take(rows) -> an image set.
Two kinds: arrays.ImageArray in memory, files.ImageFiles on disk. A file of vectors is loaded as values.Embeddings,
which have vectors instead of pictures.
"""

import os
import warnings
from importlib import import_module
from inspect import signature
from pathlib import Path

from entourage.data.arrays import ImageArray
from entourage.data.files import ImageFiles
from entourage.errors import EntourageError, EntourageWarning, FileError, InputError
from entourage.runtime.config import check_known, check_options
from entourage.values import Embeddings

__all__ = ["DATASETS", "describe", "get", "load", "splits"]

DATASETS = {
    "cars": "entourage.data.sets.cars",
    "csv": "entourage.data.csv_table",
    "cub": "entourage.data.sets.cub",
    "folder": "entourage.data.folder",
    "glyphs": "entourage.data.sets.glyphs",
    "in_shop": "entourage.data.sets.in_shop",
    "market1501": "entourage.data.sets.market1501",
    "omniglot": "entourage.data.sets.omniglot",
    "sop": "entourage.data.sets.sop",
    "vectors": "entourage.data.vectors",
}
_BUILT_IN = "glyphs"
_BY_PATH = ("csv", "folder", "vectors")
_NAMED = [name for name in DATASETS if name not in _BY_PATH]
_OF_VECTORS = (".npy", ".npz", ".parquet")


def load(name_or_path, split: str, root=None, **options) -> ImageArray | ImageFiles | Embeddings:
    """A split of a dataset, a folder, a .csv or a file of vectors; the options are those of its module.

    A dataset is looked for under `root`, by default the folder ENTOURAGE_DATA names. The paths in a .csv start from
    `root`, by default its own folder.

    >>> len(load("glyphs", "test", per_class=2, max_classes=3))
    6
    """
    module, where = _module_and_place(name_or_path, root)
    _check_options(name_or_path, module, options)
    return module.load(split, **where, **options)


def splits(name_or_path, root=None, **options) -> tuple[str, ...]:
    """The splits there are: train and test, or train, query and gallery.

    >>> splits("glyphs"), splits("in_shop")
    (('train', 'test'), ('train', 'query', 'gallery'))
    """
    module, where = _module_and_place(name_or_path, root)
    return module.splits(**where, **options) if hasattr(module, "splits") else tuple(module.EXPECTED)


def describe(root=None) -> list[dict]:
    """A row for each dataset: name, title, splits with their counts, its state under the root, and a note on that.

    The state is built in, whole, a selection (present); absent, incomplete (not); any place (neither).
    """
    if root is not None and not Path(root).is_dir():
        raise FileError(f"the folder {root} does not exist; check the root of the data")
    return [_row(name, root) for name in DATASETS]


def get(name: str, root=None, progress=None) -> dict:
    """Fetch a dataset to a folder under the root, unless it is there; its row as in `describe`.

    A root that does not exist is made, with a warning; not the folders above it, where a mistyped path would lead.
    """
    from entourage.data.download import fetch
    from entourage.data.layout import data_root, root_of

    module = _named(name)
    if name == _BUILT_IN or name in _BY_PATH:
        raise InputError(f"{name} is {_row(name, root)['note']}; there is nothing to fetch")
    root = root_of(root, name)
    if root.exists() or not root.parent.is_dir():
        data_root(root, name)  # refuses a file, and a place that is not there
    row = _row(name, root)
    if row["present"]:
        return row
    if not module.ARCHIVES:
        raise FileError(
            f"{name} has no address to fetch it from: get it at {module.HOME} "
            f"and put it so that {root} holds {module.PUT}"
        )
    if not root.exists():
        root.mkdir()
        warnings.warn(f"the folder {root.absolute()} did not exist and is made", EntourageWarning, stacklevel=2)
    places = [fetch(archive, root, progress) for archive in module.ARCHIVES]
    row = _row(name, root)
    if not row["present"]:
        raise FileError(f"{row['note']} (to fetch it anew, move {places[0]} away and run this again)")
    return row


def _module_and_place(name_or_path, root):
    """The module that reads it, and the arguments that say from where."""
    name = os.fspath(name_or_path)
    if name in DATASETS:
        return _named(name), {} if name == _BUILT_IN else {"root": root}
    path = Path(name)
    if path.suffix.lower() == ".csv":
        return _named("csv"), {"root": path, "images_root": root}
    of_vectors = path.suffix.lower() in _OF_VECTORS
    if of_vectors or path.is_dir():
        if root is not None:
            raise InputError(
                f"root is {root} but {path} is a {'file' if of_vectors else 'folder'} itself; leave root out"
            )
        return _named("vectors" if of_vectors else "folder"), {"root": path}
    check_known(name, _NAMED, "the dataset", otherwise="a folder, a .csv or a file of vectors that exists")


def _check_options(name, module, options: dict) -> None:
    """Refuse what the loader does not declare with a type; without one it is for programs, such as a progress."""
    takes = [each for each in signature(module.load).parameters.values() if each.kind is each.KEYWORD_ONLY]
    known = [each.name for each in takes if each.annotation is not each.empty]
    called = [each.name for each in takes if callable(options.get(each.name))]
    for option in [each for each in options if each not in known + called]:
        check_known(option, known, f"an option of {name}")
    check_options(module.load, options)


def _named(name: str):
    if name not in DATASETS:
        check_known(name, _NAMED, "the dataset")
    return import_module(DATASETS[name])


def _row(name: str, root) -> dict:
    module = _named(name)
    counts = {split: count._asdict() for split, count in module.EXPECTED.items()}
    row = {"name": name, "title": module.TITLE, "splits": counts, "fetched": bool(module.ARCHIVES)}
    if name == _BUILT_IN:
        return row | {"present": True, "state": "built in", "note": "built in"}
    if name in _BY_PATH:
        return row | {"present": None, "state": "any place", "note": "read from any place, by its path"}
    return row | _state(module, root)


def _state(module, root) -> dict:
    """Whether every split loads from the root, with the counts it should have; and if not, why."""
    from entourage.data.layout import NotFound

    seen = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EntourageWarning)
        try:
            for split in module.EXPECTED:
                seen[split] = len(module.load(split, root))
        except EntourageError as error:
            state = "absent" if isinstance(error, NotFound) else "incomplete"
            return {"present": False, "state": state, "note": str(error)}
    found = ", ".join(f"{split} {count:,}" for split, count in seen.items())
    whole = all(seen[split] == count.images for split, count in module.EXPECTED.items())
    return {"present": True, "state": "whole" if whole else "a selection", "note": found}
