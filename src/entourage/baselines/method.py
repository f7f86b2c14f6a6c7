"""The one interface of the baselines, and what several of them share.

Each is an estimator of scikit-learn: parameters are stored as they are given and checked by fit, what fit learns ends
in an underscore. N items, d dimensions, n queries at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from entourage.errors import InputError, NotFittedError
from entourage.neighbors import search_blocks
from entourage.refiner.conversion import SameKindTransformer, Table, as_table
from entourage.refiner.memory import with_fitted
from entourage.values import Embeddings, FloatArray, Neighbors, label_codes

__all__ = ["Chain", "LinearMap", "Method", "PointwiseMethod", "Raw", "VectorMethod", "with_random_state"]


class Method(BaseEstimator, ABC):
    """An estimator that ranks items: `fit` learns from training items, if there is anything to learn; `rank` ranks.

    A subclass has its parameters in __init__ and implements `_rank(items, k)`; for queries that come one by one
    `_rank_in(queries, gallery, k)`; if there is something to learn `_learn(items)`, with `_learned` for the attribute
    that it sets; and `_check_settings()`. All receive Embeddings that have been checked.
    """

    _learned: str | None = None
    """The attribute that fit sets; None where there is nothing to learn, and fit may be left out."""
    _needs_labels = False
    _least = (1, 1)
    """How many items, and of how many dimensions, fit needs."""

    @property
    def n_parameters_(self) -> int:
        """How many numbers fit learned; 0 where there is nothing to learn."""
        return 0

    def fit(self, X: Any, y: Any = None) -> "Method":
        """Learn from training items.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)
            Embeddings may carry their own labels.
        y : array-like of shape (N,), optional
            Labels, for methods that learn from them.

        Returns
        -------
        Method
            The fitted method.
        """
        items = as_table(self, X, reset=True, least=self._least).embeddings(y)
        self._check_settings()
        if self._needs_labels and items.labels is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: there are no labels to "
                "learn from; call fit(X, y) with one label per vector"
            )
        self._learn(items)
        return self

    def rank(self, X: Any, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """The k best others of each item, best first and never the item itself, some queries at a time.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)
            **Items are ranked among those they are given with.**
        k : int
            Less than N.

        Returns
        -------
        iterator of (slice, Neighbors)
            Which rows are queries, and what they find.
        """
        items = self._checked(X).embeddings()
        if not (isinstance(k, Integral) and 1 <= k < len(items)):
            raise InputError(
                f"k is {k}, but there are {len(items)} items; wanted 1 ≤ k ≤ {len(items) - 1}: lower k or add items"
            )
        return self._rank(items, k)

    def rank_in(self, queries: Any, gallery: Any, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """The k best gallery items of each query, best first, as if every query came alone to a gallery that stands.

        What is computed of the gallery is computed once and without the queries, and no query is affected by another.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
            From outside the gallery; ids are not compared.
        gallery : Embeddings, array, DataFrame or tensor of shape (M, d)
        k : int
            At most M.

        Returns
        -------
        iterator of (slice, Neighbors)
            Which queries, and the gallery rows they find. The first similarity tells how sure the method is that there
            is a match at all.
        """
        items, among = self._checked(queries).embeddings(), self._checked(gallery).embeddings()
        if not (isinstance(k, Integral) and 1 <= k <= len(among)):
            raise InputError(
                f"k is {k}, but the gallery has {len(among)} items; wanted 1 ≤ k ≤ {len(among)}: lower k or add items"
            )
        items = Embeddings(items.vectors, items.ids, named=False)
        return self._rank_in(items, among, k) if len(among) > 1 else search_blocks(items, among, 1)

    def confidence(self, queries: Embeddings, gallery: Embeddings, best: FloatArray) -> FloatArray:
        """How sure the method is that each query has a match in the gallery, higher is surer.

        Parameters
        ----------
        queries, gallery : Embeddings of N and M items
        best : array of shape (N,)
            The first similarity that `rank_in` gives of each query.

        Returns
        -------
        array of shape (N,)
            By default that similarity.
        """
        return best

    @abstractmethod
    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """`rank` of checked items."""

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """`rank_in` of checked items, in a gallery of two or more."""
        raise InputError(
            f"{type(self).__name__} ranks items among each other only; for queries in a gallery implement _rank_in, or "
            "_moved_both where it gives vectors"
        )

    def _learn(self, items: Embeddings) -> None:
        """`fit` on checked items."""

    def _check_settings(self) -> None:
        """Refuse a parameter that cannot be, by its name."""

    def _checked(self, X: Any) -> Table:
        """Items to rank or to transform, once the method is ready for them."""
        self._check_fitted()
        self._check_settings()
        return as_table(self, X)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(X, y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is None or hasattr(self, self._learned)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self._learned is not None
        tags.target_tags.required = self._needs_labels
        return tags


class VectorMethod(SameKindTransformer, Method):
    """A method that produces vectors, and ranks by them.

    A subclass implements `_moved(items)` instead of `_rank`, and `_moved_both(queries, gallery)` instead of `_rank_in`.
    """

    items_: Embeddings | None = None
    """The items of fit, where items are moved by their neighbours: `transform` finds neighbours among them, too."""

    def transform(self, X: Any) -> Any:
        """New vectors of the same items, which can be compared with those of the items of fit.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)

        Returns
        -------
        the kind of X, of shape (N, m)
            Of length 1, computed in float32 and returned in the floating type of X; Embeddings keep ids and labels.
        """
        table = self._checked(X)
        items = table.embeddings()
        together = items if self.items_ is None else with_fitted(items, self.items_)
        return self._same_kind(table, self._moved(together).vectors[: len(items)])

    @abstractmethod
    def _moved(self, items: Embeddings) -> Embeddings:
        """`transform` of checked items."""

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        return search_blocks(self._moved(items), k=k)

    def _moved_both(self, queries: Embeddings, gallery: Embeddings) -> tuple[Embeddings, Embeddings]:
        """New vectors of queries, each as if it came alone, and of the gallery without them."""
        raise InputError(
            f"{type(self).__name__} moves items among each other only; for queries in a gallery implement _moved_both"
        )

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        return search_blocks(*self._moved_both(queries, gallery), k)


class PointwiseMethod(VectorMethod):
    """A method that moves every item by itself, whatever else is there."""

    def _moved_both(self, queries: Embeddings, gallery: Embeddings) -> tuple[Embeddings, Embeddings]:
        return self._moved(queries), self._moved(gallery)


class Raw(PointwiseMethod):
    """The vectors as they are, of length 1.

    Examples
    --------
    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> [found.rows.tolist() for _, found in Raw().rank(items, k=1)]
    [[[2], [2], [1]]]
    """

    def _moved(self, items: Embeddings) -> Embeddings:
        return items


def _gives_vectors(method: Method) -> bool:
    """Whether it has transform; if not, scikit-learn gives this error as the reason why the attribute is missing."""
    if not hasattr(method, "transform"):
        raise InputError(f"{method} gives rankings and no vectors; use rank(X, k) instead of transform(X)")
    return True


class Chain(VectorMethod, auto_wrap_output_keys=None):
    """One method after the other: the second works on, and learns from, the vectors that the first gives.

    Parameters
    ----------
    first : VectorMethod
    second : Method
        The chain has `transform` if this one has.

    Attributes
    ----------
    first_, second_ : Method
        Fitted copies.
    """

    _learned = "second_"

    def __init__(self, first: Method, second: Method) -> None:
        self.first = first
        self.second = second

    @property
    def n_parameters_(self) -> int:
        self._check_fitted()
        return self.first_.n_parameters_ + self.second_.n_parameters_

    @available_if(lambda self: _gives_vectors(self.second))
    def transform(self, X: Any) -> Any:
        """Apply both methods to the items; see VectorMethod.transform."""
        return super().transform(X)

    @available_if(lambda self: _gives_vectors(self.second))
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit both methods and return `transform(X)`."""
        return self.fit(X, y).transform(X)

    @property
    def _n_features_out(self) -> int:
        return self.second_._n_features_out

    def _check_settings(self) -> None:
        for name in ("first", "second"):
            if not isinstance(getattr(self, name), Method):
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted a method such as Raw()")
        _gives_vectors(self.first)

    def _learn(self, items: Embeddings) -> None:
        self.first_ = clone(self.first).fit(items)
        self.second_ = clone(self.second).fit(self.first_._moved(items))
        remembers = any(getattr(part, "items_", None) is not None for part in (self.first_, self.second_))
        self.items_ = items if remembers else None

    def _moved(self, items: Embeddings) -> Embeddings:
        return self.second_._moved(self.first_._moved(items))

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        return self.second_.rank(self.first_._moved(items), k)

    def _moved_both(self, queries: Embeddings, gallery: Embeddings) -> tuple[Embeddings, Embeddings]:
        return self.second_._moved_both(*self.first_._moved_both(queries, gallery))

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        return self.second_._rank_in(*self.first_._moved_both(queries, gallery), k)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = any(getattr(part, "_needs_labels", False) for part in (self.first, self.second))
        return tags


class LinearMap(PointwiseMethod):
    """A linear map normalise((x - mean) M) with map_ M (d, m) from fit and mean_ (d,), or 0 without centring."""

    _learned = "map_"
    _least = (2, 2)
    map_: np.ndarray
    mean_: np.ndarray | float

    @property
    def n_parameters_(self) -> int:
        self._check_fitted()
        return self.map_.size + (np.size(self.mean_) if np.ndim(self.mean_) else 0)

    @property
    def _n_features_out(self) -> int:
        return self.map_.shape[1]

    def _moved(self, items: Embeddings) -> Embeddings:
        # In float64, rounded once: equal vectors stay equal wherever they lie in memory, and tie.
        return with_vectors(items, (items.vectors.astype(np.float64) - self.mean_) @ self.map_)


def with_random_state(method: Method, seed: int) -> Method:
    """Return an unfitted copy of a method in which it and its parts draw from this seed."""
    copy = clone(method)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
    return copy.set_params(**dict.fromkeys(names, seed))


# ---- vectors ----------------------------------------------------------------------------------------


def with_vectors(items: Embeddings, vectors: np.ndarray) -> Embeddings:
    """Return the same items with other vectors (N, m), scaled to length 1."""
    return items.replace_vectors(Embeddings.from_vectors(vectors).vectors)


# ---- checks ------------------------------------------------------------------------------------------------------


def training_codes(training: Embeddings) -> np.ndarray:
    """Return the labels of the training items as codes 0..C-1, of shape (N,)."""
    if training.labels is None:
        raise InputError("the training items have no labels; wanted one per item to learn from: pass y")
    return label_codes(training.labels)
