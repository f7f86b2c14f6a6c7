"""The exact neighbours of a few queries, most of the gallery read at a quarter of its size.

A single query is compared with a gallery as fast as memory is read. So each vector is kept a second time, rounded to
whole numbers of 8 bits, with how far it was rounded. A product of rounded vectors is off by no more than that, which
tells who may be among the k nearest; those few are compared as they are. The result is that of exact search.

M items, d dimensions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entourage.runtime.jit import compiled
from entourage.runtime.threads import blocks, share_out
from entourage.values import BoolArray, IntArray

__all__ = ["Codes"]

_MOST = 127
_MOST_OF_QUERY = 4095  # sums of d products stay within 32 bits up to d = 4096
_MOST_DIMENSIONS = 4096
_ROUNDING = 1e-5  # of what is computed here in single precision
_TOO_MANY = 8  # where more than one of so many may be among the nearest, nothing is gained


@dataclass(frozen=True, eq=False)
class Codes:
    """Vectors in 8 bits a dimension."""

    values: NDArray[np.int8]
    """(M, d)"""
    scales: NDArray[np.float32]
    """(M,) what each has to be multiplied by."""
    errors: NDArray[np.float32]
    """(M,) how far each then is from what it was."""

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> "Codes | None":
        """Round unit vectors (M, d); None where they have too many dimensions."""
        if vectors.shape[1] > _MOST_DIMENSIONS:
            return None
        values = np.empty(vectors.shape, np.int8)
        scales, errors = np.empty(len(vectors), np.float32), np.empty(len(vectors), np.float32)
        for rows in blocks(len(vectors), 4096):
            scales[rows] = np.abs(vectors[rows]).max(axis=1) / _MOST
            values[rows] = np.rint(vectors[rows] / scales[rows, None])
            off = vectors[rows] - scales[rows, None] * values[rows]
            errors[rows] = np.sqrt(np.einsum("nd,nd->n", off, off))
        return cls(values, scales, errors)

    def take(self, rows: IntArray) -> "Codes":
        """Those of some vectors."""
        return Codes(self.values[rows], self.scales[rows], self.errors[rows])

    def after(self, vectors: NDArray[np.float32], came_from: IntArray, changed: BoolArray) -> "Codes":
        """The codes after some vectors have changed.

        Parameters
        ----------
        vectors : array of shape (M', d)
        came_from : array of shape (M',)
            The row that each vector had here; any where it has changed.
        changed : array of shape (M',)
            Which of them are others than here.

        Returns
        -------
        Codes
            What `Codes.of(vectors)` makes.
        """
        result, new = self.take(came_from), Codes.of(vectors[changed])
        if new is not None:
            result.values[changed], result.scales[changed], result.errors[changed] = new.values, new.scales, new.errors
        return result

    def candidates(self, query: NDArray[np.float32], k: int, hidden: int) -> IntArray | None:
        """Find the items that may be among the k nearest of a query.

        Parameters
        ----------
        query : array of shape (d,)
            A unit vector.
        k : int
        hidden : int
            An item that it must not find, or -1.

        Returns
        -------
        array of shape (n,), or None
            Rows, ascending; None where they would be so many that nothing is gained.
        """
        scale = float(np.abs(query).max()) / _MOST_OF_QUERY
        rounded = np.rint(query / scale).astype(np.int16)
        off = float(np.linalg.norm(query - scale * rounded.astype(np.float32)))
        products = np.empty(len(self.values), np.float32)
        share_out(lambda *part: _products(self.values, self.scales, rounded, scale, products, *part), len(products))
        within = self.errors + np.float32(1.01 * off + _ROUNDING)
        least = products - within
        if hidden >= 0:
            least[hidden] = -np.inf
        if k >= len(least):
            return None
        bar = np.partition(least, len(least) - k)[len(least) - k]
        found = np.flatnonzero(products + within >= bar)
        return found if len(found) * _TOO_MANY <= len(products) else None


@compiled(fastmath=True)
def _products(
    values: NDArray[np.int8],
    scales: NDArray[np.float32],
    query: NDArray[np.int16],
    scale: float,
    products: NDArray[np.float32],
    start: int,
    stop: int,
) -> None:
    for i in range(start, stop):
        total = np.int32(0)
        for c in range(values.shape[1]):
            total += np.int32(values[i, c]) * np.int32(query[c])
        products[i] = total * scale * scales[i]
