"""Several splits of one dataset as one set of items, and the split that each of them is from."""

import os
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from entourage import data
from entourage.data.arrays import ImageArray
from entourage.data.files import ImageFiles
from entourage.data.image_set import Items, column_of
from entourage.errors import InputError
from entourage.values import Embeddings

__all__ = ["join", "load_splits"]

_COLUMNS: dict[type, tuple[str, ...]] = {
    ImageArray: ("pixels", "labels", "ids"),
    ImageFiles: ("names", "labels", "ids", "boxes", "cameras", "sequences"),
    Embeddings: ("vectors", "labels", "ids", "cameras", "sequences"),
}


def load_splits(
    name_or_path: str | PathLike[str], split: str, root: str | PathLike[str] | None = None, **options: Any
) -> tuple[Items, np.ndarray | None]:
    """Load one split or several.

    Parameters
    ----------
    name_or_path, root, **options
        As in `data.load`.
    split : str
        A split, several with commas between them, or "all": every split of a dataset, or whatever there is in a folder,
        a .csv or a file of vectors.

    Returns
    -------
    items : ImageSet or Embeddings
        N items, split after split.
    splits : ndarray of str, shape (N,), or None
        The split of each item; None where one was asked for.

    Examples
    --------
    >>> items, splits = load_splits("glyphs", "train,test", per_class=1, max_classes=2)
    >>> splits.tolist()
    ['train', 'train', 'test', 'test']
    """
    names = [name.strip() for name in split.split(",")]
    if names == ["all"] and os.fspath(name_or_path) in data.NAMED:
        names = list(data.splits(name_or_path, root, **options))
    if len(names) == 1:
        return data.load(name_or_path, names[0], root, **options), None
    for name in names:
        if not name or name == "all" or names.count(name) > 1:
            raise InputError(f"the split is {split!r}; wanted one, all, or several different ones such as train,test")
    sets = [data.load(name_or_path, name, root, **options) for name in names]
    return join(sets, names), np.repeat(names, list(map(len, sets)))


def join(sets: Sequence[Items], names: Sequence[str]) -> Items:
    """Put sets of one kind, such as splits of a dataset, one behind the other.

    Parameters
    ----------
    sets : sequence of ImageArray, ImageFiles or Embeddings
        All of one kind; files in one folder.
    names : sequence of str
        What they are called, for the message where two of them have an item in common.

    Returns
    -------
    ImageArray, ImageFiles or Embeddings
        With the columns that all of them have.
    """
    seen: dict[Any, str] = {}
    for items, name in zip(sets, names, strict=True):
        for item in np.asarray(items.ids).tolist():
            if item in seen:
                raise InputError(
                    f"{item!r} is in both {seen[item]} and {name}; wanted splits without common items in one set: "
                    "load them one by one"
                )
        seen |= dict.fromkeys(np.asarray(items.ids).tolist(), name)
    first = sets[0]
    columns: dict[str, Any] = {
        column: _joined([column_of(items, column) for items in sets]) for column in _COLUMNS[type(first)]
    }
    if isinstance(first, ImageFiles):
        return ImageFiles(first.root, **columns)
    if isinstance(first, Embeddings):
        return Embeddings(**columns, named=first.named)
    return ImageArray(**columns)


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """One column after the other; None where a set lacks it."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
