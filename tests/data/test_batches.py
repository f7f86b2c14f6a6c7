"""Batches of pictures: taken as they are in memory, or decoded, and augmented by seed, epoch and row alone."""

import numpy as np
import pytest
import torch
from PIL import Image

from entourage.data.arrays import ImageArray
from entourage.data.batches import PictureBatches
from entourage.values import Embeddings

PIXELS = np.random.default_rng(0).integers(0, 255, (6, 5, 7), dtype=np.uint8)
IMAGES = ImageArray(PIXELS, np.arange(6))
ROWS = [np.array([4, 0]), np.array([1, 1, 5])]


class Shifting:
    """Stands for an encoder's preprocessing: adds a random number to every pixel where it augments."""

    flip = random_crop = True
    seen = 0

    def keeps(self, height, width) -> bool:
        return (height, width) == (5, 7)

    def __call__(self, picture, rng=None):
        self.seen += 1
        pixels = torch.from_numpy(np.asarray(picture, np.float32))[None] / 255
        return pixels if rng is None else pixels + rng.random()


class Decoding:
    """An image set that decodes its pictures one by one."""

    labels, ids = np.arange(6), np.arange(6).astype(str)

    def __len__(self):
        return 6

    def picture(self, row):
        return Image.fromarray(PIXELS[row])


def flat(batches) -> list[torch.Tensor]:
    return [batch.pictures.reshape(len(batch), -1) for batch in batches]


@pytest.mark.parametrize("preprocessing", [None, Shifting()], ids=["none", "nothing to do"])
def test_pictures_in_memory_are_taken_as_they_are(preprocessing):
    batches = PictureBatches(IMAGES, ROWS, preprocessing)
    assert len(batches) == 2
    for batch, rows, pixels in zip(batches, ROWS, flat(batches), strict=True):
        assert batch.rows.tolist() == rows.tolist() and len(batch) == len(rows)
        np.testing.assert_allclose(pixels, PIXELS[rows].reshape(len(rows), -1) / 255, rtol=1e-6)
    assert preprocessing is None or preprocessing.seen == 0


def test_pictures_to_decode_go_through_the_preprocessing():
    pytest.importorskip("entourage.data.decoding")
    for found, rows in zip(flat(PictureBatches(Decoding(), ROWS, Shifting(), workers=2)), ROWS, strict=True):
        np.testing.assert_allclose(found, PIXELS[rows].reshape(len(rows), -1) / 255, rtol=1e-6)


@pytest.mark.parametrize("images", [Decoding(), IMAGES], ids=["decoded", "in memory"])
def test_augmentation_is_decided_by_the_draw_and_the_row(images):
    pytest.importorskip("entourage.data.decoding")
    if not hasattr(images, "picture"):
        pytest.skip("pictures in memory cannot be asked for one by one yet")

    def shifts(draw, workers=1):
        drawn = flat(PictureBatches(images, ROWS, Shifting(), draw=draw, workers=workers))
        return [
            (a - torch.from_numpy(PIXELS[r].reshape(len(r), -1) / 255)).mean(dim=1)
            for a, r in zip(drawn, ROWS, strict=True)
        ]

    first = torch.cat(shifts((0, 1)))
    torch.testing.assert_close(torch.cat(shifts((0, 1), workers=4)), first)
    assert first[2] == first[3], "the same row twice"
    assert len(set(first.tolist())) == 4
    assert not torch.allclose(torch.cat(shifts((0, 2))), first)


def test_vectors_stand_where_pictures_would():
    items = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(6, 3)))
    batches = list(PictureBatches(items, ROWS, None, draw=(0, 1)))
    assert [batch.rows.tolist() for batch in batches] == [rows.tolist() for rows in ROWS]
    for batch, rows in zip(batches, ROWS, strict=True):
        np.testing.assert_array_equal(batch.pictures, items.vectors[rows])
