"""Where streamed vectors come from, and where refined ones go to.

N items, d dimensions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError, StoreError
from entourage.runs.streamed.work import Work
from entourage.runtime.progress import Progress
from entourage.runtime.threads import blocks
from entourage.runtime.warnings import warn_caller
from entourage.stores import Outputs, check_kept, check_writable_like
from entourage.stores.databases import Refined, Store
from entourage.stores.mapped import MappedVectors, map_vectors, mapped_array
from entourage.values import IntArray

__all__ = ["FileSource", "Source", "StoreSource"]

_ROWS = 2**13  # at a time
Rows = Callable[[slice], NDArray[np.float32]]
"""Refined vectors (n, d) of some items."""


class Source(ABC):
    """Vectors, and the place of their refined ones."""

    name: str
    """What protocols call it."""
    target: str
    """Where the refined vectors go to."""
    work: Path
    """The folder in which work is kept."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What tells this input from others, as JSON holds it."""

    @abstractmethod
    def read(self, work: Work, progress: Progress | None) -> tuple[MappedVectors, IntArray]:
        """The vectors, and the place of each item in order of id, (N,)."""

    @abstractmethod
    def write(self, work: Work, vectors: MappedVectors, refined: Rows, progress: Progress | None) -> None:
        """Write refined vectors where they belong, all or none."""


class FileSource(Source):
    """A .npy file, refined into another.

    Parameters
    ----------
    path, out : Path
    work : Path, optional
        The folder in which work is kept; by default one beside the output.
    resume : bool
        Whether work that is kept goes on. It began when there was no output, or when that could be replaced: one that
        is there now may be its own, of a process that was killed just after.
    overwrite : bool
        Whether the output may be replaced.
    """

    def __init__(
        self, path: Path, out: Path, work: Path | None = None, *, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.work = work or out.with_name(out.name + ".refining")
        overwrite = overwrite or (resume and self.work.exists())
        check_kept((out,), (path,))
        check_writable_like(path, out, overwrite=overwrite)
        self._path, self._out, self._overwrite = path, out, overwrite
        self.name, self.target = str(path), str(out)

    @property
    def identity(self) -> dict[str, Any]:
        status = self._path.stat()
        return {"input": str(self._path.resolve()), "version": f"{status.st_size} bytes, {status.st_mtime_ns}"}

    def read(self, work: Work, progress: Progress | None) -> tuple[MappedVectors, IntArray]:
        vectors = map_vectors(self._path)
        return vectors, np.arange(len(vectors))

    def write(self, work: Work, vectors: MappedVectors, refined: Rows, progress: Progress | None) -> None:
        with Outputs(overwrite=self._overwrite) as outputs:
            new = outputs.file(self._out)
            new.unlink()  # an empty file is no array
            array = mapped_array(new, vectors.shape, vectors.dtype)
            _fill(array, refined, 0, progress)
            del array


class StoreSource(Source):
    """A vector store, refined into its twin.

    Parameters
    ----------
    store : Store
    work : Path, optional
        The folder in which work is kept; by default one beside the store.
    resume : bool
        As for a file.
    overwrite : bool
        Whether refined vectors that are there may be replaced.
    """

    def __init__(
        self, store: Store, work: Path | None = None, *, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.work = work or store.beside
        if store.has_refined() and not (overwrite or (resume and self.work.exists())):
            raise StoreError(f"{store.refined_url} exists already; allow overwriting (--overwrite), or rename it")
        store.check_twin()
        if not len(store):
            raise InputError(f"{store.url} is empty; at least one item is needed")
        self._store = store
        self.name, self.target = store.url, store.refined_url

    @property
    def identity(self) -> dict[str, Any]:
        return {"input": self._store.url, "column": self._store.column, "version": self._store.version}

    def read(self, work: Work, progress: Progress | None) -> tuple[MappedVectors, IntArray]:
        if not work.is_done("read"):
            self._copy(work, progress)
        keys = np.asarray(work.kept("keys"))
        rank = np.empty(len(keys), np.int64)
        rank[np.argsort(keys, kind="stable")] = np.arange(len(keys))
        return MappedVectors(work.kept("vectors")[: len(keys)]), rank

    def write(self, work: Work, vectors: MappedVectors, refined: Rows, progress: Progress | None) -> None:
        array = work.array("refined", vectors.shape, vectors.dtype)
        if not work.is_done("refined"):
            _fill(array, refined, 0, progress)
            work.mark("refined", len(array))
        told = _Told(work, len(array), self._store.url, progress)
        keys = np.asarray(work.kept("keys"))
        held = self._store.write(Refined(keys, array, work.tag), start=work.done("written"), done=told)
        if held != len(keys):
            warn_caller(
                f"{self._store.refined_url} has {held} of the {len(keys)} items that were refined; the others were no "
                f"longer in {self._store.url}"
            )

    def _copy(self, work: Work, progress: Progress | None) -> None:
        """A copy of the vectors as they are now: whatever is written to the store meanwhile, one set is refined."""
        count, seen, keys = len(self._store), 0, []
        array: NDArray[Any] | None = None
        for batch, vectors in self._store.batches():
            if array is None:
                kind = np.dtype(np.float16) if vectors.dtype == np.float16 else np.dtype(np.float32)
                array = work.array("vectors", (count, self._store.dim), kind)
            wanted = batch[: count - seen]  # what came after the beginning is left for another time
            array[seen : seen + len(wanted)] = vectors[: len(wanted)]
            keys.append(wanted)
            seen += len(wanted)
            if progress:
                progress("reading", seen, count)
        if array is None or not seen:
            raise InputError(f"{self._store.url} is empty; at least one item is needed")
        if seen < count:
            warn_caller(f"{self._store.url} gave {seen} of the {count} items that it had at first; these are refined")
        array.flush()  # type: ignore[attr-defined]  # of a memory-mapped array
        work.keep("keys", np.concatenate(keys))
        work.mark("read", seen)


class _Told:
    """Remembers, and shows, how many vectors a store has been given."""

    def __init__(self, work: Work, total: int, url: str, progress: Progress | None) -> None:
        self._work, self._total, self._progress = work, total, progress

    def __call__(self, count: int) -> None:
        if count > self._work.done("written"):
            self._work.mark("written", count)
        if self._progress:
            self._progress("writing", count, self._total)


def _fill(array: NDArray[Any], refined: Rows, start: int, progress: Progress | None) -> None:
    for rows in blocks(len(array), _ROWS):
        if rows.start >= start:
            array[rows] = refined(rows)
        if progress:
            progress("blending", rows.stop, len(array))
    array.flush()  # type: ignore[attr-defined]  # of a memory-mapped array
