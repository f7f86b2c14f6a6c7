"""Work that several callers would do on the same arrays, done once.

    with sharing(SharedWork()):
        ...                       what is asked for by `shared` is kept, and given to whoever asks for it again

Outside such a block nothing is kept. Arrays are known by where they lie in memory, so they must be frozen, as those of
Embeddings are; those that something is kept of are kept with it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np

__all__ = ["SharedWork", "digest", "is_shared", "shared", "sharing", "size_of"]

_Result = TypeVar("_Result")


class SharedWork:
    """Results by what they are of; those that were not asked for longest are forgotten first.

    Parameters
    ----------
    most : int
        How many bytes of arrays are kept; the last result is, whatever its size.
    """

    def __init__(self, most: int = 2**29) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[tuple[np.ndarray, ...], Any]] = OrderedDict()

    def find(self, name: Hashable, arrays: tuple[np.ndarray, ...]) -> Any:
        """What is kept under a name of these arrays, or None."""
        key = _key(name, arrays)
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][1]

    def keep(self, name: Hashable, arrays: tuple[np.ndarray, ...], result: Any) -> None:
        """Keep a result, in the place of what was kept under its name."""
        self._kept[_key(name, arrays)] = arrays, result
        while len(self._kept) > 1 and sum(size_of(part) for part in self._kept.values()) > self._most:
            self._kept.popitem(last=False)


_WORK: ContextVar[SharedWork | None] = ContextVar("shared work", default=None)


@contextmanager
def sharing(work: SharedWork) -> Iterator[None]:
    """Share what is asked for inside the block."""
    token = _WORK.set(work)
    try:
        yield
    finally:
        _WORK.reset(token)


def is_shared(*arrays: np.ndarray) -> bool:
    """Whether results of these arrays would be kept."""
    return _WORK.get() is not None and not any(array.flags.writeable for array in arrays)


def shared(
    name: Hashable,
    arrays: tuple[np.ndarray, ...],
    compute: Callable[[], _Result],
    enough: Callable[[_Result], bool] = lambda result: True,
) -> _Result:
    """Give a result that is kept, or compute and keep it.

    Parameters
    ----------
    name : hashable
        What is computed, with all that it depends on besides the arrays.
    arrays : tuple of ndarray
        What it is computed from. Nothing is kept of arrays that could change.
    compute : callable
    enough : callable
        Whether a result that is kept will do; else it is computed again and replaced.

    Returns
    -------
    the result
        Not to be changed, as others may hold it.
    """
    work = _WORK.get()
    if work is None or not is_shared(*arrays):
        return compute()
    known: _Result | None = work.find(name, arrays)
    if known is None or not enough(known):
        known = compute()
        work.keep(name, arrays, known)
    return known


def digest(*arrays: np.ndarray) -> str:
    """What tells arrays from others by their content, wherever they lie."""
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(repr((array.shape, array.dtype)).encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def size_of(result: Any) -> int:
    """How many bytes the arrays of a result have, those that it holds as parts or attributes included."""
    if isinstance(result, np.ndarray):
        return result.nbytes
    if isinstance(result, tuple | list):
        return sum(map(size_of, result))
    parts = result if isinstance(result, dict) else getattr(result, "__dict__", {})
    return sum(map(size_of, parts.values()))


def _key(name: Hashable, arrays: tuple[np.ndarray, ...]) -> Hashable:
    return name, tuple((array.__array_interface__["data"][0], array.shape, array.strides) for array in arrays)
