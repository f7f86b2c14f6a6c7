"""Pictures decoded ahead: in order, bounded, in threads, and past what is corrupt."""

import threading
import time

import numpy as np
import pytest
import torch
from tests.data.pictures import write_picture

from entourage.data.arrays import ImageArray
from entourage.data.batches import PictureBatches
from entourage.data.decoding import check_decodable, decoded
from entourage.data.files import ImageFiles
from entourage.data.preprocessing import Preprocessing
from entourage.errors import CorruptImage, InputError


def as_tensor(picture, row: int) -> torch.Tensor:
    return torch.tensor(np.asarray(picture.convert("L")))[None]


def numbered(count: int) -> ImageArray:
    """Picture n is all n."""
    return ImageArray(np.repeat(np.arange(count, dtype=np.uint8), 4).reshape(-1, 2, 2), np.zeros(count, int))


@pytest.fixture
def files(tmp_path):
    """Six pictures, of which 1 is empty and 4 and 5 are missing."""
    for value in range(4):
        write_picture(tmp_path / f"{value}.png", value)
    (tmp_path / "1.png").write_bytes(b"")
    return ImageFiles(tmp_path, [f"{row}.png" for row in range(6)], np.zeros(6, int))


@pytest.mark.parametrize("workers", [1, 4, None])
def test_batches_come_in_the_order_asked_for(workers):
    batches = [np.array([3, 1]), np.array([0, 2, 4]), np.array([1])]
    found = list(decoded(numbered(5), batches, as_tensor, workers=workers))
    assert [batch.rows.tolist() for batch in found] == [[3, 1], [0, 2, 4], [1]]
    assert [batch.pictures.shape for batch in found] == [(2, 1, 2, 2), (3, 1, 2, 2), (1, 1, 2, 2)]
    assert [batch.pictures[:, 0, 0, 0].tolist() for batch in found] == [[3, 1], [0, 2, 4], [1]]


def test_order_holds_when_the_first_picture_is_the_slowest():
    def slow_first(picture, asked):
        time.sleep(0.05 if asked.row == 0 else 0)
        return as_tensor(picture, asked)

    found = list(decoded(numbered(6), [np.arange(3), np.arange(3, 6)], slow_first, workers=3))
    assert [batch.pictures[:, 0, 0, 0].tolist() for batch in found] == [[0, 1, 2], [3, 4, 5]]


def test_the_transform_is_told_the_row_and_its_place():
    batches = [[2, 0], [0, 0]]
    found = list(decoded(numbered(3), batches, lambda picture, asked: torch.tensor(asked).float()[:, None, None]))
    places = [batch.pictures.flatten(1).tolist() for batch in found]
    assert places == [[[2, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 1]]]


def test_only_a_few_batches_are_decoded_ahead():
    asked = []

    def batches():
        for number in range(20):
            asked.append(number)
            yield np.array([number])

    stream = decoded(numbered(20), batches(), as_tensor, workers=2)
    assert asked == []
    next(stream)
    assert len(asked) == 3
    next(stream)
    assert len(asked) == 4


def test_threads_work_side_by_side():
    together = threading.Barrier(3, timeout=10)

    def wait_for_the_others(picture, asked):
        together.wait()
        return as_tensor(picture, asked)

    assert len(list(decoded(numbered(3), [np.arange(3)], wait_for_the_others, workers=3))) == 1


def test_no_thread_is_left_when_the_reader_stops_early():
    stream = decoded(numbered(9), [[row] for row in range(9)], as_tensor, workers=2)
    next(stream)
    stream.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("decoding")]


def test_corrupt_images_are_left_out_of_their_batch_which_names_them(files, tmp_path):
    found = list(decoded(files, [[0, 1, 2], [4, 5], [1, 3]], as_tensor))
    assert [batch.rows.tolist() for batch in found] == [[0, 2], [], [3]]
    assert [batch.pictures[:, 0, 0, 0].tolist() for batch in found if len(batch)] == [[0, 2], [3]]
    named = [[str(tmp_path / name) for name in names] for names in (["1.png"], ["4.png", "5.png"], ["1.png"])]
    assert [list(batch.corrupt) for batch in found] == named


def test_a_pass_names_every_corrupt_picture_once_and_skips_batches_without_any_left(files, tmp_path):
    batches = PictureBatches(files, [np.array(rows) for rows in ([0, 1, 2], [4, 5], [1, 3])], Preprocessing.small())
    for _ in range(2):
        assert [batch.rows.tolist() for batch in batches] == [[0, 2], [3]]
    assert batches.corrupt == [str(tmp_path / name) for name in ("1.png", "4.png", "5.png")]


def test_strict_refuses_the_first_corrupt_image(files):
    stream = decoded(files, [[0], [1, 4]], as_tensor, strict=True)
    assert next(stream).rows.tolist() == [0]
    with pytest.raises(CorruptImage, match=r"1\.png"):
        next(stream)


def test_a_transform_that_fails_is_not_taken_for_a_corrupt_image():
    def fails(picture, asked):
        raise ZeroDivisionError("in the transform")

    with pytest.raises(ZeroDivisionError, match="in the transform"):
        list(decoded(numbered(1), [[0]], fails))


def test_pictures_of_two_shapes_are_refused():
    with pytest.raises(InputError, match=r"shapes \(1, 1, 1\), \(1, 2, 1\)"):
        list(decoded(numbered(2), [[0, 1]], lambda picture, asked: torch.zeros(1, asked.row + 1, 1)))


def test_no_workers_are_refused_at_once():
    with pytest.raises(InputError, match="workers is 0"):
        decoded(numbered(1), [[0]], as_tensor, workers=0)


def test_a_set_is_checked_to_its_first_corrupt_picture(files):
    told = []
    check_decodable(files.take([0, 2, 3]), progress=lambda *step: told.append(step))
    assert told == [("checking pictures", 3, 3)]
    check_decodable(numbered(2))
    with pytest.raises(CorruptImage, match=r"1\.png cannot be decoded"):
        check_decodable(files)
