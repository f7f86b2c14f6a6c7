"""Pictures through encoders: whatever the batch, the order of decoding, and what cannot be decoded."""

import numpy as np
import pytest
import torch
from PIL import Image

from entourage.data.arrays import ImageArray
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import CallableEncoder, SmallResNet
from entourage.encoders.embedding import embed, embed_shards, shard_rows
from entourage.errors import EntourageWarning, InputError
from entourage.runtime.randomness import seeded_weights

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 32, 32), dtype=np.uint8)


@pytest.fixture
def decoding():
    return pytest.importorskip("entourage.data.decoding")


class PictureSet:
    """Pictures decoded when asked for; those of some rows cannot be."""

    def __init__(self, pixels, corrupt=()):
        self.pixels_on_disk, self.corrupt = pixels, corrupt

    def __len__(self):
        return len(self.pixels_on_disk)

    def picture(self, row):
        if row in self.corrupt:
            from entourage.errors import CorruptImage

            raise CorruptImage(f"folder/{row}.png", "it is truncated")
        return Image.fromarray(self.pixels_on_disk[row])


def small(**options):
    return seeded_weights(0, lambda: SmallResNet(dim=24, width=8, **options))


def test_pictures_become_unit_vectors_whatever_the_batch():
    vectors = embed(small(), PIXELS, at_once=3)
    assert vectors.shape == (7, 24) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors, embed(small(), PIXELS, at_once=7), atol=1e-6)


def test_odd_sizes_are_accepted():
    assert embed(small(), np.zeros((2, 35, 29), np.uint8)).shape == (2, 24)


def test_pixels_images_and_decoded_pictures_agree(decoding):
    by_pixels = embed(small(), PIXELS)
    assert np.array_equal(by_pixels, embed(small(), ImageArray(PIXELS, np.zeros(7))))
    assert np.array_equal(by_pixels, embed(small(), PictureSet(PIXELS), workers=2))
    np.testing.assert_allclose(by_pixels, embed(small(), PictureSet(PIXELS), at_once=2, workers=1), atol=1e-6)


def test_pixels_of_another_size_are_brought_to_the_encoders(decoding):
    preprocessing = Preprocessing.small(20)
    expected = torch.stack([preprocessing(Image.fromarray(pixels)) for pixels in PIXELS])
    with torch.no_grad():
        vectors = small().eval()(expected).numpy()
    assert np.array_equal(embed(small(preprocessing=preprocessing), PIXELS), vectors)


def test_pixels_in_colours(decoding):
    colours = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
    assert embed(small(in_channels=3), colours).shape == (3, 24)


def test_the_mode_of_the_encoder_does_not_matter():
    assert np.array_equal(embed(small().train(), PIXELS), embed(small().eval(), PIXELS))


def test_the_encoder_moves_to_the_device_asked_for():
    encoder = small()
    vectors = embed(encoder, PIXELS, device="cpu")
    assert next(encoder.parameters()).device.type == "cpu"
    assert np.array_equal(vectors, embed(small(), PIXELS))


def test_progress_counts_to_the_end():
    seen = []
    embed(small(), PIXELS, at_once=3, progress=lambda *report: seen.append(report))
    assert seen[0] == ("embedding", 3, 7) and seen[-1] == ("embedding", 7, 7)


# ---- what cannot be decoded --------------------------------------------------------------------------------------


def test_a_corrupt_picture_is_a_row_of_nan_and_a_warning(decoding):
    with pytest.warns(EntourageWarning, match=r"2 of 7 pictures cannot be decoded \(folder/1.png is the first\)"):
        vectors = embed(small(), PictureSet(PIXELS, corrupt=[1, 4]), at_once=2)
    assert np.flatnonzero(np.isnan(vectors).all(axis=1)).tolist() == [1, 4]
    kept = [0, 2, 3, 5, 6]
    np.testing.assert_allclose(vectors[kept], embed(small(), PIXELS)[kept], atol=1e-6)


def test_a_corrupt_picture_is_refused_if_strict(decoding):
    from entourage.errors import CorruptImage

    with pytest.raises(CorruptImage, match=r"folder/4.png"):
        embed(small(), PictureSet(PIXELS, corrupt=[4]), strict=True)


def test_nothing_but_corrupt_pictures(decoding):
    with pytest.raises(InputError, match=r"none of the 7 pictures can be decoded .*folder/0.png"):
        embed(small(), PictureSet(PIXELS, corrupt=range(7)))


# ---- shards ------------------------------------------------------------------------------------------------------


def test_shards_together_are_the_whole():
    shards = list(embed_shards(small(), PIXELS, shard_size=3, at_once=2))
    assert [shard.rows.tolist() for shard in shards] == [[0, 1, 2], [3, 4, 5], [6]]
    np.testing.assert_allclose(np.concatenate([shard.vectors for shard in shards]), embed(small(), PIXELS), atol=1e-6)


def test_a_run_goes_on_with_the_shards_that_are_left():
    whole = list(embed_shards(small(), PIXELS, shard_size=3))
    seen = []
    rest = list(embed_shards(small(), PIXELS, shard_size=3, shards=[2, 0], progress=lambda *r: seen.append(r)))
    for shard, number in zip(rest, [2, 0], strict=True):
        assert np.array_equal(shard.rows, whole[number].rows) and np.array_equal(shard.vectors, whole[number].vectors)
    assert seen[-1] == ("embedding", 4, 4)


def test_a_shard_without_a_picture_left_is_empty(decoding):
    shards = list(embed_shards(small(), PictureSet(PIXELS, corrupt=[1, 3, 4, 5]), shard_size=3))
    assert [shard.rows.tolist() for shard in shards] == [[0, 2], [], [6]]
    assert shards[1].vectors.shape == (0, 24)
    assert [shard.corrupt for shard in shards] == [
        ["folder/1.png"],
        ["folder/3.png", "folder/4.png", "folder/5.png"],
        [],
    ]


# ---- encoders of one's own ---------------------------------------------------------------------------------------


def test_texts_go_through_anything_that_encodes_them():
    texts = ["a", "bb", "cccc"]
    vectors = embed(CallableEncoder(lambda items: [[len(item), 1] for item in items]), texts, at_once=2)
    expected = np.array([[1, 1], [2, 1], [4, 1]]) / np.sqrt([[2], [5], [17]])
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)


def test_a_function_is_handed_pictures(decoding):
    def means(pictures):
        return [[np.asarray(picture).mean(), 1.0] for picture in pictures]

    expected = np.stack([PIXELS.mean(axis=(1, 2)), np.ones(7)], axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    for images in (PIXELS, PictureSet(PIXELS), ImageArray(PIXELS, np.zeros(7))):
        np.testing.assert_allclose(embed(CallableEncoder(means), images, at_once=3), expected, rtol=1e-5)
    with pytest.warns(EntourageWarning, match="1 of 7"):
        assert np.isnan(embed(CallableEncoder(means), PictureSet(PIXELS, corrupt=[2]))[2]).all()


# ---- what cannot be embedded -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (PIXELS[:0], {}, "there are 0 pictures to embed"),
        (PIXELS.astype(float), {}, r"pixels are float64 of shape \(7, 32, 32\); wanted uint8"),
        (PIXELS[0], {}, r"pixels are uint8 of shape \(32, 32\)"),
        (PIXELS, {"at_once": 0}, "at_once is 0; wanted 1 or more"),
        (PIXELS, {"device": "abacus"}, "device is 'abacus'; wanted auto, cpu"),
    ],
)
def test_input_that_cannot_be_used(images, options, message):
    with pytest.raises(InputError, match=message):
        embed(small(), images, **options)


def test_shards_that_cannot_be():
    with pytest.raises(InputError, match="shard_size is 0"):
        shard_rows(5, 0)
    with pytest.raises(InputError, match=r"shards are \[3\]; wanted numbers from 0 to 2"):
        next(embed_shards(small(), PIXELS, shard_size=3, shards=[3]))


def test_a_plain_module_that_does_not_say_its_size_embeds_too():
    plain = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(3))
    assert embed(plain, ImageArray(PIXELS, np.zeros(7))).shape == (7, 3)
