"""Which pictures the blocks are shown on."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from entourage.data.arrays import ImageArray
from entourage.errors import InputError
from entourage.runs.figures.cross_image import _triple, _with_query

# The nearest of picture 2 is 3, of another class; 4 is alone in its class.
ANGLES, LABELS = np.radians([0, 40, 50, 55, 80]), list("babac")


def images(labels) -> ImageArray:
    return ImageArray(np.zeros((len(labels), 2, 2), np.uint8), labels)


def encoded():
    vectors = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1).astype(np.float32)
    return SimpleNamespace(vectors=torch.from_numpy(vectors))


def test_a_picture_is_shown_with_the_nearest_of_its_class_and_of_another():
    assert _triple(encoded(), images(LABELS), 2).tolist() == [2, 0, 3]
    assert _triple(encoded(), images(LABELS), 0).tolist() == [0, 2, 1]


def test_a_picture_alone_in_its_class_is_refused():
    with pytest.raises(InputError, match="the query is 4, and of the 5 pictures 0 others are of its class and 4 of an"):
        _triple(encoded(), images(LABELS), 4)
    with pytest.raises(InputError, match="4 others are of its class and 0 of another; wanted one of each"):
        _triple(encoded(), images(["a"] * 5), 1)


def test_the_class_of_the_picture_asked_for_is_among_those_looked_at():
    labels = np.repeat(["a", "b", "c"], 4)
    assert _with_query(np.arange(4), images(labels), "6").tolist() == list(range(8))
    assert _with_query(np.arange(2), images(labels), "11").tolist() == [0, 1, 8, 9, 11]
    with pytest.raises(InputError, match="'12', which is not an id of the 12 items"):
        _with_query(np.arange(4), images(labels), "12")
