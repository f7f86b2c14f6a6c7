"""What an approximate search is made of: vectors that may be anywhere, and something that proposes neighbours."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from entourage.values import IntArray

__all__ = ["Candidates", "Vectors"]


class Vectors(Protocol):
    """Unit vectors (N, d), wherever they are."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | IntArray) -> NDArray[np.float32]: ...


class Candidates(Protocol):
    """What proposes neighbours."""

    @property
    def name(self) -> str:
        """What protocols call it."""

    def of(self, queries: NDArray[np.float32], rows: slice | IntArray, k: int) -> IntArray:
        """(n, k) gallery rows for queries (n, d), which are these rows of the set; -1 where there are fewer."""

    def widen(self) -> bool:
        """Search more widely from now on; False where that cannot be."""
