"""The one place that draws from a seed: equal seeds give equal numbers, and the caller's random state stays as it was.

    generator           numpy's numbers: batches, held-out classes, augmentation, samples
    torch_generator     torch's numbers where a function takes a generator
    seeded_weights      the first weights of a network
    torch_randomness    what torch draws by itself inside a block, dropout for instance

A seed may be followed by a stream of whole numbers, the epoch for instance: streams of one length have numbers of their
own. (Zeros at the end do not count: the stream (1, 0) is the stream (1,).)

Layers and dropout of torch draw from one state of the whole process and take no generator. `seeded_weights` and
`torch_randomness` therefore hold a lock of the process while that state is theirs: seeded work in several threads takes
turns, and gives what it gives alone. Code that draws from torch's global state without this module is not held back.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["generator", "seeded_weights", "torch_generator", "torch_randomness"]

Built = TypeVar("Built")

_torch_state = RLock()  # reentrant: a loss that mines draws inside an epoch that is seeded itself


def generator(seed: int, *stream: int) -> np.random.Generator:
    """A generator of numpy for a seed and, within it, a stream.

    Parameters
    ----------
    seed : int
        0 or more.
    *stream : int
        Whole numbers of 0 or more, such as the epoch, that tell apart what is drawn from one seed.

    Returns
    -------
    numpy.random.Generator
        A new one: two of the same seed and stream draw the same.

    Examples
    --------
    >>> generator(0).integers(100, size=3).tolist() == generator(0).integers(100, size=3).tolist()
    True
    >>> generator(0, 1).integers(100, size=3).tolist() == generator(0, 2).integers(100, size=3).tolist()
    False
    """
    return np.random.default_rng([seed, *stream])


def torch_generator(seed: int, *stream: int) -> "torch.Generator":
    """A generator of torch, on the processor, for the functions that take one.

    Parameters
    ----------
    seed : int
        0 or more.
    *stream : int
        Whole numbers that tell apart what is drawn from one seed.

    Returns
    -------
    torch.Generator
        A new one, apart from torch's global state.
    """
    import torch

    return torch.Generator().manual_seed(_torch_seed(seed, stream))


def seeded_weights(seed: int, build: Callable[[], Built]) -> Built:
    """Build a network whose first weights are drawn from a seed.

    Parameters
    ----------
    seed : int
        0 or more.
    build : callable
        Makes the network, drawing from torch's global state as torch's layers do.

    Returns
    -------
    Built
        What `build` returned.
    """
    with torch_randomness(seed):
        return build()


@contextmanager
def torch_randomness(seed: int, *stream: int) -> Iterator[None]:
    """Let torch's global state follow from a seed and a stream inside the block, and be what it was after it.

    Other threads that enter such a block wait until this one is left.

    Parameters
    ----------
    seed : int
        0 or more.
    *stream : int
        Whole numbers, such as the epoch and the rank of the process, that tell apart what is drawn from one seed.
    """
    import torch

    with _torch_state:
        # Seeding reaches every CUDA device in use, so the state of each of them is put back.
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(_torch_seed(seed, stream))
            yield


def _torch_seed(seed: int, stream: tuple[int, ...]) -> int:
    """One number for a seed and its stream; a seed alone is taken as it is."""
    return int(np.random.SeedSequence([seed, *stream]).generate_state(1)[0]) if stream else int(seed)
