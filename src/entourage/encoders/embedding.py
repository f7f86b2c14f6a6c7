"""Many pictures through an encoder: decoded in parallel, embedded batch by batch, in memory or shard by shard.

N items, d dimensions.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from entourage.data.batches import PictureBatches
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import CallableEncoder, HuggingFaceEncoder
from entourage.encoders.vectors import check_takes
from entourage.errors import EntourageWarning, InputError
from entourage.runtime.devices import device_named
from entourage.runtime.progress import Progress

__all__ = ["embed", "embed_shards", "shard_rows"]

Encoder = nn.Module | CallableEncoder


def embed(
    encoder: Encoder,
    images,
    *,
    at_once: int | None = None,
    workers: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> np.ndarray:
    """Vectors (N, d) float32 of an image set, of pixels (N, H, W[, 3]) uint8, or of a list a CallableEncoder takes.

    An Embeddings set goes through an encoder of vectors.
    A picture that cannot be decoded gets a row of NaN and a warning; with `strict` it raises CorruptImage.
    at_once: pictures in a batch; workers: decoding threads; device: where the encoder is moved to, if
    given: auto, cpu, cuda, cuda:1.
    """
    if not len(images):
        raise InputError("there are 0 pictures to embed; at least one is needed")
    corrupt: list = []
    everything = embed_shards(
        encoder,
        images,
        shard_size=len(images),
        at_once=at_once,
        workers=workers,
        device=device,
        progress=progress,
        strict=strict,
        corrupt=corrupt,
    )
    rows, vectors = next(everything)
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
    encoder: Encoder,
    images,
    *,
    shard_size: int = 4096,
    shards: Iterable[int] | None = None,
    at_once: int | None = None,
    workers: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
    strict: bool = False,
    corrupt: list | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows (n,), vectors (n, d)) of one shard of at most `shard_size` items after the other.

    shards: the numbers of those to do, for a run that goes on after an interruption; default: all. Pictures that
    cannot be decoded are missing from `rows`, and their paths are appended to `corrupt`; a shard that has lost all its
    pictures comes as empty arrays.
    """
    check_takes(encoder, images)
    planned = shard_rows(len(images), shard_size)
    numbers = range(len(planned)) if shards is None else list(shards)
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
        seen, vectors = [], []
        for batch_rows, batch_vectors in _embedded(encoder, images, batches, workers, strict, corrupt):
            seen.append(batch_rows)
            vectors.append(batch_vectors)
            if progress:
                progress("embedding", done + int(batch_rows[-1] - rows[0]) + 1, total)
        done += len(rows)
        if progress:
            progress("embedding", done, total)
        yield (np.concatenate(seen), np.concatenate(vectors)) if seen else _nothing(encoder)


def shard_rows(count: int, shard_size: int) -> list[np.ndarray]:
    """The rows of each shard of `count` items.

    >>> [rows.tolist() for rows in shard_rows(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    if shard_size < 1:
        raise InputError(f"shard_size is {shard_size}; wanted 1 or more items in a shard")
    return [np.arange(start, min(start + shard_size, count)) for start in range(0, count, shard_size)]


class PixelSet:
    """Pixels in memory, (N, H, W) grey or (N, H, W, 3) colours, as pictures."""

    def __init__(self, pixels: np.ndarray):
        if pixels.dtype != np.uint8 or not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] == 3)):
            raise InputError(
                f"pixels are {pixels.dtype} of shape {pixels.shape}; wanted uint8 of (N, H, W) or (N, H, W, 3)"
            )
        self.pixels = pixels

    def __len__(self) -> int:
        return len(self.pixels)

    def picture(self, row: int) -> Image.Image:
        return Image.fromarray(self.pixels[row])


def _embedded(
    encoder, images, batches: list, workers, strict: bool, corrupt
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, vectors) of each batch."""
    if isinstance(encoder, CallableEncoder):
        return _by_callable(encoder, images, batches, workers, strict, corrupt)
    images = PixelSet(images) if isinstance(images, np.ndarray) else images
    preprocessing = getattr(encoder, "preprocessing", None) or Preprocessing.small()
    pictures = PictureBatches(images, batches, preprocessing, workers=workers, strict=strict, corrupt=corrupt)
    return ((batch.rows, _vectors(encoder, batch.pictures)) for batch in pictures)


@torch.no_grad()
def _vectors(encoder: nn.Module, pictures: Tensor) -> np.ndarray:
    weight = next(encoder.parameters(), pictures)
    return encoder(pictures.to(weight.device)).cpu().numpy()


def _by_callable(encoder: CallableEncoder, items, batches, workers, strict, corrupt) -> Iterator:
    if isinstance(items, Sequence):  # texts, or whatever it is made for
        yield from ((rows, encoder.encode([items[row] for row in rows])) for rows in batches)
        return
    images = PixelSet(items) if isinstance(items, np.ndarray) else items
    pictures = {}

    def keep(picture: Image.Image, row: int) -> Tensor:
        """The picture itself is wanted: the tensor that decoding passes on stays empty."""
        pictures[row] = picture
        return torch.empty(0)

    for rows, _ in _decoded(images, batches, keep, workers, strict, corrupt):
        yield rows, encoder.encode([pictures.pop(int(row)) for row in rows])


def _decoded(images, batches, transform, workers, strict, corrupt) -> Iterator[tuple[np.ndarray, Tensor]]:
    from entourage.data.decoding import decoded

    options = {} if workers is None else {"workers": workers}
    return decoded(images, batches, transform, strict=strict, corrupt=corrupt, **options)


def _usual_batch(encoder: Encoder) -> int:
    """Few of the large pictures of a large model: a batch of 256 would take gigabytes."""
    encoder = getattr(encoder, "encoder", encoder)  # inside its slices
    return 32 if isinstance(encoder, HuggingFaceEncoder) else 256


def _nothing(encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.empty((0, encoder.dim or 0), np.float32)
