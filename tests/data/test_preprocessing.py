import json

import numpy as np
import pytest
import torch
from PIL import Image

from entourage.data.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing, as_pictures
from entourage.errors import InputError


def noise(height: int, width: int, channels: int = 3) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])


def test_pixels_are_scaled_to_the_unit_interval():
    pictures = as_pictures(np.array([[[0, 255]]], np.uint8))
    assert pictures.dtype == torch.float32
    assert pictures.tolist() == [[[0.0, 1.0]]]


def test_small_pictures_are_scaled_and_nothing_else():
    picture = noise(9, 7, 1)
    for preprocessing in (Preprocessing.small(), Preprocessing.small((9, 7))):
        for rng in (None, np.random.default_rng(0)):
            assert torch.equal(preprocessing(picture, rng), as_pictures(np.asarray(picture))[None])
        assert preprocessing.keeps(9, 7)
    assert Preprocessing.small(8)(picture).shape == (1, 8, 8)
    assert not Preprocessing.small(8).keeps(9, 7) and not Preprocessing().keeps(224, 224)


def test_at_test_time_the_centre_of_the_resized_picture():
    """A picture of 512 x 1024 is halved; of its 256 x 512 pixels the central 224 x 224 remain."""
    picture = noise(512, 1024)
    halved = as_pictures(np.asarray(picture.resize((512, 256), Image.Resampling.BILINEAR)))
    expected = halved[16:240, 144:368].permute(2, 0, 1)
    expected = (expected - torch.tensor(IMAGENET_MEAN)[:, None, None]) / torch.tensor(IMAGENET_STD)[:, None, None]
    prepared = Preprocessing()(picture)
    assert torch.equal(prepared, expected)
    assert prepared.is_contiguous() and torch.equal(prepared, Preprocessing()(picture))


@pytest.mark.parametrize("shape", [(1, 5), (300, 3), (3, 300), (224, 224), (500, 375)])
def test_any_shape_becomes_the_encoders(shape):
    for rng in (None, np.random.default_rng(0)):
        assert Preprocessing(resize=20, crop=16)(noise(*shape), rng).shape == (3, 16, 16)
        assert Preprocessing(resize=(20, 24), crop=None)(noise(*shape), rng).shape == (3, 20, 24)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "YCbCr"])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_of_any_mode_are_converted(mode, channels):
    white = {"I;16": 65535, "I": 65535, "CMYK": (0, 0, 0, 0), "YCbCr": (255, 128, 128)}.get(mode, "white")
    prepared = Preprocessing.small(channels=channels)(Image.new(mode, (4, 3), white))
    assert prepared.shape == (channels, 3, 4)
    torch.testing.assert_close(prepared, torch.ones(channels, 3, 4), atol=0.01, rtol=0)


def test_augmentation_depends_on_the_generator_alone():
    preprocessing, picture = Preprocessing(crop=32), noise(60, 80)
    first, again, other = (preprocessing(picture, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_random_crops_cover_what_they_should():
    """On a picture whose values are the coordinates, a crop's corners tell its box."""
    height, width = 100, 150
    rows, columns = np.mgrid[0:height, 0:width]
    picture = Image.fromarray(np.stack([rows, columns, rows * 0], axis=2).astype(np.uint8))
    preprocessing = Preprocessing(crop=64, mean=None, std=None, flip=False, resample="nearest", min_area=0.2)
    rng = np.random.default_rng(0)
    boxes = []
    for _ in range(200):
        crop = preprocessing(picture, rng) * 255
        boxes.append([crop[0].min(), crop[0].max() + 1, crop[1].min(), crop[1].max() + 1])
    top, bottom, left, right = np.array(boxes).T
    area = (bottom - top) * (right - left) / (height * width)
    ratio = (right - left) / (bottom - top)
    assert 0.15 < area.min() < 0.3 and area.max() > 0.8  # up to a pixel on each side
    assert 0.7 < ratio.min() < 0.85 and 1.2 < ratio.max() < 1.4
    assert top.min() < 5 and bottom.max() > 95 and left.min() < 5 and right.max() > 145


def test_half_of_the_pictures_are_mirrored():
    picture, rng = noise(8, 8), np.random.default_rng(0)
    plain = Preprocessing(resize=None, crop=None, random_crop=False)
    seen = [plain(picture, rng) for _ in range(200)]
    mirrored = [torch.equal(prepared, plain(picture).flip(2)) for prepared in seen]
    assert 70 < sum(mirrored) < 130
    assert all(one or torch.equal(prepared, plain(picture)) for one, prepared in zip(mirrored, seen, strict=True))


@pytest.mark.parametrize(
    "preprocessing",
    [Preprocessing(), Preprocessing.small(), Preprocessing.small(32, 3), Preprocessing(resize=(9, 8), crop=None)],
)
def test_it_goes_through_json(preprocessing):
    assert Preprocessing.from_dict(json.loads(json.dumps(preprocessing.to_dict()))) == preprocessing


def test_another_size_keeps_the_proportions():
    assert (Preprocessing().at_size(448).resize, Preprocessing().at_size(448).crop) == (512, 448)
    assert Preprocessing.small().at_size(40).resize == (40, 40)
    warped = Preprocessing(resize=(60, 60), crop=50).at_size(40)
    assert (warped.resize, warped.crop) == ((48, 48), 40)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 4}, r"channels is 4; wanted 1 \(grey\) or 3 \(colours\)"),
        ({"resize": 0}, "resize is 0; wanted 1 to 8,192 pixels"),
        ({"crop": (1, 2, 3)}, r"crop is \(1, 2, 3\); wanted"),
        ({"crop": "224"}, "crop is '224'; wanted"),
        ({"mean": (0.5,)}, r"mean is \(0.5,\); wanted 3 numbers"),
        ({"std": (0.5, 0.5, 0.0)}, "wanted 3 numbers above 0"),
        ({"mean": None}, "give both or neither"),
        ({"resample": "cubic"}, "resample is 'cubic'; wanted one of nearest, bilinear"),
        ({"min_area": 0}, "min_area is 0; wanted a share above 0"),
    ],
)
def test_settings_that_cannot_be_used(options, message):
    with pytest.raises(InputError, match=message):
        Preprocessing(**options)


def test_an_unknown_field_is_refused():
    with pytest.raises(InputError, match="unknown field 'colour' of preprocessing; wanted one of channels, crop, "):
        Preprocessing.from_dict({"colour": 1})


@pytest.mark.parametrize("size", [(60, 40), (40, 60), (20, 50)])
@pytest.mark.parametrize("chosen", [{"resize": 32, "crop": 28}, {"resize": (24, 30), "crop": None}, {"resize": 20}])
def test_the_part_that_is_seen_is_what_reaches_the_encoder(size, chosen):
    """A ramp over the picture: what is seen begins and ends where the prepared tensor does."""
    columns, rows = np.meshgrid(np.linspace(0, 250, size[0]), np.linspace(0, 250, size[1]))
    preprocessing = Preprocessing(1, mean=None, std=None, **({"crop": 20} | chosen))
    for ramp in (columns, rows):
        picture = Image.fromarray(ramp.astype(np.uint8))
        prepared = preprocessing(picture)[0].numpy() * 255
        seen = np.asarray(preprocessing.part_seen(picture).resize(prepared.shape[::-1], Image.Resampling.BILINEAR))
        assert abs(prepared - seen).max() < 14  # half a pixel of the smallest picture
