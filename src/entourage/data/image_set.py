"""The interface of an image set, wherever its pictures come from, and of vectors in its place."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from entourage.values import Embeddings

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ImageSet", "Items", "column_of"]


class ImageSet(Protocol):
    """N pictures with ids and, where known, labels; ImageArray holds them in memory, ImageFiles names files.

    A set may have further columns, (N,) each: cameras and sequences, which say what must not count as found (see
    `column_of`). One whose pictures are in memory has `pixels` (N, H, W).
    """

    @property
    def labels(self) -> np.ndarray | None:
        """(N,) the class of each picture, integers or text; None if not known."""

    @property
    def ids(self) -> np.ndarray:
        """(N,) text, unique."""

    def __len__(self) -> int: ...

    def picture(self, row: int) -> "Image":
        """One picture, upright, grey (mode L) or in colour (RGB); raises CorruptImage if it cannot be decoded."""

    def take(self, rows: Any) -> "ImageSet":
        """The given rows (n,), in the given order, with all that is known of them."""


Items = ImageSet | Embeddings
"""What an encoder is trained on, or embeds: pictures, or vectors in their place."""


def column_of(items: Items, name: str) -> np.ndarray | None:
    """Return a column that only some sets have.

    Parameters
    ----------
    items : ImageSet or Embeddings
        N items.
    name : str
        labels, ids, cameras, sequences, boxes, pixels or vectors.

    Returns
    -------
    ndarray, shape (N, ...), or None
        None if this set has no such column.
    """
    return getattr(items, name, None)
