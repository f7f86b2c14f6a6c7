"""From a picture to the tensor an encoder takes, with Pillow and torch alone.

With a random generator the picture is augmented, as in training; without one it is treated the same way every time.
C channels (1 grey, 3 colours), H x W pixels.
"""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from entourage.errors import InputError
from entourage.runtime.config import check_known, check_name, check_options

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Preprocessing", "as_pictures"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_MODES = {1: "L", 3: "RGB"}
_RATIOS = (3 / 4, 4 / 3)  # width : height of a random crop
_LONGEST_SIDE = 8192  # pixels; a picture larger than that takes more memory than any encoder has use for
_LEAST_STD = 1e-9  # of values in [0, 1]; what is divided by less is no longer finite
_ATTEMPTS = 10  # at a random crop that fits into the picture


@dataclass(frozen=True)
class Preprocessing:
    """How pictures are prepared for an encoder; the defaults are those of the metric-learning papers.

    >>> p = Preprocessing()
    >>> p(Image.new("L", (300, 400))).shape  # a grey picture, 300 wide
    torch.Size([3, 224, 224])
    >>> Preprocessing.small()(Image.new("L", (32, 32), 255)).unique().tolist()
    [1.0]
    """

    channels: int = 3
    """1 for grey, 3 for colours; other pictures are converted."""
    resize: int | tuple[int, int] | None = 256
    """The shorter side's new length, or (height, width) whatever the shape was; None keeps the picture's size."""
    crop: int | tuple[int, int] | None = 224
    """The side, or (height, width), of the part given to the encoder; None takes all of it."""
    mean: tuple[float, ...] | None = IMAGENET_MEAN
    """Taken from each channel of values in [0, 1]; None leaves them there."""
    std: tuple[float, ...] | None = IMAGENET_STD
    """What each channel is then divided by."""
    resample: str = "bilinear"
    """How pixels are interpolated: nearest, bilinear, bicubic or lanczos."""
    random_crop: bool = True
    """Augmentation: a part of random size, shape and place instead of the centre."""
    min_area: float = 0.08
    """The least share of the picture a random crop covers."""
    flip: bool = True
    """Augmentation: every other picture mirrored, left to right."""

    def __post_init__(self) -> None:
        if self.channels not in _MODES:
            raise InputError(f"channels is {self.channels!r}; wanted 1 (grey) or 3 (colours)")
        check_known(self.resample, _FILTERS, "resample")
        if not 0 < self.min_area <= 1:
            raise InputError(f"min_area is {self.min_area!r}; wanted a share above 0 and at most 1")
        for name in ("resize", "crop"):
            object.__setattr__(self, name, _side_or_sides(name, getattr(self, name)))
        for name in ("mean", "std"):
            object.__setattr__(self, name, _per_channel(name, getattr(self, name), self.channels))
        if (self.mean is None) != (self.std is None):
            raise InputError(f"mean is {self.mean} and std is {self.std}; give both or neither")

    @classmethod
    def small(cls, size: int | tuple[int, int] | None = None, channels: int = 1) -> "Preprocessing":
        """The preprocessing of small pictures: values in [0, 1], at a given size, and nothing else.

        Parameters
        ----------
        size : int or tuple of int, optional
            The side, or (height, width), that pictures are brought to; None keeps theirs.
        channels : int
            1 for grey, 3 for colours.

        Returns
        -------
        Preprocessing
            One that does not augment.
        """
        size = (size, size) if isinstance(size, int) else size
        return cls(channels, size, None, None, None, random_crop=False, flip=False)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Preprocessing":
        """The preprocessing whose fields `to_dict` gave."""
        for name in values:
            check_name(name, sorted(field.name for field in fields(cls)), "field", "of preprocessing")
        check_options(cls.__init__, values)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, as JSON can hold it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def at_size(self, size: int) -> "Preprocessing":
        """This preprocessing at another final size; the margin around the crop, or the picture, keeps its proportion.

        Parameters
        ----------
        size : int
            The new side of what the encoder is given, in pixels; the shorter one, if nothing is cropped.

        Returns
        -------
        Preprocessing
            With `resize` and `crop` changed.

        Examples
        --------
        >>> Preprocessing().at_size(112).resize
        128
        """
        if self.crop is None or self.resize is None:
            height, width = (size, size) if self.resize is None else _pair(self.resize)
            scale = size / min(height, width)
            return replace(self, resize=(round(height * scale), round(width * scale)), crop=None)
        scale = size / min(_pair(self.crop))
        if isinstance(self.resize, tuple):
            height, width = self.resize
            return replace(self, resize=(round(height * scale), round(width * scale)), crop=size)
        return replace(self, resize=round(self.resize * scale), crop=size)

    def check_channels(self, channels: int) -> None:
        """Raise InputError unless pictures are prepared with as many channels as an encoder takes."""
        if self.channels != channels:
            raise InputError(f"pictures get {self.channels} channels and the encoder takes {channels}; wanted the same")

    def keeps(self, height: int, width: int) -> bool:
        """Whether a grey picture of that size reaches the encoder as it is, its values scaled to [0, 1]."""
        untouched = self.channels == 1 and self.mean is None and self.crop is None
        return untouched and self.resize in (None, (height, width))

    def __call__(self, picture: Image.Image, rng: np.random.Generator | None = None) -> Tensor:
        """Prepare a picture.

        Parameters
        ----------
        picture : PIL.Image.Image
            Of any size and mode.
        rng : numpy.random.Generator, optional
            Augments the picture, and alone decides how; None treats it the same way every time.

        Returns
        -------
        Tensor of float32, shape (C, H, W)
            What the encoder takes.
        """
        picture = _as_mode(picture, _MODES[self.channels])
        if rng is not None and self.random_crop:
            picture = self._random_part(picture, rng)
        else:
            picture = self._centre(self._resized(picture))
        if rng is not None and self.flip and rng.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return self._scaled(picture)

    def part_seen(self, picture: Image.Image) -> Image.Image:
        """The part of a picture that reaches an encoder when nothing is augmented, with the picture's own pixels.

        Parameters
        ----------
        picture : PIL.Image.Image
            Of any size and mode.

        Returns
        -------
        PIL.Image.Image
            Of the same mode and resolution: places of a feature map lie evenly on it.

        Examples
        --------
        >>> Preprocessing(resize=256, crop=224).part_seen(Image.new("L", (512, 1024))).size
        (448, 448)
        """
        width, height = self._size_resized(picture)
        left, top, right, bottom = self._box(width, height)
        x, y = picture.width / width, picture.height / height  # pixels of the picture for each of the resized one
        return picture.crop((round(left * x), round(top * y), round(right * x), round(bottom * y)))

    def _resized(self, picture: Image.Image) -> Image.Image:
        size = self._size_resized(picture)
        return picture if size == picture.size else picture.resize(size, _FILTERS[self.resample])

    def _size_resized(self, picture: Image.Image) -> tuple[int, int]:
        """(width, height)."""
        width, height = picture.size
        if self.resize is None:
            return width, height
        if isinstance(self.resize, tuple):
            return self.resize[1], self.resize[0]
        return (
            max(1, int(self.resize * width / min(width, height))),
            max(1, int(self.resize * height / min(width, height))),
        )

    def _centre(self, picture: Image.Image) -> Image.Image:
        return picture if self.crop is None else picture.crop(self._box(*picture.size))  # what lies outside is black

    def _box(self, width: int, height: int) -> tuple[int, int, int, int]:
        """(left, top, right, bottom) of what is cut from a resized picture of that size; it may reach beyond it."""
        if self.crop is None:
            return 0, 0, width, height
        tall, wide = _pair(self.crop)
        left, top = (width - wide) // 2, (height - tall) // 2
        return left, top, left + wide, top + tall

    def _random_part(self, picture: Image.Image, rng: np.random.Generator) -> Image.Image:
        """A random part at its final size.

        It is cut from the full picture: shares of the area are the same before and after a resize, and pixels are
        interpolated once instead of twice.
        """
        final = self.crop or self.resize
        height, width = (picture.height, picture.width) if final is None else _pair(final)
        box = _random_box(picture.width, picture.height, self.min_area, rng)
        return picture.resize((width, height), _FILTERS[self.resample], box=box)

    def _scaled(self, picture: Image.Image) -> Tensor:
        pixels = as_pictures(np.atleast_3d(np.asarray(picture)).transpose(2, 0, 1))  # (C, H, W)
        if self.mean is None:
            return pixels.contiguous()
        mean, std = (torch.tensor(values)[:, None, None] for values in (self.mean, self.std))  # (C, 1, 1)
        return ((pixels - mean) / std).contiguous()


def as_pictures(pixels: np.ndarray) -> Tensor:
    """Scale pixels to values in [0, 1].

    Parameters
    ----------
    pixels : ndarray of uint8, any shape
        From 0, black, to 255, white.

    Returns
    -------
    Tensor of float32
        Of the same shape.
    """
    return torch.from_numpy(pixels.astype(np.float32) / 255)


def _random_box(width: int, height: int, min_area: float, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of a random part: area uniform, log of the aspect ratio uniform."""
    for _ in range(_ATTEMPTS):
        area = width * height * rng.uniform(min_area, 1)
        ratio = math.exp(rng.uniform(math.log(_RATIOS[0]), math.log(_RATIOS[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
            return left, top, left + w, top + h
    # A very long picture: the largest centred part of an allowed shape.
    w, h = min(width, max(1, round(height * _RATIOS[1]))), min(height, max(1, round(width / _RATIOS[0])))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def _as_mode(picture: Image.Image, mode: str) -> Image.Image:
    if picture.mode.startswith("I"):  # 16 bits a pixel, which Pillow would clip at 255
        picture = Image.fromarray((np.asarray(picture).clip(0, 65535) // 257).astype(np.uint8))
    return picture if picture.mode == mode else picture.convert(mode)


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _side_or_sides(name: str, value: Any) -> int | tuple[int, int] | None:
    if value is None:
        return None
    sides = list(value) if isinstance(value, list | tuple) else [value]
    if len(sides) not in (1, 2) or any(not _is_side(side) for side in sides):
        raise InputError(f"{name} is {value!r}; wanted 1 to {_LONGEST_SIDE:,} pixels, (height, width) or None")
    return (sides[0], sides[1]) if len(sides) == 2 else sides[0]


def _is_side(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LONGEST_SIDE


def _per_channel(name: str, values: Any, channels: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    numbers = tuple(float(value) for value in values)
    usable = all(math.isfinite(number) and (name != "std" or number >= _LEAST_STD) for number in numbers)
    if len(numbers) != channels or not usable:
        wanted = f"{channels} number{'s' * (channels > 1)}{' above 0' * (name == 'std')}"
        raise InputError(f"{name} is {numbers}; wanted {wanted}, one for each channel")
    return numbers
