"""Batches of pictures for training: rows in, tensors out, decoded and augmented ahead of their use.

Vectors of an Embeddings set stand where pictures would, as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from entourage.data.preprocessing import as_pictures
from entourage.runtime.randomness import generator

__all__ = ["PictureBatch", "PictureBatches"]


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """Some rows (b,) of an image set with their pictures (b, C, H, W), or of Embeddings with their vectors (b, d)."""

    rows: np.ndarray
    pictures: Tensor

    def __len__(self) -> int:
        return len(self.rows)


class PictureBatches:
    """One pass over given batches of rows of an image set, sized and iterable once or more.

    preprocessing: the encoder's; None takes grey pictures in memory as they are. draw: whole numbers, the seed and the
    epoch for instance, that decide the augmentation together with the row; None for none, as in a test.
    A picture that cannot be decoded is left out and its path appended to `corrupt`; with `strict` it raises.
    """

    def __init__(
        self,
        images,
        batches: Sequence[np.ndarray],
        preprocessing=None,
        *,
        draw: tuple[int, ...] | None = None,
        workers: int | None = None,
        strict: bool = False,
        corrupt: list | None = None,
    ):
        self.images, self.batches, self.preprocessing, self.draw = images, batches, preprocessing, draw
        self.decoding = {"strict": strict, "corrupt": corrupt} | ({} if workers is None else {"workers": workers})

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[PictureBatch]:
        if hasattr(self.images, "vectors"):
            for rows in self.batches:
                yield PictureBatch(rows, torch.from_numpy(self.images.vectors[rows]))
            return
        if self._as_they_are():
            for rows in self.batches:
                yield PictureBatch(rows, as_pictures(self.images.pixels[rows])[:, None])
            return
        from entourage.data.decoding import decoded

        for rows, pictures in decoded(self.images, self.batches, self._prepared, **self.decoding):
            yield PictureBatch(rows, pictures)

    def _prepared(self, picture, row: int) -> Tensor:
        """Run in threads and in any order: what is random in it depends on the row."""
        return self.preprocessing(picture, None if self.draw is None else generator(*self.draw, row))

    def _as_they_are(self) -> bool:
        """Whether the pixels in memory are what the encoder takes, without Pillow."""
        pixels = getattr(self.images, "pixels", None)
        if pixels is None or pixels.ndim != 3:
            return False
        if self.preprocessing is None:
            return True
        changed = self.draw is not None and (self.preprocessing.random_crop or self.preprocessing.flip)
        return self.preprocessing.keeps(*pixels.shape[1:]) and not changed
