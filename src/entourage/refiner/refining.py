"""What the refiners share: vectors of any kind in, refined vectors of the same kind out, by a fitted network.

N items, M context items, k neighbours, T steps, d dimensions.
"""

import copy
from collections.abc import Iterator
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from entourage.errors import InputError
from entourage.neighbors.given import KnownNeighbors, given_neighbors
from entourage.refiner.conversion import SameKindTransformer, as_table
from entourage.refiner.encoder_profile import warn_of_another_encoder
from entourage.refiner.memory import Among, same_items, with_fitted
from entourage.refiner.protocol import RefiningNetwork
from entourage.refiner.saving import SavedRefiner
from entourage.refiner.serving import ServedGallery
from entourage.refiner.settings import MOST_NEIGHBORS
from entourage.runtime.checks import check_whole
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller, warn_caller_once
from entourage.values import Attention, Embeddings, FloatArray, IntArray, Trajectory

__all__ = ["RefiningEstimator"]

Refiner = TypeVar("Refiner", bound="RefiningEstimator")

_AMONG_THEMSELVES = (
    "a refiner that was loaded does not know the items of fit, so these are refined among themselves alone: compare "
    "them with each other only. Give context= the gallery's raw vectors, or context=X to say that this is meant"
)
_FOR_SEARCHING = (
    "search the refined gallery with refined queries, but do not add them to it: new items must be in the gallery when "
    "it is served, or items of new classes are found less often than with raw vectors"
)


class RefiningEstimator(SameKindTransformer, SavedRefiner):
    """An estimator that refines embeddings among their neighbours with the network it has fitted.

    Each refiner has its own `fit`.
    """

    @shows_progress
    def transform(
        self,
        X: Any,
        context: Any = None,
        *,
        steps: int | None = None,
        neighbors: Any = None,
        context_neighbors: Any = None,
        progress: ShowProgress = None,
    ) -> Any:
        """Refine vectors **among themselves and the items of fit**, so that they can be compared with either.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)
            What to refine.
        context : as X, of shape (M, d), optional
            Where to find neighbours instead: `context=X` for a set of its own, such as classes that fit has not seen,
            or the raw vectors of a gallery for queries. Refine the gallery too, and compare refined with refined:
            `transform_both`. **A refiner that was loaded does not know the items of fit**: without a context it
            refines X among itself, and warns.
        steps : int, optional
            Stop after this many steps; all by default.
        neighbors : (ids, scores), ids or Neighbors, optional
            What an index of yours found for each row of X in the context, of which exact similarities choose; see
            `search`. Twice as many as the refiner attends to are best.
        context_neighbors : as neighbors, optional
            The same for each row of a context that is not X itself.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        the kind of X, of shape (N, d), or (N, out_dim) where the refiner has one
            Refined vectors of length 1 in the order of X. They are computed in float32 and returned in the floating
            type of X; for whole numbers and lists, in float32. Embeddings keep ids and labels, a DataFrame keeps its
            index and columns, a tensor its device.
        """
        among = self._among(X, context)
        known = _known(among.items, among.gallery, neighbors, context_neighbors)
        return self._same_kind(among.table, self._last_state(among, self._n_steps(steps), progress, **known))

    @shows_progress
    def transform_both(
        self,
        queries: Any,
        gallery: Any,
        *,
        steps: int | None = None,
        neighbors: Any = None,
        gallery_neighbors: Any = None,
        progress: ShowProgress = None,
    ) -> tuple[Any, Any]:
        """Refine queries and the gallery to search them in; either is of less use without the other.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
        gallery : Embeddings, array, DataFrame or tensor of shape (M, d)
        steps : int, optional
            Stop after this many steps; all by default.
        neighbors, gallery_neighbors : (ids, scores), ids or Neighbors, optional
            What an index of yours found for each query in the gallery, and for each gallery item among the others; see
            `transform`.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        tuple
            The refined queries and the refined gallery, each in its own kind.
        """
        self._check_fitted()
        return self._transform_both(queries, gallery, steps, progress, neighbors, gallery_neighbors)

    def _transform_both(
        self,
        queries: Any,
        gallery: Any,
        steps: int | None,
        progress: Progress | None,
        neighbors: Any = None,
        gallery_neighbors: Any = None,
        **options: Any,
    ) -> tuple[Any, Any]:
        tables = as_table(self, queries), as_table(self, gallery, name="the gallery")
        items = tables[0].embeddings()
        among = items if gallery is queries else tables[1].embeddings()
        among = items if same_items(items, among) else among
        self._check_encoder("the queries", items)
        if among is not items:
            self._check_encoder("the gallery", among)
        options |= _known(items, among, neighbors, gallery_neighbors)
        both = self.network_.refine_both(items, among, self.n_neighbors_, self._n_steps(steps), progress, **options)
        refined, searched = (self._same_kind(table, each) for table, each in zip(tables, both, strict=True))
        return refined, searched

    @shows_progress
    def serve(self, gallery: Any, *, neighbors: Any = None, progress: ShowProgress = None) -> ServedGallery:
        """Prepare a gallery once for queries that arrive over time.

        `serve(gallery).transform(queries)` is `transform(queries, gallery)` without the part of the work that is the
        gallery's own, and `serve(gallery).refined_gallery` is `transform(gallery, context=gallery)`.

        **Search with the refined queries, but do not add them to the index**: a query attends to the gallery as it
        was, so items of a new class end up among strangers. Serve a gallery that has the new items in it instead, and
        index its `refined_gallery`. The first call in a process also warns of it.

        Parameters
        ----------
        gallery : Embeddings, array, DataFrame or tensor of shape (M, d)
        neighbors : (ids, scores), ids or Neighbors, optional
            What an index of yours found for each gallery item among the others; see `transform`.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        ServedGallery
        """
        self._check_fitted()
        table = as_table(self, gallery, name="the gallery")
        items = table.embeddings()
        self._check_encoder("the gallery", items)
        known = _known(items, items, neighbors, None)
        prepared = self.network_.prepare(items, self.n_neighbors_, self.n_steps_, progress, **known)
        warn_caller_once(_FOR_SEARCHING)
        return ServedGallery(prepared, table, items, self)

    @shows_progress
    def trajectory(self, X: Any, context: Any = None, *, progress: ShowProgress = None) -> Trajectory:
        """Return every step e^0..e^T of a refinement: trajectory(X)[t] is transform(X, steps=t) in float32.

        Parameters
        ----------
        X, context, progress
            As in `transform`.

        Returns
        -------
        Trajectory
            Steps of shape (T + 1, N, d), or (T + 1, N, out_dim) where the refiner has one.
        """
        among = self._among(X, context)
        states = self._states(among, self.n_steps_, progress)
        return Trajectory(np.stack([among.wanted(e) for e, _, _ in states]), among.ids)

    @shows_progress
    def iter_steps(
        self, X: Any, context: Any = None, *, steps: int | None = None, progress: ShowProgress = None
    ) -> Iterator[FloatArray]:
        """Yield the steps of `trajectory` one by one, so that they need not all be held in memory.

        Parameters
        ----------
        X, context, steps, progress
            As in `transform`.

        Yields
        ------
        ndarray of shape (N, d)
            e^t, for t = 0..T, in float32.
        """
        among = self._among(X, context)
        for e, _, _ in self._states(among, self._n_steps(steps), progress):
            yield among.wanted(e)

    @shows_progress
    def attention(self, X: Any, context: Any = None, *, progress: ShowProgress = None) -> Attention:
        """Return how much each item attends to each of its neighbours in each step, with the neighbours' ids.

        Parameters
        ----------
        X, context, progress
            As in `transform`.

        Returns
        -------
        Attention
            Weights of shape (T, N, k) and neighbour ids of shape (N, k). Where X or the items of fit have no ids of
            their own, neighbours are numbered: first the N rows of X, then the others.
        """
        among = self._among(X, context)
        (_, _, rows), *states = self._states(among, self.n_steps_, progress)
        weights = np.stack([among.wanted(w) for _, w, _ in states if w is not None])  # (T, N, k)
        return Attention(weights, among.ids, among.gallery.ids[among.wanted(rows)])

    def with_neighbors(self: Refiner, n_neighbors: int) -> Refiner:
        """Return a copy of this fitted refiner that attends to another number of neighbours, without fitting again.

        Parameters
        ----------
        n_neighbors : int
            k, the new number of neighbours.

        Returns
        -------
        ContextRefiner or PaperRefiner
            The copy; this refiner is unchanged.
        """
        self._check_fitted()
        check_whole("n_neighbors", n_neighbors, 1, MOST_NEIGHBORS)
        other = copy.copy(self)
        other.n_neighbors_ = int(n_neighbors)
        other._report = self._report | {"protocol": self._report["protocol"] | {"neighbors": int(n_neighbors)}}
        return other

    def _n_steps(self, steps: int | None) -> int:
        n_steps = self.n_steps_ if steps is None else steps
        if not isinstance(n_steps, Integral) or not 0 <= n_steps <= self.n_steps_:
            raise InputError(
                f"steps is {n_steps}; wanted 0 ≤ steps ≤ {self.n_steps_}, the number of steps; fit with more"
            )
        return int(n_steps)

    def _among(self, X: Any, context: Any) -> Among:
        """The items, and where to find their neighbours: in the context, or among themselves and the items of fit."""
        self._check_fitted()
        table = as_table(self, X)
        items = table.embeddings()
        self._check_encoder("the vectors", items)
        if context is not None:
            gallery = items if context is X else as_table(self, context, name="the context").embeddings()
            gallery = items if same_items(items, gallery) else gallery
            if gallery is not items:
                self._check_encoder("the context", gallery)
            return Among(table, items, gallery, items.ids, self.network_)
        if self.items_ is None:
            warn_caller(_AMONG_THEMSELVES)
            return Among(table, items, items, items.ids, self.network_)
        together = with_fitted(items, self.items_)
        return Among(table, together, together, items.ids, self._network_of_known())

    def _check_encoder(self, what: str, items: Embeddings) -> None:
        warn_of_another_encoder(items, self.encoder_profile_, what)

    def _states(
        self, among: Among, n_steps: int, progress: Progress | None, **options: Any
    ) -> Iterator[tuple[FloatArray, FloatArray | None, IntArray]]:
        """(e^t (N, d), weights^t (N, k), rows (N, k)) for t = 0..n_steps; the weights at t = 0 are None."""
        return among.network.refine(among.items, among.gallery, self.n_neighbors_, n_steps, progress, **options)

    def _network_of_known(self) -> RefiningNetwork:
        """What refines items of the classes of fit, among those."""
        return self.network_

    def _last_state(self, among: Among, n_steps: int, progress: Progress | None, **options: Any) -> FloatArray:
        """e^t (N, d) for t = n_steps."""
        *_, (last, _, _) = self._states(among, n_steps, progress, last_only=True, **options)
        return among.wanted(last)


def _known(items: Embeddings, gallery: Embeddings, neighbors: Any, gallery_neighbors: Any) -> dict[str, KnownNeighbors]:
    """What a network is told of neighbours from elsewhere; nothing where there are none."""
    if neighbors is None and gallery_neighbors is None:
        return {}
    if gallery is items:
        if gallery_neighbors is not None:
            raise InputError("neighbours of a gallery were given, which is the items themselves; give neighbors alone")
        return {"known": KnownNeighbors(of_gallery=given_neighbors(neighbors, items, items))}
    of_items = None if neighbors is None else given_neighbors(neighbors, items, gallery)
    of_gallery = (
        None if gallery_neighbors is None else given_neighbors(gallery_neighbors, gallery, gallery, "context_neighbors")
    )
    return {"known": KnownNeighbors(of_items, of_gallery)}
