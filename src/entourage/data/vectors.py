"""A file of vectors that exist already, with their labels: .npy, .npz or .parquet.

Half of the classes, in sorted order, train and the others test, as for a folder of images; the split "all" is the whole
file, which needs no labels.
"""

from pathlib import Path

import numpy as np

from entourage.data.folder import divided_classes
from entourage.data.layout import check_split
from entourage.errors import InputError
from entourage.stores import read_vectors
from entourage.values import Embeddings

__all__ = ["load", "splits"]

TITLE = "a file of vectors, with labels"
EXPECTED = {}
ARCHIVES = ()


def load(
    split: str, root=None, *, labels: str | Path | None = None, train_share: float = 0.5, exclusions: bool = True
) -> Embeddings:
    """A split of the file at `root`, in its order. labels: a file, or the name of a column; default: its own.

    `train_share` of the classes train. exclusions: read the columns camera and sequence, if there are any.
    """
    if root is None:
        raise InputError("vectors are read from a file but none is given; wanted its path in place of the name")
    path = Path(root)
    check_split(split, (*splits(path), "all"), str(path))
    items = read_vectors(path, labels=labels, exclusions=exclusions)
    if split == "all":
        return items
    if items.labels is None:
        raise InputError(f"{path} has no labels of its own; wanted one per vector: name them with the option labels")
    trained, tested = divided_classes(path, np.unique(items.labels).tolist(), train_share)
    return items.take(np.flatnonzero(np.isin(items.labels, trained if split == "train" else tested)))


def splits(root=None, **options) -> tuple[str, ...]:
    return "train", "test"
