"""Datasets by name, one module each, and folders and tables of images by their path.

A module offers load(split, root=None, **options) -> an image set, TITLE, EXPECTED (the counts of its splits),
HOME and PUT (where to get it and where to put it) and ARCHIVES (what can be fetched).

Pictures are loaded as an image set (image_set.ImageSet): arrays.ImageArray in memory or files.ImageFiles on disk. A
file of vectors is loaded as values.Embeddings, which have vectors instead of pictures.
"""

import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from entourage.data.arrays import ImageArray
from entourage.data.files import ImageFiles
from entourage.errors import EntourageError, EntourageWarning, FileError, InputError
from entourage.runtime.config import check_known, check_name, check_options
from entourage.runtime.progress import Progress
from entourage.values import Embeddings

__all__ = ["COLUMNS", "DATASETS", "NAMED", "check_option_names", "describe", "get", "load", "splits"]

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
NAMED = [name for name in DATASETS if name not in _BY_PATH]
_OF_VECTORS = (".npy", ".npz", ".parquet")
COLUMNS = ("path_column", "label_column", "id_column")  # options of what has named columns
_LIMIT = "max_classes"
_FOR_PROGRAMS = ("images_root", "progress")  # what a loader takes from the functions here, and nobody sets by name


def load(
    name_or_path: str | PathLike[str], split: str, root: str | PathLike[str] | None = None, **options: Any
) -> ImageArray | ImageFiles | Embeddings:
    """Load a split of a dataset, a folder, a .csv or a file of vectors.

    Parameters
    ----------
    name_or_path : str or path-like
        A name in `DATASETS`, or a path.
    split : str
        One of `splits`, or "all" of what is read by its path.
    root : path-like, optional
        Where a dataset is looked for, by default the folder ENTOURAGE_DATA names; where the paths in a .csv start from,
        by default its own folder.
    **options
        Options of the module that loads it, and max_classes: so many classes of the split alone, evenly over the sorted
        ones; of a gallery, those that the queries have then.

    Returns
    -------
    ImageArray, ImageFiles or Embeddings
        Pictures in memory, pictures on disk, or vectors.

    Examples
    --------
    >>> len(load("glyphs", "test", per_class=2, max_classes=3))
    6
    """
    module, where = _module_and_place(name_or_path, root)
    limit = _limit(module, options)
    _check_options(name_or_path, module, options)
    items = module.load(split, **where, **options)
    if limit is None:
        return items
    from entourage.data.selection import some_classes

    queries = items if split != "gallery" else module.load("query", **where, **options)
    return some_classes(items, limit, queries)


def check_option_names(options: Mapping[str, Any]) -> None:
    """Raise InputError for options that are arguments of their own in `load`: where the data are, and which split."""
    for name in ("name_or_path", "root", "split"):
        if name in options:
            raise InputError(f"{name} is given as an option of the dataset ({options[name]!r}); it has one of its own")


def splits(
    name_or_path: str | PathLike[str], root: str | PathLike[str] | None = None, **options: Any
) -> tuple[str, ...]:
    """The splits of a dataset, a folder, a .csv or a file of vectors.

    Parameters
    ----------
    name_or_path, root, **options
        As in `load`.

    Returns
    -------
    tuple of str
        train and test, or train, query and gallery.

    Examples
    --------
    >>> splits("glyphs"), splits("in_shop")
    (('train', 'test'), ('train', 'query', 'gallery'))
    """
    module, where = _module_and_place(name_or_path, root)
    _limit(module, options)
    _check_options(name_or_path, module, options)
    return module.splits(**where, **options) if hasattr(module, "splits") else tuple(module.EXPECTED)


def describe(root: str | PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Describe each dataset, and whether it is present.

    Parameters
    ----------
    root : path-like, optional
        Where datasets are looked for; default: the folder ENTOURAGE_DATA names.

    Returns
    -------
    list of dict
        One for each dataset, with name, title, splits (and their counts), fetched (whether it can be), present, state
        and note. The state is "built in", "whole" or "a selection" (present is True), "absent" or "incomplete" (False),
        or "any place" (None).
    """
    if root is not None and not Path(root).is_dir():
        raise FileError(f"the folder {root} does not exist; check the root of the data")
    return [_row(name, root) for name in DATASETS]


def get(name: str, root: str | PathLike[str] | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """Download a dataset, unless it is present.

    Parameters
    ----------
    name : str
        A name in `DATASETS`.
    root : path-like, optional
        The folder to put it in; default: the one ENTOURAGE_DATA names. It is made if it does not exist, with a warning,
        but not the folders above it, where a mistyped path would lead.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    dict
        The entry of `describe` for it, after the download.
    """
    from entourage.data.download import fetch
    from entourage.data.layout import data_root, root_of

    module = _named(name)
    if name == _BUILT_IN or name in _BY_PATH:
        raise InputError(f"{name} is {_row(name, root)['note']}; there is nothing to fetch")
    folder = root_of(root, name)
    if folder.exists() or not folder.parent.is_dir():
        data_root(folder, name)  # refuses a file, and a place that is not there
    row = _row(name, folder)
    if row["present"]:
        return row
    if not module.ARCHIVES:
        raise FileError(
            f"{name} cannot be downloaded automatically; get it at {module.HOME} and put it so that {folder} holds "
            f"{module.PUT}"
        )
    if not folder.exists():
        folder.mkdir()
        warnings.warn(
            f"the folder {folder.absolute()} did not exist and has been created", EntourageWarning, stacklevel=2
        )
    places = [fetch(archive, folder, progress) for archive in module.ARCHIVES]
    row = _row(name, folder)
    if not row["present"]:
        raise FileError(f"{row['note']} (to download it again, move {places[0]} away and run this again)")
    return row


def _module_and_place(
    name_or_path: str | PathLike[str], root: str | PathLike[str] | None
) -> tuple[ModuleType, dict[str, Any]]:
    """The module that reads it, and the arguments that say from where."""
    name = os.fspath(name_or_path)
    is_a_path = name in _BY_PATH and root is None and Path(name).exists()  # a folder that is called `folder`
    if name in DATASETS and not is_a_path:
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
    check_known(name, NAMED, "the dataset", otherwise="a folder, a .csv or a file of vectors that exists")
    return _named(name), {"root": root}


def _limit(module: ModuleType, options: dict[str, Any]) -> int | None:
    """The option max_classes, taken out of the options, unless the loader itself has it."""
    return None if _LIMIT in signature(module.load).parameters else options.pop(_LIMIT, None)


def _check_options(name: str | PathLike[str], module: ModuleType, options: dict[str, Any]) -> None:
    """Refuse an option that the loader does not have, or whose value is of another type than it declares."""
    takes = [each.name for each in signature(module.load).parameters.values() if each.kind is each.KEYWORD_ONLY]
    known = [each for each in takes if each not in _FOR_PROGRAMS]
    chosen = {each: value for each, value in options.items() if not (each in takes and callable(value))}  # progress
    for option, value in chosen.items():
        if option in COLUMNS and option not in known:
            raise InputError(f"{option} is {value!r}, but there are no such columns in {name}; leave it out")
        check_name(option, known, "option", f"of {name}")
    check_options(module.load, chosen)


def _named(name: str) -> ModuleType:
    if name not in DATASETS:
        check_known(name, NAMED, "the dataset")
    return import_module(DATASETS[name])


def _row(name: str, root: str | PathLike[str] | None) -> dict[str, Any]:
    module = _named(name)
    counts = {split: count._asdict() for split, count in module.EXPECTED.items()}
    row = {"name": name, "title": module.TITLE, "splits": counts, "fetched": bool(module.ARCHIVES)}
    if name == _BUILT_IN:
        return row | {"present": True, "state": "built in", "note": "built in"}
    if name in _BY_PATH:
        return row | {"present": None, "state": "any place", "note": "read from any folder, by its path"}
    return row | _state(module, root)


def _state(module: ModuleType, root: str | PathLike[str] | None) -> dict[str, Any]:
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
