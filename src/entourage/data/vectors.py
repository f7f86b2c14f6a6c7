"""A file of existing vectors with their labels: .npy, .npz or .parquet.

Half of the classes, in sorted order, train and the others test, as for a folder of images; the split "all" is the whole
file, which needs no labels.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from entourage.data.folder import divided_classes
from entourage.data.layout import Archives, Expected, check_split
from entourage.errors import InputError
from entourage.stores import read_vectors
from entourage.values import Embeddings

__all__ = ["load", "splits"]

TITLE = "a file of vectors, with labels"
EXPECTED: Expected = {}
ARCHIVES: Archives = ()


def load(
    split: str,
    root: str | PathLike[str] | None = None,
    *,
    labels: str | Path | None = None,
    train_share: float = 0.5,
    exclusions: bool = True,
    id_column: str | None = None,
    label_column: str | None = None,
) -> Embeddings:
    """Load a split of a file of vectors, in its order.

    Parameters
    ----------
    split : str
        train, test, or "all".
    root : path-like
        The file.
    labels : str or Path, optional
        A file of labels, or the name of a column; default: the file's own.
    train_share : float
        Share of the classes, in sorted order, that train.
    exclusions : bool
        Whether to read the columns camera and sequence, if there are any.
    id_column, label_column : str, optional
        The columns of ids and labels, if they have other names than usual.

    Returns
    -------
    Embeddings
        The vectors, scaled to length 1.
    """
    if root is None:
        raise InputError("vectors are read from a file but none is given; wanted its path in place of the name")
    path = Path(root)
    check_split(split, (*splits(path), "all"), str(path))
    items = read_vectors(path, labels=labels, exclusions=exclusions, id_column=id_column, label_column=label_column)
    if split == "all":
        return items
    if items.labels is None:
        raise InputError(
            f"{path} has no labels of its own; wanted one for each vector: name their column with --label-column, or "
            "their file with --data-option labels=FILE"
        )
    trained, tested = divided_classes(path, np.unique(items.labels).tolist(), train_share)
    return items.take(np.flatnonzero(np.isin(items.labels, trained if split == "train" else tested)))


def splits(root: str | PathLike[str] | None = None, **options: Any) -> tuple[str, ...]:
    """The splits of any file of vectors: train and test.

    Parameters
    ----------
    root : path-like, optional
        The file, which is not read.
    **options
        Options of `load`, which are ignored.

    Returns
    -------
    tuple of str
        Their names, train first.
    """
    return "train", "test"
