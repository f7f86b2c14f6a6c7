"""Batches of pictures: taken as they are in memory, or decoded, and augmented by seed, epoch and place alone."""

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
def test_augmentation_is_decided_by_the_draw_and_the_place_in_the_batches(images):
    """The third and the fourth are the same row twice in one batch: copies differ."""
    first = shifts(images, ROWS, (0, 1))
    torch.testing.assert_close(shifts(images, ROWS, (0, 1), workers=4), first)
    assert len({round(shift, 4) for shift in first.tolist()}) == 5
    assert not torch.allclose(shifts(images, ROWS, (0, 2)), first)


def test_shares_of_a_batch_are_augmented_as_the_whole_is():
    whole = shifts(IMAGES, ROWS, (0, 1))
    shares = [[ROWS[0][:1], ROWS[1][:2]], [ROWS[0][1:], ROWS[1][2:]]]
    left, right = (shifts(IMAGES, shares[rank], (0, 1), first=first) for rank, first in enumerate(([0, 0], [1, 2])))
    torch.testing.assert_close(torch.cat([left[:1], right[:1], left[1:], right[1:]]), whole)


def shifts(images, batches, draw, **options) -> torch.Tensor:
    """What was added to each picture."""
    drawn = flat(PictureBatches(images, batches, Shifting(), draw=draw, **options))
    pixels = [torch.from_numpy(PIXELS[rows].reshape(len(rows), -1) / 255) for rows in batches]
    return torch.cat([(a - b).mean(dim=1) for a, b in zip(drawn, pixels, strict=True)])


def test_vectors_stand_where_pictures_would():
    items = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(6, 3)))
    batches = list(PictureBatches(items, ROWS, None, draw=(0, 1)))
    assert [batch.rows.tolist() for batch in batches] == [rows.tolist() for rows in ROWS]
    for batch, rows in zip(batches, ROWS, strict=True):
        np.testing.assert_array_equal(batch.pictures, items.vectors[rows])
