"""Neighbors: which gallery items are nearest to each query."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.values.columns import BoolArray, IntArray, set_frozen

__all__ = ["Neighbors"]


@dataclass(frozen=True, eq=False, init=False)
class Neighbors:
    """The k nearest gallery items of each query, nearest first.

    Parameters
    ----------
    rows : array-like of shape (N, k)
        Row numbers of the gallery.
    similarities : array-like of shape (N, k)
        How similar each neighbour is to its query; never increasing along a row.
    method : str, default "exact"
        How they were found, as protocols name it.

    Raises
    ------
    InputError
        If the shapes differ, a row number is negative, or similarities increase along a row.

    Examples
    --------
    >>> Neighbors(rows=[[1, 2], [0, 2]], similarities=[[0.9, 0.5], [0.9, 0.4]])
    Neighbors(2 queries, k = 2, median cosine 0.900 of the first, 0.450 of the last)
    """

    rows: NDArray[np.int64]
    """(N, k) row numbers of the gallery."""
    similarities: NDArray[np.float32]
    """(N, k) cosine similarities, never increasing along a row."""
    method: str
    """How they were found: "exact", or by what approximation and with what recall."""

    def __init__(self, rows: ArrayLike, similarities: ArrayLike, method: str = "exact") -> None:
        found = np.ascontiguousarray(rows, np.int64)
        similar = np.ascontiguousarray(similarities, np.float32)
        if found.ndim != 2 or found.shape != similar.shape:
            raise InputError(f"rows have shape {found.shape} and similarities {similar.shape}; both must be (N, k)")
        if found.size and found.min() < 0:
            raise InputError(f"neighbour row {found.min()} is negative; rows count from 0")
        if (np.diff(similar, axis=1) > 0).any():
            raise InputError("similarities increase along a row, but neighbours are listed nearest first: sort them")
        set_frozen(self, rows=found, similarities=similar, method=method)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        if not self.rows.size:
            return f"Neighbors({len(self):,} queries, k = {self.k})"
        first, last = (float(np.median(self.similarities[:, column])) for column in (0, -1))
        cosines = f"median cosine {first:.3f} of the first, {last:.3f} of the last"
        return f"Neighbors({len(self):,} queries, k = {self.k}, {cosines})"

    @property
    def k(self) -> int:
        """The number of neighbours of each query."""
        return int(self.rows.shape[1])

    def first(self, k: int) -> "Neighbors":
        """The nearest of each list.

        Parameters
        ----------
        k : int
            How many are kept, at most.

        Returns
        -------
        Neighbors
        """
        return Neighbors(self.rows[:, :k], self.similarities[:, :k], self.method)

    def kept_in(self, other: "Neighbors") -> IntArray:
        """Count how many of each query's neighbours are among its neighbours in `other`.

        Parameters
        ----------
        other : Neighbors
            Neighbours of the same N queries in the same gallery; any number of them.

        Returns
        -------
        array of shape (N,)

        Examples
        --------
        >>> before, after = Neighbors([[1, 2]], [[0.9, 0.8]]), Neighbors([[3, 1]], [[0.9, 0.8]])
        >>> before.kept_in(after).tolist()
        [1]
        """
        shared: BoolArray = (self.rows[:, :, None] == other.rows[:, None, :]).any(axis=2)
        return np.asarray(shared.sum(axis=1))
