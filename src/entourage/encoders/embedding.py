"""Many pictures through an encoder: decoded in parallel, embedded batch by batch, in memory or shard by shard.

N items, d dimensions.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from entourage.data.batches import PictureBatches
from entourage.data.decoding import Asked, decoded
from entourage.data.image_set import ImageSet, Items
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import CallableEncoder, HuggingFaceEncoder
from entourage.encoders.protocol import Encoder
from entourage.encoders.vectors import check_takes
from entourage.errors import EntourageWarning, InputError, ModelError
from entourage.runtime.devices import device_named
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.values import brief, without_direction

__all__ = ["Embeddable", "Shard", "embed", "embed_shards", "shard_rows"]

Embeddable = Items | np.ndarray | Sequence[Any]
"""An image set or Embeddings; pixels (N, H, W) or (N, H, W, 3) uint8; a list of what a CallableEncoder takes."""


class Shard(NamedTuple):
    """The embeddings of some items."""

    rows: np.ndarray
    """(n,) those that could be decoded, ascending."""
    vectors: np.ndarray
    """(n, d) float32 unit vectors."""
    corrupt: list[str]
    """Paths of the pictures that cannot be decoded, and are missing from the rows."""

    def __repr__(self) -> str:
        return brief(self)


@shows_progress
def embed(
    encoder: Encoder | CallableEncoder,
    images: Embeddable,
    *,
    at_once: int | None = None,
    workers: int | None = None,
    device: str | torch.device | None = None,
    progress: ShowProgress = None,
    strict: bool = False,
) -> np.ndarray:
    """Embed items, in memory.

    Parameters
    ----------
    encoder : Encoder or CallableEncoder
        An encoder of pictures, or of vectors for an Embeddings set.
    images : ImageSet, Embeddings, ndarray of uint8 or sequence
        N items; pixels are (N, H, W) or (N, H, W, 3); a sequence holds what a CallableEncoder takes.
    at_once : int, optional
        Pictures in a batch; default: 256, or 32 for a Hugging Face model.
    workers : int, optional
        Number of threads that decode; default: one per core.
    device : str or torch.device, optional
        Where the encoder is moved to: auto, cpu, cuda or cuda:1; default: it stays.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).
    strict : bool
        Whether a picture that cannot be decoded raises CorruptImage; if not, it gets a row of NaN, and a warning.

    Returns
    -------
    ndarray of float32, shape (N, d)
        Unit vectors, in the order of the items.
    """
    if not len(images):
        raise InputError("there are 0 pictures to embed; wanted at least one")
    options: dict[str, Any] = {"at_once": at_once, "workers": workers, "device": device, "strict": strict}
    rows, vectors, corrupt = next(embed_shards(encoder, images, shard_size=len(images), progress=progress, **options))
    if len(rows) == len(images):
        return vectors
    if not len(rows):
        raise InputError(
            f"none of the {len(images)} pictures can be decoded ({corrupt[0]} is the first); check the files"
        )
    warnings.warn(
        f"{len(images) - len(rows)} of {len(images)} pictures cannot be decoded ({corrupt[0]} is the first): their "
        "rows are NaN; leave them out, or repair the files",
        EntourageWarning,
        stacklevel=2,
    )
    aligned = np.full((len(images), vectors.shape[1]), np.nan, np.float32)
    aligned[rows] = vectors
    return aligned


def embed_shards(
    encoder: Encoder | CallableEncoder,
    images: Embeddable,
    *,
    shard_size: int = 4096,
    shards: Iterable[int] | None = None,
    at_once: int | None = None,
    workers: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> Iterator[Shard]:
    """Embed items shard by shard, so that memory holds one shard at a time.

    Parameters
    ----------
    encoder, images, at_once, workers, device, progress
        As in `embed`.
    shard_size : int
        Items in a shard; the last may have fewer.
    shards : iterable of int, optional
        The numbers of the shards to embed, to resume an interrupted run; default: all.
    strict : bool
        Whether a picture that cannot be decoded raises CorruptImage; if not, it is missing from its shard, which names
        it. A shard that has lost all its pictures comes with empty arrays.

    Yields
    ------
    Shard
        rows (n,), vectors (n, d) and the paths of corrupt pictures.
    """
    check_takes(encoder, images)
    planned = shard_rows(len(images), shard_size)
    numbers = list(range(len(planned)) if shards is None else shards)
    if not set(numbers) <= set(range(len(planned))):
        raise InputError(f"shards are {numbers}; wanted numbers from 0 to {len(planned) - 1}, one for each shard")
    chosen = [planned[number] for number in numbers]
    at_once = _usual_batch(encoder) if at_once is None else at_once
    if at_once < 1:
        raise InputError(f"at_once is {at_once}; wanted 1 or more pictures in a batch")
    if isinstance(encoder, nn.Module):
        encoder.eval()
        if device is not None:
            encoder.to(device_named(device))
    done, total = 0, sum(map(len, chosen))
    for rows in chosen:
        batches = [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
        parts: list[Shard] = []
        for part in _embedded(encoder, images, batches, workers, strict):
            parts.append(part)
            if progress and len(part.rows):
                progress("embedding", done + int(part.rows[-1] - rows[0]) + 1, total)
        done += len(rows)
        if progress:
            progress("embedding", done, total)
        yield _joined(parts, encoder)


def shard_rows(count: int, shard_size: int) -> list[np.ndarray]:
    """The rows of each shard.

    Parameters
    ----------
    count : int
        How many items there are.
    shard_size : int
        Items in a shard.

    Returns
    -------
    list of ndarray of int
        Consecutive rows; the last shard may have fewer than the others.

    Examples
    --------
    >>> [rows.tolist() for rows in shard_rows(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    if shard_size < 1:
        raise InputError(f"shard_size is {shard_size}; wanted 1 or more items in a shard")
    return [np.arange(start, min(start + shard_size, count)) for start in range(0, count, shard_size)]


class PixelSet:
    """Pixels in memory as an image set.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (N, H, W) or (N, H, W, 3)
        Grey, or in colour.
    """

    labels = None

    def __init__(self, pixels: np.ndarray) -> None:
        if pixels.dtype != np.uint8 or not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] == 3)):
            raise InputError(
                f"pixels are {pixels.dtype} of shape {pixels.shape}; wanted uint8 of (N, H, W) or (N, H, W, 3)"
            )
        self.pixels = pixels

    @property
    def ids(self) -> np.ndarray:
        """(N,) the rows as text."""
        return np.arange(len(self.pixels)).astype(str)

    def __len__(self) -> int:
        return len(self.pixels)

    def picture(self, row: int) -> Image.Image:
        """One picture, grey or in colour."""
        return Image.fromarray(self.pixels[row])

    def take(self, rows: Any) -> "PixelSet":
        """The given rows (n,), in the given order."""
        return PixelSet(self.pixels[rows])


def _embedded(
    encoder: Encoder | CallableEncoder,
    images: Embeddable,
    batches: list[np.ndarray],
    workers: int | None,
    strict: bool,
) -> Iterator[Shard]:
    """One part for each batch of rows, or fewer: what was corrupt is named by one of them."""
    items: Any = PixelSet(images) if isinstance(images, np.ndarray) else images
    if not isinstance(encoder, CallableEncoder):
        return _by_module(encoder, items, batches, workers, strict)
    if isinstance(items, Sequence):  # texts, or whatever it is made for
        return (Shard(rows, encoder.encode([items[row] for row in rows]), []) for rows in batches)
    return _by_callable(encoder, items, batches, workers, strict)


def _by_module(
    encoder: Encoder, items: Items, batches: list[np.ndarray], workers: int | None, strict: bool
) -> Iterator[Shard]:
    preprocessing = getattr(encoder, "preprocessing", None) or Preprocessing.small()
    pictures = PictureBatches(items, batches, preprocessing, workers=workers, strict=strict)
    for batch in pictures:
        yield Shard(batch.rows, _vectors(encoder, batch.pictures), [])
    yield Shard(*_nothing(encoder), pictures.corrupt)


@torch.no_grad()
def _vectors(encoder: Encoder, pictures: Tensor) -> np.ndarray:
    weight: Tensor = next(encoder.parameters(), pictures)
    return encoder(pictures.to(weight.device)).cpu().numpy()


def _by_callable(
    encoder: CallableEncoder, images: ImageSet, batches: list[np.ndarray], workers: int | None, strict: bool
) -> Iterator[Shard]:
    pictures: dict[int, Image.Image] = {}

    def keep(picture: Image.Image, asked: Asked) -> Tensor:
        """The picture itself is wanted: the tensor that decoding passes on stays empty."""
        pictures[asked.row] = picture
        return torch.empty(0)

    for batch in decoded(images, batches, keep, workers=workers, strict=strict):
        found = [pictures.pop(int(row)) for row in batch.rows]
        vectors = encoder.encode(found) if found else _nothing(encoder)[1]
        yield Shard(batch.rows, vectors, list(batch.corrupt))


def _usual_batch(encoder: Encoder | CallableEncoder) -> int:
    """Few of the large pictures of a large model: a batch of 256 would take gigabytes."""
    inner = getattr(encoder, "encoder", encoder)  # inside its slices
    return 32 if isinstance(inner, HuggingFaceEncoder) else 256


def _joined(parts: list[Shard], encoder: Encoder | CallableEncoder) -> Shard:
    corrupt = dict.fromkeys(path for part in parts for path in part.corrupt)
    full = [part for part in parts if len(part.rows)]
    if not full:
        return Shard(*_nothing(encoder), list(corrupt))
    rows, vectors = (np.concatenate(values) for values in list(zip(*full, strict=True))[:2])
    unusable = without_direction(vectors)
    if unusable:
        raise ModelError(
            f"the encoder gives vectors that cannot be compared: {unusable}, counted from item {rows[0]}; wanted "
            "finite numbers that are not all 0: train it again, or leave such items out"
        )
    return Shard(rows, vectors, list(corrupt))


def _nothing(encoder: Encoder | CallableEncoder) -> tuple[np.ndarray, np.ndarray]:
    """Rows (0,) and vectors (0, d)."""
    return np.empty(0, np.int64), np.empty((0, getattr(encoder, "dim", None) or 0), np.float32)
