"""What every vector store offers, whichever engine is behind it.

Refined vectors go to a twin of what was read: a table, collection or index file of the same ids and other fields,
called NAME_refined. The original is only ever read, so that its rows, indexes and readers stay as they are.

N items, d dimensions.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import EntourageError, StoreError, few, is_full_disk
from entourage.values import FloatArray, LabelArray

__all__ = [
    "BATCH",
    "Address",
    "Refined",
    "Store",
    "check_held",
    "chosen_column",
    "engine_faults",
    "from_environment",
    "is_filling",
    "kept_keys",
    "twin_name",
]

BATCH = 1024
"""Rows that are read, or written, at a time."""
_VECTOR_NAMES = ("vector", "vectors", "embedding", "embeddings")


@dataclass(frozen=True)
class Address:
    """Where a store is: the parts of ENGINE://PLACE/NAME."""

    url: str
    """As the user wrote it."""
    place: str
    """A folder or a file, or host:port."""
    name: str
    """The table or collection."""
    secure: bool = False
    """Whether a server is spoken to by https."""

    @property
    def local(self) -> bool:
        """Whether the place is on this machine's disk: it is there, or is written as a path."""
        return self.place.startswith(("/", ".", "~")) or self.path.exists()

    @property
    def path(self) -> Path:
        """The place as a path."""
        return Path(self.place).expanduser()

    def server(self, port: int) -> str:
        """The place as the address of a server, at the usual port if none is named."""
        scheme, named = ("https", 443) if self.secure else ("http", port)
        return f"{scheme}://{self.place}" if ":" in self.place else f"{scheme}://{self.place}:{named}"


@dataclass(frozen=True, eq=False)
class Refined:
    """Refined vectors of the N items of a store, ready to be written back."""

    keys: LabelArray
    """(N,) the items, as `Store.batches` named them."""
    vectors: NDArray[np.floating[Any]]
    """(N, d) unit vectors; may be a memory-mapped file."""
    tag: str
    """A short word that is the same whenever this refinement is resumed, and different for any other."""

    def __len__(self) -> int:
        return len(self.keys)


class Store(ABC):
    """Vectors that live in a table, a collection or an index: read in batches, refined ones written to a twin.

    Use it in a `with` block, or call `close`.
    """

    url: str
    """The address it was opened by."""
    column: str
    """The column, field or named vector that is read; empty where there is only one."""
    dim: int
    """d, the number of dimensions."""
    refined_url: str
    """The address that the refined vectors are to have."""

    @abstractmethod
    def __len__(self) -> int:
        """How many items it holds."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Something that is the same as long as nothing was written to the store, as far as its engine tells."""

    @property
    @abstractmethod
    def beside(self) -> Path:
        """A name for a folder on this machine in which work on this store can be kept."""

    @abstractmethod
    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        """Read all items.

        Parameters
        ----------
        size : int
            How many at a time, about.

        Yields
        ------
        keys : array of shape (n,)
            What the store knows them by: whole numbers or texts.
        vectors : array of shape (n, d)
            As they are, of any length.
        """

    @abstractmethod
    def has_refined(self) -> bool:
        """Whether there is something of the name that the refined vectors are to have."""

    def check_twin(self) -> None:  # noqa: B027  # of most engines there is nothing to ask
        """Refuse to replace what has that name but was not written by us: asked before the work, and at its end."""

    @abstractmethod
    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        """Write refined vectors; readers see all of them or none.

        Parameters
        ----------
        refined : Refined
            What to write. Items that the store no longer holds are left out.
        start : int
            How many of them an earlier call with the same tag has written.
        done : callable, optional
            Called with the number that is written so far.

        Returns
        -------
        int
            How many items the twin holds: as many as were refined, less those that are gone.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the engine."""

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {len(self):,} items of {self.dim} dimensions)"


def twin_name(name: str) -> str:
    """What the refined vectors of a table, collection or file are called.

    >>> twin_name("items")
    'items_refined'
    """
    return f"{name}_refined"


def is_filling(name: str, twin: str) -> bool:
    """Whether a collection is one that a twin is, or was to be: its name, the tag of a refinement, maybe a number.

    >>> is_filling("items_refined_0a1b2c3d4e", "items_refined"), is_filling("items_refined_old", "items_refined")
    (True, False)
    """
    return re.fullmatch(re.escape(twin) + r"_[0-9a-f]{10}(_[2-9])?", name) is not None


def kept_keys(url: str, found: Sequence[Any], dtype: Any = None) -> LabelArray:
    """Keys as an array that gives each of them back as it was: numpy rounds, cuts and converts what it cannot hold.

    Parameters
    ----------
    url : str
        The store, for messages.
    found : sequence of int or str
        As the engine gave them.
    dtype : dtype, optional
        That of the array.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> kept_keys("qdrant://shop/items", [1, 2**63 + 1], np.uint64).tolist()
    [1, 9223372036854775809]
    """
    keys: LabelArray = np.array(found, dtype)
    for key, kept in zip(found, keys.tolist(), strict=True):
        if key != kept or type(key) is not type(kept):
            raise StoreError(f"{url}: the id {key!r} would become {kept!r}; wanted whole numbers or texts: rename it")
    return keys


def check_held(url: str, held: int, written: int) -> None:
    """Refuse to show a twin that has lost some of what was written to it."""
    if held < written:
        raise StoreError(f"{url} holds {held} of {written} items that were written to it; resume (--resume)")


def chosen_column(url: str, wanted: str | None, vectors: Sequence[str], others: Sequence[str]) -> str:
    """Which column holds the vectors: the one that is asked for, the only one, or the one of a usual name.

    Parameters
    ----------
    url : str
        The store, for messages.
    wanted : str, optional
        The column that was asked for.
    vectors, others : sequence of str
        The columns that hold vectors, and those that do not.

    Returns
    -------
    str
    """
    if wanted is not None:
        if wanted in vectors:
            return wanted
        seen = f"holds no vectors in '{wanted}'" if wanted in others else f"has no '{wanted}'"
        raise StoreError(f"{url} {seen}; wanted one of its vectors: {few(vectors, 'columns')}")
    usual = [name for name in _VECTOR_NAMES if name in vectors]
    if len(vectors) == 1 or usual:
        return vectors[0] if len(vectors) == 1 else usual[0]
    if not vectors:
        raise StoreError(f"{url} has no vectors, only {few(others, 'columns')}; wanted a column of vectors: add one")
    raise StoreError(f"{url} has the vectors {few(vectors, 'columns')}; wanted one of them: name it by --column")


@contextmanager
def engine_faults(url: str) -> Iterator[None]:
    """Turn whatever an engine raises in the block into a StoreError of one sentence."""
    try:
        yield
    except (EntourageError, MemoryError):
        raise
    except Exception as error:  # each engine has its own tree of errors, some of them none
        if is_full_disk(error):
            raise StoreError(f"there is no space left on the disk for {url}; free some, and try again") from error
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise StoreError(f"{url} does not work: {text}; check its address, and that it is running") from error


def from_environment(name: str) -> str | None:
    """A token that a server wants, if the environment has one."""
    return os.environ.get(name) or None
