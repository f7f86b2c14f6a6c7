"""Batches of pictures for training: rows in, tensors out, decoded and augmented ahead of their use.

Vectors of an Embeddings set stand where pictures would, as they are.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from entourage.data.decoding import Asked, PictureBatch, decoded
from entourage.data.image_set import Items, column_of
from entourage.data.preprocessing import Preprocessing, as_pictures
from entourage.runtime.randomness import generator
from entourage.values import Embeddings

__all__ = ["PictureBatch", "PictureBatches"]


class PictureBatches:
    """One pass over given batches of rows of an image set, sized and iterable more than once.

    Parameters
    ----------
    items : ImageSet or Embeddings
        Pictures, or vectors, which are given as they are.
    batches : sequence of ndarray of int, shape (b,) each
        The rows of each batch.
    preprocessing : Preprocessing, optional
        The encoder's; None takes grey pictures in memory as they are.
    draw : tuple of int, optional
        Whole numbers, the seed and the epoch for instance, that decide the augmentation together with the number of the
        batch and the position in it: copies of a row, where a class has fewer than are wanted of it, differ. None does
        not augment, as in a test.
    first : sequence of int, optional
        The position in its whole batch of the first row of each, where these are a process's shares; default: 0.
    workers : int, optional
        Number of threads that decode; default: one per core.
    strict : bool
        Whether a picture that cannot be decoded raises CorruptImage; if not, it is left out of its batch.
    """

    def __init__(
        self,
        items: Items,
        batches: Sequence[np.ndarray],
        preprocessing: Preprocessing | None = None,
        *,
        draw: tuple[int, ...] | None = None,
        first: Sequence[int] | None = None,
        workers: int | None = None,
        strict: bool = False,
    ) -> None:
        self.items, self.batches, self.preprocessing, self.draw = items, batches, preprocessing, draw
        self.first = first
        self.workers, self.strict = workers, strict
        self._corrupt: dict[str, None] = {}  # an ordered set

    @property
    def corrupt(self) -> list[str]:
        """Paths of the pictures that could not be decoded so far, each once, in the order they were met."""
        return list(self._corrupt)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[PictureBatch]:
        """The batches in order; one of which nothing is left is passed over."""
        for batch in self._made():
            self._corrupt |= dict.fromkeys(batch.corrupt)
            if len(batch):
                yield batch

    def _made(self) -> Iterator[PictureBatch]:
        items, pixels = self.items, column_of(self.items, "pixels")
        if isinstance(items, Embeddings):
            return (PictureBatch(rows, torch.from_numpy(items.vectors[rows])) for rows in self.batches)
        if pixels is not None and self._as_they_are(pixels):
            return (PictureBatch(rows, as_pictures(pixels[rows])[:, None]) for rows in self.batches)
        return decoded(items, self.batches, self._prepared, workers=self.workers, strict=self.strict)

    def _prepared(self, picture: Image.Image, asked: Asked) -> Tensor:
        """Run in threads and in any order: what is random in it depends on the place in the batches."""
        preprocessing = self.preprocessing or Preprocessing.small()
        if self.draw is None:
            return preprocessing(picture, None)
        position = asked.position + (self.first[asked.batch] if self.first else 0)
        return preprocessing(picture, generator(*self.draw, asked.batch, position))

    def _as_they_are(self, pixels: np.ndarray) -> bool:
        """Whether the pixels in memory are what the encoder takes, without Pillow."""
        if pixels.ndim != 3:
            return False
        if self.preprocessing is None:
            return True
        changed = self.draw is not None and (self.preprocessing.random_crop or self.preprocessing.flip)
        return self.preprocessing.keeps(*pixels.shape[1:]) and not changed
