"""The one place that draws from a seed: equal seeds give equal numbers.

    generator           numpy's numbers: batches, held-out classes, augmentation, samples
    torch_generator     torch's numbers where a function takes a generator
    seeded_weights      the first weights of a network; network_to_fill: of one whose weights are loaded next
    torch_randomness    what torch draws by itself inside a block, dropout for instance

A seed may be followed by a stream of whole numbers, the epoch for instance: streams of one length have numbers of their
own. (Zeros at the end do not count: the stream (1, 0) is the stream (1,).)

Layers and dropout of torch take no generator; drawing.py gives them one. Seeded work in several threads gives what it
gives alone, whatever else draws in the process, and the caller's random state stays as it was.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["generator", "network_to_fill", "seeded_weights", "torch_generator", "torch_randomness"]

Built = TypeVar("Built")


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
        Makes the network, drawing as torch's layers do.

    Returns
    -------
    Built
        What `build` returned.
    """
    from entourage.runtime.drawing import DrawingFrom

    with DrawingFrom(_torch_seed(seed, ())):
        return build()


def network_to_fill(build: Callable[[], Built]) -> Built:
    """Build a network whose weights are going to be loaded: its first ones are not drawn from the caller's state.

    Parameters
    ----------
    build : callable
        Makes the network.

    Returns
    -------
    Built
        What `build` returned.
    """
    return seeded_weights(0, build)


def torch_randomness(seed: int, *stream: int) -> AbstractContextManager[object]:
    """Let what torch draws in this thread follow from a seed and a stream inside the block.

    Parameters
    ----------
    seed : int
        0 or more.
    *stream : int
        Whole numbers, such as the epoch and the rank of the process, that tell apart what is drawn from one seed.

    Returns
    -------
    context manager
        The block; entered again, it goes on drawing where it was.
    """
    from entourage.runtime.drawing import DrawingWhereNeeded

    return DrawingWhereNeeded(_torch_seed(seed, stream))


def _torch_seed(seed: int, stream: tuple[int, ...]) -> int:
    """One number for a seed and its stream; a seed alone is taken as it is."""
    return int(np.random.SeedSequence([seed, *stream]).generate_state(1)[0]) if stream else int(seed)
