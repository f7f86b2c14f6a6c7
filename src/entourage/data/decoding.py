"""Pictures decoded ahead of their use, in threads: Pillow lets go of Python's lock while it decodes.

rows of a batch -> picture, transform (each in a thread) -> a tensor of the batch, in the order asked for
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from entourage.errors import CorruptImage, InputError

__all__ = ["check_decodable", "decoded"]

_BATCHES_AHEAD = 2  # what waits in memory is bounded: the batch in use, and these
_CHECKED_AT_ONCE = 64


def decoded(
    images,
    batches_of_rows: Iterable[np.ndarray],
    transform: Callable[[object, int], Tensor],
    *,
    workers: int | None = None,
    strict: bool = False,
    corrupt: list | None = None,
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Batches of an image set as (rows (b,), pictures (b, C, H, W)), in order, the next ones decoded meanwhile.

    `transform(picture, row)` makes a tensor (C, H, W) of a PIL image; it runs in a thread, so whatever is random in it
    must come from the row. A corrupt image is left out of its batch and its path appended to `corrupt`, once; a batch
    of which nothing is left is passed over. With `strict` the first corrupt image raises CorruptImage.
    `workers` threads decode; default: one per core.
    """
    workers = _cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"workers is {workers}; wanted 1 or more threads")
    return _batches(images, iter(batches_of_rows), transform, workers, strict, [] if corrupt is None else corrupt)


def check_decodable(images, *, workers: int | None = None, progress=None) -> None:
    """Raise CorruptImage for the first picture of the set, in its order, that cannot be decoded."""
    if hasattr(images, "pixels") or hasattr(images, "vectors"):  # in memory
        return
    batches = np.split(np.arange(len(images)), range(_CHECKED_AT_ONCE, len(images), _CHECKED_AT_ONCE))
    for rows, _ in decoded(images, batches, lambda picture, row: torch.empty(0), workers=workers, strict=True):
        if progress:
            progress("checking pictures", int(rows[-1]) + 1, len(images))


def _batches(images, batches, transform, workers: int, strict: bool, corrupt: list) -> Iterator:
    def decode(row: int) -> Tensor:
        return transform(images.picture(row), row)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="decoding")
    ahead: deque[tuple[np.ndarray, list[Future]]] = deque()
    try:
        for rows in batches:
            rows = np.asarray(rows)
            ahead.append((rows, [pool.submit(decode, int(row)) for row in rows]))
            if len(ahead) > _BATCHES_AHEAD:
                yield from _finished(*ahead.popleft(), strict, corrupt)
        while ahead:
            yield from _finished(*ahead.popleft(), strict, corrupt)
    finally:  # also when the reader stops early, or is interrupted
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(rows: np.ndarray, futures: list[Future], strict: bool, corrupt: list) -> Iterator:
    """The batch, once its pictures are there; nothing if all of them are corrupt."""
    kept, pictures = [], []
    for row, future in zip(rows, futures, strict=True):
        try:
            pictures.append(future.result())
            kept.append(row)
        except CorruptImage as error:
            if strict:
                raise
            if error.path not in corrupt:
                corrupt.append(error.path)
    if not pictures:
        return
    shapes = {tuple(picture.shape) for picture in pictures}
    if len(shapes) > 1:
        raise InputError(f"the transform makes pictures of shapes {sorted(shapes)}; wanted one shape: resize or crop")
    yield np.array(kept, rows.dtype), torch.stack(pictures)


def _cores() -> int:
    """The processor's cores, shared among the processes that torchrun started on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
