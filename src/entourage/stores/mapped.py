"""Vectors on disk that are read as they are needed: rows of a memory-mapped array, scaled to length 1.

N items, d dimensions.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from entourage.errors import InputError
from entourage.runtime.jit import compiled
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, named, readable
from entourage.values import IntArray, unit_factors

__all__ = ["MappedVectors", "map_vectors", "mapped_array"]

_OF_BITS = np.float32(2.0**112)


class MappedVectors:
    """Unit vectors (N, d) in a file, of which rows are asked for as of an array.

    Parameters
    ----------
    raw : array of shape (N, d)
        Vectors of any length and any type of number.
    factors : array of shape (N,), optional
        What each is multiplied by to have length 1; by default it is computed.
    """

    def __init__(self, raw: NDArray[Any], factors: NDArray[np.float32] | None = None) -> None:
        self.raw = np.asarray(raw)
        self.factors = unit_factors(raw) if factors is None else factors

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, d)."""
        return self.raw.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of number that they are kept as, if it is one of fractions; else float32."""
        return self.raw.dtype if self.raw.dtype.kind == "f" else np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, rows: slice | IntArray) -> NDArray[np.float32]:
        factors = self.factors[rows]
        if self.raw.dtype == np.float16 and self.raw.flags.c_contiguous:
            some = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
            return _from_halves(self.raw, some, factors)
        vectors = np.array(self.raw[rows], np.float32)
        vectors *= factors[:, None]
        return vectors


def map_vectors(path: StrPath) -> MappedVectors:
    """Open the vectors of a .npy file without reading them all into memory.

    Parameters
    ----------
    path : str or path-like
        A .npy file of N vectors.

    Returns
    -------
    MappedVectors
    """
    path = existing(path, (".npy",), "vectors")
    with readable(path):
        raw = np.load(path, mmap_mode="r", allow_pickle=False)
    with named(path):
        if raw.ndim != 2 or not raw.size or raw.dtype.kind not in "fiu":
            raise InputError(f"the array has shape {raw.shape} and type {raw.dtype}; wanted numbers of shape (N, d)")
        return MappedVectors(raw)


def mapped_array(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array in a .npy file that can be written to, part by part; a new one unless it is there in this shape.

    Parameters
    ----------
    path : Path
    shape : tuple of int
    dtype : dtype

    Returns
    -------
    array
        Memory-mapped; `flush` brings what was written to the disk.
    """
    if path.exists():
        array: NDArray[Any] = np.load(path, mmap_mode="r+", allow_pickle=False)
        if array.shape == shape and array.dtype == dtype:
            _allot(path)
            return array
    new = path.with_name(f"{path.stem}.new.npy")  # a kill before its header is written would leave an empty file
    np.lib.format.open_memmap(new, "w+", np.dtype(dtype), shape)
    _allot(new)
    new.replace(path)
    created: NDArray[Any] = np.load(path, mmap_mode="r+", allow_pickle=False)
    return created


def _allot(path: Path) -> None:
    """Take the room that a file says it has: a mapped page for which a full disk has none would end the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _from_halves(raw: NDArray[np.float16], rows: IntArray, factors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Some rows of float16 (N, d) in float32, each multiplied by its factor; numpy takes four times as long.

    The bits of a half, moved to where a float32 has them, are the same number times 2^-112.
    """
    bits = np.empty((len(rows), raw.shape[1]), np.uint32)
    halves = raw.view(np.uint16)
    halves.flags.writeable = False  # kernels are compiled for one kind of array
    _widen(halves, np.ascontiguousarray(rows, np.int64), bits)
    vectors = bits.view(np.float32)
    vectors *= (factors * _OF_BITS)[:, None]
    return vectors


@compiled
def _widen(halves: NDArray[np.uint16], rows: IntArray, bits: NDArray[np.uint32]) -> None:
    for i in range(len(rows)):
        half, wide = halves[rows[i]], bits[i]
        for c in range(len(wide)):
            value = np.uint32(half[c])
            wide[c] = ((value & np.uint32(0x8000)) << np.uint32(16)) | ((value & np.uint32(0x7FFF)) << np.uint32(13))
