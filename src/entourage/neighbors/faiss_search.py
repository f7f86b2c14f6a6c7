"""Candidates by an index of faiss: whatever `faiss.index_factory` makes of a text."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.neighbors.candidates import Vectors
from entourage.runtime.extras import require
from entourage.runtime.progress import Progress
from entourage.runtime.threads import blocks, thread_count
from entourage.values import IntArray

__all__ = ["FaissIndex"]

_TRAINED_ON = 2**16
_ADDED = 2**13  # vectors at a time: what Ctrl-C has to wait for
_SAVED_AFTER = 2**18  # vectors
_WIDEST = 512
_GRAPH_BREADTH, _LIST_BREADTH = 32, 8


class FaissIndex:
    """An index of unit vectors, most similar first.

    Parameters
    ----------
    description : str
        As `faiss.index_factory` takes it.
    gallery : Vectors
        M items.
    kept : Path, optional
        Where the index is kept while it is built, and afterwards; what is there already is not added again.
    progress : Progress, optional
    """

    def __init__(
        self, description: str, gallery: Vectors, kept: Path | None = None, progress: Progress | None = None
    ) -> None:
        require("faiss", f"search by {description}")
        import faiss

        faiss.omp_set_num_threads(thread_count())
        self._description = description
        self._index = _begun(description, gallery, kept)
        self._setting = "nprobe" if _has(self._index, "nprobe") else "efSearch" if _has(self._index, "efSearch") else ""
        for rows in blocks(len(gallery), _ADDED):
            if rows.start >= self._index.ntotal:
                self._index.add(gallery[rows])
                if kept is not None and (rows.stop % _SAVED_AFTER == 0 or rows.stop == len(gallery)):
                    _save(self._index, kept)
            if progress:
                progress(f"building {description}", rows.stop, len(gallery))
        self._breadth = _LIST_BREADTH if self._setting == "nprobe" else _GRAPH_BREADTH
        self._set(self._breadth)

    @property
    def name(self) -> str:
        """As the factory calls it, and how widely it is searched."""
        return f"{self._description}, {self._setting} {self._breadth}" if self._setting else self._description

    def of(self, queries: NDArray[np.float32], rows: slice | IntArray, k: int) -> IntArray:
        return np.asarray(self._index.search(np.ascontiguousarray(queries), k)[1], np.int64)

    def widen(self) -> bool:
        if not self._setting or self._breadth >= _WIDEST:
            return False
        self._set(2 * self._breadth)
        return True

    def _set(self, breadth: int) -> None:
        import faiss

        if self._setting:
            self._breadth = breadth
            faiss.ParameterSpace().set_index_parameter(self._index, self._setting, breadth)


def _begun(description: str, gallery: Vectors, kept: Path | None) -> Any:
    """The index that was kept, or a new one, trained on a sample."""
    import faiss

    if kept is not None and kept.exists():
        return faiss.read_index(str(kept))
    try:
        index = faiss.index_factory(gallery.shape[1], description, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise InputError(
            f"faiss cannot make an index of '{description}' for {gallery.shape[1]} dimensions; wanted a text that "
            "faiss.index_factory takes, such as HNSW16 or IVF1024,SQ8"
        ) from error
    if not index.is_trained:
        wanted = np.linspace(0, len(gallery) - 1, min(len(gallery), _TRAINED_ON)).astype(np.int64)
        lists = re.match(r"IVF(\d+)", description)
        if lists and int(lists[1]) > len(wanted):
            raise InputError(
                f"{description} has {lists[1]} lists for {len(gallery)} items; wanted fewer lists than items: lower it"
            )
        index.train(gallery[np.unique(wanted)])
    return index


def _has(index: Any, setting: str) -> bool:
    import faiss

    try:
        faiss.ParameterSpace().set_index_parameter(index, setting, 8)
    except RuntimeError:
        return False
    return True


def _save(index: Any, kept: Path) -> None:
    """Whole or not at all: a kill, or a machine that goes down, leaves the one before."""
    import faiss

    new = kept.with_name(kept.name + ".new")
    faiss.write_index(index, str(new))
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(kept)
