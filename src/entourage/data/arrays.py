"""Pictures in memory."""

from dataclasses import dataclass

import numpy as np

from entourage.errors import InputError
from entourage.values import check_unique, checked_column, set_frozen

__all__ = ["ImageArray"]


@dataclass(frozen=True, eq=False)
class ImageArray:
    """Small grey pictures in memory: pixels (N, H, W) uint8, 0 black to 255 white; labels (N,); ids (N,) text, unique.

    Without ids the rows are numbered "0".."N-1". Like every image set it offers labels, ids, picture(row), take(rows).
    """

    pixels: np.ndarray
    labels: np.ndarray
    ids: np.ndarray | None = None

    def __post_init__(self):
        pixels = np.asarray(self.pixels)
        if pixels.ndim != 3 or pixels.dtype != np.uint8:
            raise InputError(f"pixels are {pixels.dtype} of shape {pixels.shape}; wanted uint8 of (N, H, W)")
        ids = np.arange(len(pixels)) if self.ids is None else checked_column(self.ids, "ids", len(pixels), "image")
        check_unique(ids)
        labels = checked_column(self.labels, "labels", len(pixels), "image")
        set_frozen(self, pixels=pixels, labels=labels, ids=ids.astype(str))

    def __len__(self) -> int:
        return len(self.pixels)

    def picture(self, row: int):
        """One picture as a grey PIL image (mode L)."""
        from PIL import Image

        return Image.fromarray(self.pixels[row])

    def take(self, rows) -> "ImageArray":
        """The given rows, in the given order, with their labels and ids."""
        return ImageArray(self.pixels[rows], self.labels[rows], self.ids[rows])
