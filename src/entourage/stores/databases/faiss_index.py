"""faiss index files: vectors are taken out of the index, refined ones go into a new index of the same kind."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from entourage.errors import InputError, StoreError
from entourage.runtime.threads import blocks
from entourage.runtime.warnings import warn_caller
from entourage.stores.atomic import whole_file
from entourage.stores.databases.store import BATCH, Address, Refined, Store, engine_faults, twin_name
from entourage.values import FloatArray, LabelArray

__all__ = ["FaissStore", "index_like", "vectors_in"]

_ADDED = 2**14  # vectors at a time
_TRAINED_ON = 2**17
_EXACT = re.compile(r"(IVF\d+(_HNSW\d*)?,)?Flat|HNSW\d+(,Flat)?")  # kinds that keep vectors as they were added


class FaissStore(Store):
    """An index that `faiss.write_index` wrote.

    Parameters
    ----------
    address : Address
        The file.
    column : str, optional
        An index has no columns: anything but None is refused.
    """

    column = ""

    def __init__(self, address: Address, column: str | None = None) -> None:
        import faiss

        self.url, self._file = address.url, address.path
        twin = self._file.with_name(twin_name(self._file.stem) + self._file.suffix)
        self._twin, self.refined_url = twin, f"faiss:{twin}"
        if column is not None:
            raise StoreError(f"{self.url} has no column '{column}', as an index holds one vector an item; leave it out")
        if not self._file.is_file():
            raise StoreError(f"{self.url}: there is no file '{self._file}'; wanted one that faiss.write_index wrote")
        try:
            self._index = faiss.read_index(str(self._file))
        except RuntimeError as error:
            raise StoreError(
                f"{self.url} is not an index that faiss can read; wanted one that faiss.write_index wrote"
            ) from error
        with engine_faults(self.url):
            self._keys, self._places, self._inner = _taken_apart(self._index)
            self.dim = int(self._index.d)
            if len(self._keys):
                _vectors(self._inner, self._places[:1])
        self._kind = _kind(self._inner)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def version(self) -> str:
        status = self._file.stat()
        return f"{status.st_size} bytes, {status.st_mtime_ns}"

    @property
    def beside(self) -> Path:
        return self._file.with_name(f"{self._file.name}.refining")

    def batches(self, size: int = BATCH) -> Iterator[tuple[LabelArray, FloatArray]]:
        if not _EXACT.fullmatch(self._kind):
            warn_caller(f"{self.url} keeps vectors as {self._kind}, not as they were: those approximations are refined")
        for rows in blocks(len(self), size):
            with engine_faults(self.url):
                vectors = _vectors(self._inner, self._places[rows])
            yield self._keys[rows], vectors

    def has_refined(self) -> bool:
        return self._twin.exists()

    def write(self, refined: Refined, *, start: int = 0, done: Callable[[int], None] | None = None) -> int:
        import faiss

        with engine_faults(self.refined_url):
            index = index_like(self._index, refined.keys, refined.vectors, done=done)
            with whole_file(self._twin) as temporary:
                faiss.write_index(index, str(temporary))
        return int(index.ntotal)

    def close(self) -> None:
        pass  # an index is in memory


def vectors_in(index: Any) -> tuple[LabelArray, FloatArray]:
    """Take the vectors out of an index of faiss.

    Parameters
    ----------
    index : faiss.Index
        Its vectors are those that it keeps: approximations, if it is quantised.

    Returns
    -------
    keys : array of shape (N,)
        The ids that a search of the index returns.
    vectors : array of shape (N, d)
    """
    import faiss

    if not isinstance(index, faiss.Index):
        raise InputError(f"the index is a {type(index).__name__}; wanted one of faiss, as faiss.read_index gives it")
    keys, places, inner = _taken_apart(index)
    return keys, _vectors(inner, places) if len(keys) else np.empty((0, index.d), np.float32)


def index_like(index: Any, keys: LabelArray, vectors: Any, *, done: Callable[[int], None] | None = None) -> Any:
    """Make an index of the same kind, with the same ids and other vectors.

    Parameters
    ----------
    index : faiss.Index
        What the new one is like: its factory text, its metric and whether it keeps ids.
    keys : array of shape (N,)
        The ids.
    vectors : array-like of shape (N, d)
        Read in parts.
    done : callable, optional
        Called with the number of vectors added so far.

    Returns
    -------
    faiss.Index
    """
    import faiss

    _, _, inner = _taken_apart(index)
    new = faiss.index_factory(index.d, _kind(inner), index.metric_type)
    if not new.is_trained:
        chosen = np.linspace(0, len(keys) - 1, min(len(keys), _TRAINED_ON)).astype(np.int64)
        new.train(np.asarray(vectors[chosen], np.float32))
    by_key = isinstance(index, faiss.IndexIVF)  # which keeps keys itself
    outer = new if inner is index else type(index)(new)
    for rows in blocks(len(keys), _ADDED):
        part = np.asarray(vectors[rows], np.float32)
        if by_key or outer is not new:
            outer.add_with_ids(part, keys[rows])
        else:
            outer.add(part)
        if done:
            done(rows.stop)
    return outer


def _taken_apart(index: Any) -> tuple[LabelArray, LabelArray, Any]:
    """The keys of an index (N,), the numbers that its vectors have inside it (N,), and what holds them there."""
    import faiss

    if isinstance(index, faiss.IndexIDMap | faiss.IndexIDMap2):
        inner = faiss.downcast_index(index.index)
        if isinstance(inner, faiss.IndexIVF):
            inner.set_direct_map_type(faiss.DirectMap.Hashtable)
        return faiss.vector_to_array(index.id_map).copy(), np.arange(index.ntotal), inner
    if isinstance(index, faiss.IndexIVF):
        lists = index.invlists
        parts = [faiss.rev_swig_ptr(lists.get_ids(n), lists.list_size(n)).copy() for n in range(index.nlist)]
        index.set_direct_map_type(faiss.DirectMap.Hashtable)
        keys = np.sort(np.concatenate(parts))
        twice = keys[:-1][keys[:-1] == keys[1:]]
        if len(twice):  # of which vectors by key give one alone
            raise StoreError(f"the index has the id {twice[0]} more than once; wanted each once: remove the others")
        return keys, keys, index
    return np.arange(index.ntotal), np.arange(index.ntotal), index


def _vectors(inner: Any, places: LabelArray) -> FloatArray:
    """The vectors that an index knows by some numbers, which follow on each other where it has no keys.

    One is asked for first, as faiss ends the process where many cannot be had.
    """
    import faiss

    try:
        inner.reconstruct(int(places[0]))
        if isinstance(inner, faiss.IndexIVF):
            return np.asarray(inner.reconstruct_batch(places), np.float32)
        return np.asarray(inner.reconstruct_n(int(places[0]), len(places)), np.float32)
    except RuntimeError as error:
        raise StoreError(
            f"an index of the kind {type(inner).__name__} does not give its vectors back; refine the file that it was "
            "made of, and index that"
        ) from error


def _kind(index: Any) -> str:
    """What `faiss.index_factory` calls such an index; a flat one for those without a name."""
    from faiss.contrib.factory_tools import reverse_index_factory

    try:
        return str(reverse_index_factory(index))
    except Exception:
        return "Flat"
