"""Pictures in memory."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.errors import InputError
from entourage.values import brief, check_unique, checked_column, set_frozen

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ImageArray"]


@dataclass(frozen=True, eq=False)
class ImageArray:
    """An image set of small grey pictures in memory."""

    pixels: np.ndarray
    """(N, H, W) uint8, from 0, black, to 255, white."""
    labels: np.ndarray
    """(N,) the class of each, integers or text."""
    ids: np.ndarray = None  # type: ignore[assignment]  # an array once it is built
    """(N,) text, unique; by default the rows as text, "0".."N-1"."""

    __repr__ = brief

    def __post_init__(self) -> None:
        pixels = np.asarray(self.pixels)
        if pixels.ndim != 3 or pixels.dtype != np.uint8:
            raise InputError(f"pixels are {pixels.dtype} of shape {pixels.shape}; wanted uint8 of (N, H, W)")
        ids = np.arange(len(pixels)) if self.ids is None else checked_column(self.ids, "ids", len(pixels), "image")
        check_unique(ids)
        labels = checked_column(self.labels, "labels", len(pixels), "image")
        set_frozen(self, pixels=pixels, labels=labels, ids=ids.astype(str))

    def __len__(self) -> int:
        return len(self.pixels)

    def picture(self, row: int) -> "Image":
        """One picture as a grey PIL image (mode L)."""
        from PIL import Image

        return Image.fromarray(self.pixels[row])

    def take(self, rows: Any) -> "ImageArray":
        """The given rows (n,), in the given order, with their labels and ids."""
        return ImageArray(self.pixels[rows], self.labels[rows], self.ids[rows])
