"""Embedding shard by shard: the same vectors as at once, whatever was interrupted or cannot be decoded."""

import os

import numpy as np
import pytest
import torch
from tests.data.pictures import write_picture

from entourage.data.arrays import ImageArray
from entourage.data.files import ImageFiles
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import CallableEncoder, SmallResNet
from entourage.encoders.embedding import embed
from entourage.encoders.shards import embed_to_file, parts_of
from entourage.errors import CorruptImage, EntourageWarning, FileError, InputError
from entourage.stores import read_vectors

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT = 10


def encoder(seed: int, dim: int = 6) -> SmallResNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SmallResNet(dim=dim, width=4, preprocessing=Preprocessing.small(8)).eval()


@pytest.fixture
def images() -> ImageArray:
    rng = np.random.default_rng(0)
    return ImageArray(rng.integers(0, 255, (COUNT, 8, 8)).astype(np.uint8), np.arange(COUNT) // 2)


@pytest.fixture
def on_disk(tmp_path) -> ImageFiles:
    names = [f"{number}.png" for number in range(COUNT)]
    for number, name in enumerate(names):
        write_picture(tmp_path / "pictures" / name, 20 * number)
    return ImageFiles(tmp_path / "pictures", np.array(names), np.arange(COUNT) // 2)


def interrupt_after(shards: int):
    """Progress that stops the run in the shard after so many."""

    def progress(title, done, total):
        if done > 3 * shards:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("shard_size", [1, 3, 10, 99])
def test_shards_of_any_size_give_the_vectors_of_one(images, tmp_path, shard_size):
    written = embed_to_file([encoder(0)], images, tmp_path / "v.npz", shard_size=shard_size)
    assert (written.count, written.dim, written.corrupt) == (COUNT, 6, [])
    np.testing.assert_allclose(read_vectors(written.path).vectors, embed(encoder(0), images), atol=1e-6)
    assert os.listdir(tmp_path) == ["v.npz"]


@pytest.mark.parametrize("done", [1, 2])
def test_an_interrupted_run_keeps_its_shards_and_goes_on(images, tmp_path, done):
    out = tmp_path / "v.npz"
    with pytest.raises(KeyboardInterrupt):
        embed_to_file([encoder(0)], images, out, shard_size=3, progress=interrupt_after(done))
    shards = sorted(parts_of(out).glob("[0-9]*.npz"))
    assert len(shards) == done and not out.exists()
    reports = []
    embed_to_file([encoder(0)], images, out, shard_size=3, resume=True, progress=lambda *report: reports.append(report))
    assert reports[-1][1:] == (COUNT - 3 * done, COUNT - 3 * done)  # what was done is not done again
    np.testing.assert_allclose(read_vectors(out).vectors, embed(encoder(0), images), atol=1e-6)
    assert os.listdir(tmp_path) == ["v.npz"]


def test_a_file_half_written_by_a_crash_is_no_shard(images, tmp_path):
    out = tmp_path / "v.npz"
    with pytest.raises(KeyboardInterrupt):
        embed_to_file([encoder(0)], images, out, shard_size=3, progress=interrupt_after(1))
    (parts_of(out) / ".00001.npz.entourage").mkdir()
    (parts_of(out) / ".00001.npz.entourage" / "new.npz").write_bytes(b"PK")
    assert embed_to_file([encoder(0)], images, out, shard_size=3, resume=True).count == COUNT


@pytest.mark.parametrize("damage", ["cut", "nothing in it", "other rows", "NaN"])
def test_a_damaged_shard_is_made_again(images, tmp_path, damage):
    out = tmp_path / "v.npz"
    with pytest.raises(KeyboardInterrupt):
        embed_to_file([encoder(0)], images, out, shard_size=3, progress=interrupt_after(2))
    shard = parts_of(out) / "00001.npz"
    with np.load(shard) as held:
        arrays = dict(held)
    if damage == "other rows":
        arrays["rows"] = arrays["rows"] - 3
    if damage == "NaN":
        arrays["vectors"] = np.full_like(arrays["vectors"], np.nan)
    np.savez(shard, **({} if damage == "nothing in it" else arrays))
    if damage == "cut":
        shard.write_bytes(shard.read_bytes()[:200])
    with pytest.warns(EntourageWarning, match=r"made again, as it is damaged: .*00001\.npz"):
        embed_to_file([encoder(0)], images, out, shard_size=3, resume=True)
    np.testing.assert_allclose(read_vectors(out).vectors, embed(encoder(0), images), atol=1e-6)
    assert os.listdir(tmp_path) == ["v.npz"]


def test_stopped_in_the_first_shard_nothing_is_kept(images, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        embed_to_file([encoder(0)], images, tmp_path / "v.npz", shard_size=3, progress=interrupt_after(0))
    assert os.listdir(tmp_path) == []


def test_shards_of_other_pictures_weights_or_sizes_are_refused_unless_overwritten(images, tmp_path):
    out = tmp_path / "v.npz"
    with pytest.raises(KeyboardInterrupt):
        embed_to_file([encoder(0)], images, out, shard_size=3, progress=interrupt_after(1))
    others = [([encoder(1)], images, 3), ([encoder(0)], images.take(np.arange(9)), 3), ([encoder(0)], images, 4)]
    for encoders, pictures, size in others:
        with pytest.raises(FileError, match="belongs to other pictures, models or shard sizes"):
            embed_to_file(encoders, pictures, out, shard_size=size, resume=True)
    with pytest.raises(FileError, match="holds an interrupted run"):
        embed_to_file([encoder(0)], images, out, shard_size=3)
    embed_to_file([encoder(1)], images, out, shard_size=3, overwrite=True)
    np.testing.assert_allclose(read_vectors(out).vectors, embed(encoder(1), images), atol=1e-6)


def test_an_ensemble_searches_by_the_mean_of_the_cosines(images, tmp_path):
    encoders = [encoder(0), encoder(1, dim=9)]
    embed_to_file(encoders, images, tmp_path / "v.npz", shard_size=4)
    joined = read_vectors(tmp_path / "v.npz").vectors
    each = [embed(one, images) for one in encoders]
    np.testing.assert_allclose(joined @ joined.T, np.mean([e @ e.T for e in each], axis=0), atol=1e-5)


def test_corrupt_pictures_are_left_out_also_a_whole_shard_of_them(on_disk, tmp_path):
    for row in (3, 4, 5, 7):
        on_disk.path(row).write_bytes(b"")
    written = embed_to_file([encoder(0), encoder(1)], on_disk, tmp_path / "v.npz", shard_size=3)
    assert written.corrupt == [str(on_disk.path(row)) for row in (3, 4, 5, 7)]
    items = read_vectors(tmp_path / "v.npz")
    assert items.ids.tolist() == [f"{row}.png" for row in (0, 1, 2, 6, 8, 9)]
    expected = embed(encoder(0), on_disk.take(np.array([0, 1, 2, 6, 8, 9])))
    np.testing.assert_allclose(items.vectors[:, :6] * np.sqrt(2), expected, atol=1e-6)


def test_strict_refuses_also_what_an_earlier_run_had_left_out(on_disk, tmp_path):
    on_disk.path(1).write_bytes(b"")
    out = tmp_path / "v.npz"
    with pytest.raises(KeyboardInterrupt):
        embed_to_file([encoder(0)], on_disk, out, shard_size=3, progress=interrupt_after(1))
    with pytest.raises(CorruptImage, match=r"1\.png"):
        embed_to_file([encoder(0)], on_disk, out, shard_size=3, resume=True, strict=True)
    assert not out.exists()


def test_nothing_but_corrupt_pictures_is_an_error_and_leaves_nothing(on_disk, tmp_path):
    for path in on_disk.paths:
        path.write_bytes(b"")
    with pytest.raises(InputError, match="none of the 10 pictures can be decoded"):
        embed_to_file([encoder(0)], on_disk, tmp_path / "v.npz", shard_size=3)
    assert os.listdir(tmp_path) == ["pictures"]


def test_bad_vectors_in_a_later_shard_leave_the_finished_ones(images, tmp_path):
    calls = []

    def encode(pictures):
        calls.append(len(pictures))
        return np.full((len(pictures), 2), np.nan if len(calls) == 3 else 1.0)

    with pytest.raises(InputError):
        embed_to_file([CallableEncoder(encode)], images, tmp_path / "v.npz", shard_size=3)
    assert len(list(parts_of(tmp_path / "v.npz").glob("*.npz"))) == 2
    written = embed_to_file([CallableEncoder(encode)], images, tmp_path / "v.npz", shard_size=3, resume=True)
    assert written.count == COUNT and calls == [3, 3, 3, 3, 1]
