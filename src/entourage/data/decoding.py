"""Pictures decoded ahead of their use, in threads: Pillow lets go of Python's lock while it decodes.

rows of a batch -> picture, transform (each in a thread) -> a tensor of the batch, in the order asked for
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from PIL import Image
from torch import Tensor

from entourage.data.image_set import ImageSet, Items
from entourage.errors import CorruptImage, InputError, few
from entourage.runtime.launch import launched
from entourage.runtime.progress import Progress

__all__ = ["Asked", "PictureBatch", "Transform", "check_decodable", "decoded"]

_BATCHES_AHEAD = 2  # what waits in memory is bounded: the batch in use, and these
_CHECKED_AT_ONCE = 64


class Asked(NamedTuple):
    """Where a picture was asked for: a row may be asked for more than once, even within a batch."""

    row: int
    """Its row in the image set."""
    batch: int
    """The number of the batch, from 0."""
    position: int
    """Its position in the batch, from 0."""


Transform = Callable[[Image.Image, Asked], Tensor]
"""From a picture, and where it was asked for, to a tensor (C, H, W)."""


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """Some rows of an image set with their pictures, or of Embeddings with their vectors."""

    rows: np.ndarray
    """(b,) those that could be decoded, in the order asked for."""
    pictures: Tensor
    """(b, C, H, W), or vectors (b, d)."""
    corrupt: tuple[str, ...] = ()
    """Paths of the pictures asked for that cannot be decoded."""

    def __len__(self) -> int:
        return len(self.rows)


def decoded(
    images: ImageSet,
    batches_of_rows: Iterable[ArrayLike],
    transform: Transform,
    *,
    workers: int | None = None,
    strict: bool = False,
) -> Iterator[PictureBatch]:
    """Decode batches of an image set, in order and ahead of their use.

    Parameters
    ----------
    images : ImageSet
        Where the pictures come from.
    batches_of_rows : iterable of array of int, shape (b,) each
        The rows of each batch.
    transform : callable
        `transform(picture, asked)` makes a tensor (C, H, W) of a PIL image. It runs in a thread, so whatever is random
        in it must follow from `asked`: the row, or the place in the batches.
    workers : int, optional
        Number of threads that decode; default: one per core.
    strict : bool
        Whether a picture that cannot be decoded raises CorruptImage. If not, it is left out of its batch, which names
        it; a batch of which nothing is left comes without rows.

    Yields
    ------
    PictureBatch
        One for each batch of rows.
    """
    workers = _cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"workers is {workers}; wanted 1 or more threads")
    return _batches(images, iter(batches_of_rows), transform, workers, strict)


def check_decodable(items: Items, *, workers: int | None = None, progress: Progress | None = None) -> None:
    """Refuse a set with a picture that cannot be decoded.

    Parameters
    ----------
    items : ImageSet or Embeddings
        What is in memory already passes.
    workers : int, optional
        Number of threads that decode; default: one per core.
    progress : Progress, optional
        Called as progress(title, done, total).

    Raises
    ------
    CorruptImage
        For the first such picture, in the order of the set.
    """
    if hasattr(items, "pixels") or hasattr(items, "vectors"):
        return
    batches = np.split(np.arange(len(items)), range(_CHECKED_AT_ONCE, len(items), _CHECKED_AT_ONCE))
    for batch in decoded(items, batches, lambda picture, asked: torch.empty(0), workers=workers, strict=True):
        if progress:
            progress("checking pictures", int(batch.rows[-1]) + 1, len(items))


def _batches(
    images: ImageSet, batches: Iterator[ArrayLike], transform: Transform, workers: int, strict: bool
) -> Iterator[PictureBatch]:
    def decode(asked: Asked) -> Tensor:
        return transform(images.picture(asked.row), asked)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="decoding")
    ahead: deque[tuple[np.ndarray, list[Future[Tensor]]]] = deque()
    try:
        for number, batch in enumerate(batches):
            rows = np.asarray(batch)
            asked = (Asked(int(row), number, position) for position, row in enumerate(rows))
            ahead.append((rows, [pool.submit(decode, each) for each in asked]))
            if len(ahead) > _BATCHES_AHEAD:
                yield _finished(*ahead.popleft(), strict)
        while ahead:
            yield _finished(*ahead.popleft(), strict)
    finally:  # also when the reader stops early, or is interrupted
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(rows: np.ndarray, futures: list[Future[Tensor]], strict: bool) -> PictureBatch:
    """The batch, once its pictures are there."""
    kept, pictures, corrupt = [], [], []
    for row, future in zip(rows, futures, strict=True):
        try:
            pictures.append(future.result())
            kept.append(row)
        except CorruptImage as error:
            if strict:
                raise
            corrupt.append(error.path)
    shapes = {tuple(picture.shape) for picture in pictures}
    if len(shapes) > 1:
        raise InputError(
            f"the transform makes pictures of shapes {few(sorted(shapes), 'shapes')}; wanted one shape: resize or crop"
        )
    stacked = torch.stack(pictures) if pictures else torch.empty(0)
    return PictureBatch(np.array(kept, rows.dtype), stacked, tuple(corrupt))


def _cores() -> int:
    """The processor's cores, shared among the processes that torchrun started on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // launched().local_world_size)
