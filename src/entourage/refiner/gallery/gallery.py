"""Gallery: items that come and go, kept on disk and refined again only where a change reaches.

M items, N queries, d dimensions.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import FileError, InputError, few
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.gallery.config import create_folder, open_folder
from entourage.refiner.gallery.encoder import Encoder
from entourage.refiner.gallery.log import Log, check_fits
from entourage.refiner.gallery.moved import Changes, Told
from entourage.refiner.gallery.snapshots import Change, latest_log, log_name, start_log
from entourage.refiner.gallery.state import Recipe
from entourage.refiner.gallery.view import Found, Report, View
from entourage.refiner.rerank import Reranked
from entourage.runtime.checks import check_whole
from entourage.runtime.warnings import warn_caller
from entourage.stores.claims import Claim
from entourage.values import Embeddings, FloatArray, LabelArray, as_embeddings, checked_column

__all__ = ["Gallery"]

_REPLAY = 10.0  # seconds of work in the log after which a snapshot is worth its time; opening repeats that work


class Gallery:
    """Items that come and go, searched by refined vectors.

    After any sequence of changes, the refined vectors are those that `refiner.serve` would compute of the items that
    are there. A change is on the disk when it returns, and searches never wait for it: they see the gallery as it was.

    Parameters
    ----------
    folder : path
        Where it is kept. It is opened if it is there, and made otherwise. One process at a time can have it open.
    refiner : ContextRefiner, optional
        A fitted refiner. Default: that of an existing gallery; for a new one the universal scorer, which needs no
        labels. It stays with the gallery: another one is refused.
    encoder : str, optional
        What the encoder of the vectors is called. Another one is refused later.
    canaries : array-like of shape (c, d), optional
        Vectors of a few inputs that you keep; `check_encoder` compares what the encoder makes of them later.
    eps : float, optional
        How far a refined vector may move before `changes_since` tells of it. Default: that of an existing gallery, and
        0.001 for a new one.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> with Gallery(tempfile.mkdtemp() + "/digits") as gallery:
    ...     _ = gallery.add(X[:500], ids=range(500))
    ...     print(gallery.remove([7, 8]).version, len(gallery), gallery.search(X[500:502], k=3).ids.shape)
    2 498 (2, 3)
    """

    _view: View
    _log: Log
    _snapshot_seconds: float

    def __init__(
        self,
        folder: Any,
        refiner: ContextRefiner | None = None,
        *,
        encoder: str | None = None,
        canaries: Any = None,
        eps: float | None = None,
    ) -> None:
        self._folder = Path(folder)
        create_folder(self._folder, refiner, encoder, canaries, eps)
        self._claim: Claim | None = Claim(self._folder)
        try:
            self._settings = open_folder(self._folder, refiner, eps)
            self._settings.encoder.check(encoder, canaries)
            self._writing, self._seconds = threading.Lock(), 0.0
            self._replay()
        except BaseException:
            self._claim.release()
            raise

    # ---- what is there -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._view.ids)

    def __contains__(self, each: int | str) -> bool:
        return bool(self.has([each])[0])

    def has(self, ids: Sequence[int | str] | NDArray[Any]) -> NDArray[np.bool_]:
        """Tell for each id whether the gallery has an item with it.

        Parameters
        ----------
        ids : array-like of shape (n,)
            All numbers or all texts.

        Returns
        -------
        array of bool, shape (n,)
        """
        view = self._view
        if not len(ids) or isinstance(ids[0], str) != view.has_texts:
            return np.zeros(len(ids), bool)
        return np.asarray(view.rows_of(np.asarray(ids)) >= 0)

    def __repr__(self) -> str:
        dim = "any number of" if self.dim is None else self.dim
        return f"Gallery({len(self):,} items of {dim} dimensions, version {self.version}, in {self._folder})"

    @property
    def version(self) -> int:
        """How many changes there have been."""
        return self._view.version

    @property
    def dim(self) -> int | None:
        """d; None before the first item."""
        return self._settings.encoder.dim

    @property
    def ids(self) -> LabelArray:
        """The ids of all items, ascending."""
        return self._view.ids

    @property
    def has_texts(self) -> bool | None:
        """Whether ids are texts or whole numbers, as the first one was; None if there was none yet."""
        return self._view.has_texts

    @property
    def next_number(self) -> int:
        """The id that the next item without one gets."""
        return self._view.next_number()

    @property
    def eps(self) -> float:
        """How far a refined vector may move before `changes_since` tells of it."""
        return self._settings.eps

    @property
    def encoder(self) -> Encoder:
        """What is known of the encoder of the vectors."""
        return self._settings.encoder

    @property
    def refined(self) -> Embeddings | None:
        """The refined vectors of all items, by id; None if there are none."""
        state = self._view.state
        return None if state is None else state.refined

    @property
    def recipe(self) -> Recipe:
        """How items are refined."""
        return self._settings.recipe

    def check_encoder(self, name: str | None = None, canaries: Any = None) -> None:
        """Refuse another encoder than the one that the gallery was made with.

        Parameters
        ----------
        name : str, optional
            What the encoder is called.
        canaries : array-like of shape (c, d), optional
            What it makes of the inputs whose vectors the gallery was given, in the same order.

        Raises
        ------
        ModelError
            If a canary is no longer where it was, or the name is another one.
        """
        self._settings.encoder.check(name, canaries)

    # ---- changes -----------------------------------------------------------------------------------------------

    def add(self, vectors: Any, ids: Any = None, *, replace: bool = False) -> Report:
        """Add items.

        Parameters
        ----------
        vectors : Embeddings, array, DataFrame or tensor of shape (n, d)
            Raw vectors of the gallery's encoder, of any length.
        ids : array-like of shape (n,), optional
            Whole numbers or texts, whichever the gallery began with. Default: those of the Embeddings, or the next
            numbers.
        replace : bool
            Whether an item that is there already gets the new vector; otherwise it is refused.

        Returns
        -------
        Report
        """
        with self._writing:
            self._check_open()
            items = self._given(vectors, ids)
            known = self._view.rows_of(items.ids) >= 0
            if known.any() and not replace:
                there = few(items.ids[known].tolist(), "ids")
                raise InputError(f"these ids are there already: {there}; update them, or add with replace=True")
            return self._change(items.ids[known].tolist(), items)

    def update(self, vectors: Any, ids: Any = None) -> Report:
        """Give items other vectors.

        Parameters
        ----------
        vectors : Embeddings, array, DataFrame or tensor of shape (n, d)
        ids : array-like of shape (n,), optional
            Ids of items that are there. Default: those of the Embeddings.

        Returns
        -------
        Report
        """
        with self._writing:
            self._check_open()
            items = self._given(vectors, ids)
            self._view.check_there(items.ids)
            return self._change(items.ids.tolist(), items)

    def remove(self, ids: Any) -> Report:
        """Remove items.

        Parameters
        ----------
        ids : array-like of shape (n,)
            Ids of items that are there.

        Returns
        -------
        Report
        """
        with self._writing:
            self._check_open()
            return self._change(self._view.checked_there(ids).tolist(), None)

    def change(self, vectors: Any = None, ids: Any = None, *, remove: Any = ()) -> Report:
        """Add items, in place of those that are there, and remove others: all in one change.

        Parameters
        ----------
        vectors : Embeddings, array, DataFrame or tensor of shape (n, d), optional
            Raw vectors of the gallery's encoder, of any length.
        ids : array-like of shape (n,), optional
            As in `add`.
        remove : array-like of shape (m,)
            Ids of items that are there and are not among those.

        Returns
        -------
        Report
        """
        with self._writing:
            self._check_open()
            items = None if vectors is None else self._given(vectors, ids)
            gone = self._view.checked_there(remove)
            known = gone[:0]
            if items is not None:
                known = items.ids[self._view.rows_of(items.ids) >= 0]
                both = np.intersect1d(known, gone)
                if len(both):
                    raise InputError(f"these ids are both added and removed: {few(both.tolist(), 'ids')}; choose one")
            return self._change([*known.tolist(), *gone.tolist()], items)

    def _given(self, vectors: Any, ids: Any) -> Embeddings:
        return self._view.named(self.encoder.checked(as_embeddings(vectors)), ids)

    def _change(self, removed: list[int | str], items: Embeddings | None) -> Report:
        """Compute the next version, bring the change to the disk, and let readers see it, in this order."""
        none = np.empty((0, self.dim or 0), np.float32)
        ids, vectors = (np.empty(0, np.int64), none) if items is None else (items.ids, items.vectors)
        change = Change(self._view.version + 1, removed, ids, vectors)
        record = change.to_bytes()
        check_fits(record)  # before all the work
        started = time.perf_counter()
        view, report = self._view.after(change, self.recipe, self.eps)
        if view.state is not None:
            view.state.make_ready()
        self._commit(record, view)
        if items is not None:
            self._settings = self._settings.with_dim(items.dim)
        self._seconds += time.perf_counter() - started
        if self._seconds > max(_REPLAY, 10 * self._snapshot_seconds):
            self._snapshot_if_possible()
        return report

    def _commit(self, record: bytes, view: View) -> None:
        """Bring a change to the disk and let readers see it: both, or neither if this is interrupted."""
        size = self._log.size
        try:
            self._log.append(record)
            self._view = view
        except BaseException:
            if self._log.size != size:  # the record is there, and the next one would not follow from it
                self._log.cut(size)
            raise

    def _check_open(self) -> None:
        if self._claim is None:
            raise FileError(f"the gallery in {self._folder} is closed and cannot be changed; open it again")

    # ---- reading -----------------------------------------------------------------------------------------------

    def search(self, queries: Any, k: int = 10, *, refine: bool = True, confidence: bool = False) -> Found:
        """Find the nearest items of each query.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
            Raw vectors of the gallery's encoder. A query with the id of an item (both sides `named`) is that item and
            does not find itself.
        k : int
            How many to find, or as many as there are.
        refine : bool
            Whether queries are refined and compared with refined items; raw with raw otherwise.
        confidence : bool
            Whether to say how sure one can be that each query has a match at all, as `ServedGallery.confidence` does.

        Returns
        -------
        Found
        """
        check_whole("k", k, 1)
        return self._view.search(self._queries(queries), k, refine, confidence)

    def refine(self, queries: Any) -> Any:
        """Refine queries among the items of the gallery, to search an index of its refined vectors with.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)

        Returns
        -------
        Embeddings if they were given, else ndarray of shape (N, d)
            Unit vectors, float32; as they came where the gallery is empty.
        """
        refined = self.refine_with_version(queries)[1]
        return queries.replace_vectors(refined) if isinstance(queries, Embeddings) else refined

    def refine_with_version(self, queries: Any) -> tuple[int, FloatArray]:
        """Refine queries as `refine` does, and say among the items of which version, while others make changes.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)

        Returns
        -------
        version : int
            Of the gallery that they were refined in.
        refined : ndarray of shape (N, d)
            Unit vectors, float32.
        """
        items, view = self._queries(queries), self._view
        return view.version, view.refine(items)

    def changes_since(self, version: int = 0, *, after: int | str | None = None, limit: int | None = None) -> Changes:
        """Which refined vectors an index elsewhere has to replace, add and remove.

        An index that has followed all changes holds every vector to within eps.

        Parameters
        ----------
        version : int
            What the index was last brought up to date with; 0 for an empty one.
        after : int or str, optional
            `after` of the part before, where there was more.
        limit : int, optional
            At most so many at once. Where there is more, go on with `version` and `after` of what is returned.

        Returns
        -------
        Changes
        """
        view = self._view
        check_whole("version", version, 0, view.version)
        if limit is not None:
            check_whole("limit", limit, 1)
        return view.changes_since(version, after, limit)

    def rerank(self, query: Any, candidates: Any = None, *, ids: Any = None, scores: Any = None) -> Reranked:
        """Order the candidates of one query anew, by the graph among the query and its candidates.

        Parameters
        ----------
        query : array-like of shape (d,)
            The raw vector.
        candidates : array-like of shape (C, d), optional
            Raw vectors of what an index returned. Default: those of the items named by `ids`.
        ids, scores : array-like of shape (C,), optional
            As in `entourage.rerank`.

        Returns
        -------
        Reranked
            The same candidates, best first.
        """
        if candidates is None:
            named = checked_column([] if ids is None else ids, "ids", len([] if ids is None else ids))
            candidates = self._view.vectors_of(named)
        return self.recipe.reranker().rerank(query, candidates, ids=ids, scores=scores)

    def _queries(self, queries: Any) -> Embeddings:
        items = as_embeddings(queries, name="the queries")
        self._settings.encoder.checked_size(items.dim, "the queries")
        return items

    # ---- on disk -----------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write the whole state now, so that the gallery opens quickly; it is done from time to time by itself."""
        with self._writing:
            self._check_open()
            self._snapshot()

    def _snapshot(self) -> None:
        if self._log.path.name == log_name(self._view.version):
            return  # there has been no change since the last one
        started, before = time.perf_counter(), self._log
        try:
            self._log = start_log(self._folder, self._view.kept())
        except BaseException:
            if (self._folder / log_name(self._view.version)).exists():
                before.retire()  # interrupted when the new log was the latest: what follows in this one would be lost
            raise
        before.close()
        self._seconds, self._snapshot_seconds = 0.0, time.perf_counter() - started

    def _snapshot_if_possible(self) -> None:
        """Write a snapshot after a change, which is made and on the disk whatever becomes of this."""
        try:
            self._snapshot()
        except (OSError, MemoryError) as error:
            self._seconds = 0.0  # try again after as much work, not with every change
            warn_caller(f"the change was made, but {str(error) or 'there is no memory for a snapshot'}")

    def _replay(self) -> None:
        """Open the latest snapshot and repeat the changes since."""
        self._snapshot_seconds = 0.0
        opened = latest_log(self._folder)
        if opened is None:
            self._view = View(0, None, Told.nothing())
            self._log = start_log(self._folder, self._view.kept())
            return
        self._log, kept, changes = opened
        self._view = View.of(kept, self.recipe)
        started = time.perf_counter()
        for change in changes:
            self._view, _ = self._view.after(change, self.recipe, self.eps)
        self._seconds = time.perf_counter() - started
        if self._view.state is not None:
            self._view.state.make_ready()
        if dim := self._view.told.vectors.shape[1]:  # which an empty gallery keeps, too
            self._settings = self._settings.with_dim(dim)

    def close(self) -> None:
        """Let others open the gallery; every change is on the disk already."""
        with self._writing:
            self._log.close()
            claim, self._claim = self._claim, None  # also if a Ctrl-C comes at the end of its release
            if claim is not None:
                claim.release()

    def __enter__(self) -> "Gallery":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
