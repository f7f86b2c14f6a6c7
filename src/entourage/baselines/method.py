"""The one interface of the baselines, and what several of them share.

N items, d dimensions, n queries at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from entourage.errors import InputError, NotFittedError
from entourage.neighbors import search_blocks
from entourage.values import Embeddings, Neighbors, label_codes

__all__ = ["Chain", "LinearMap", "Method", "Raw"]

_VALUES_AT_ONCE = 2**22  # similarities held at once: 32 MiB


class Method:
    """fit learns from labelled training items (or ignores them); transform gives vectors; rank gives rankings.

    Settings are the fields of each method; what fit learns ends in an underscore.
    """

    @property
    def n_parameters(self) -> int:
        """How many numbers fit learned; 0 where there is nothing to learn."""
        return 0

    def fit(self, training: Embeddings, *, seed: int = 0) -> "Method":
        """Learn from the training items; seed decides whatever is drawn."""
        return self

    def transform(self, items: Embeddings) -> Embeddings:
        """New vectors of the same items: ids, labels and order stay."""
        raise InputError(f"{self} gives rankings and no vectors; use rank(items, k) instead of transform(items)")

    def rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """The k best others of each item, best first and never the item itself, some queries at a time."""
        return search_blocks(self.transform(items), k=k)


@dataclass
class Raw(Method):
    """The vectors as they are.

    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> [found.rows.tolist() for _, found in Raw().rank(items, k=1)]
    [[[2], [2], [1]]]
    """

    def transform(self, items: Embeddings) -> Embeddings:
        return items


@dataclass
class Chain(Method):
    """One method after the other: second works on, and learns from, the vectors that first gives."""

    first: Method
    second: Method

    def __post_init__(self):
        for name in ("first", "second"):
            if not isinstance(getattr(self, name), Method):
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted a method such as Raw()")

    @property
    def n_parameters(self) -> int:
        return self.first.n_parameters + self.second.n_parameters

    def fit(self, training: Embeddings, *, seed: int = 0) -> "Chain":
        self.second.fit(self.first.fit(training, seed=seed).transform(training), seed=seed)
        return self

    def transform(self, items: Embeddings) -> Embeddings:
        return self.second.transform(self.first.transform(items))

    def rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        return self.second.rank(self.first.transform(items), k)


class LinearMap(Method):
    """normalise((x - mean) M) with map_ M (d, m) from fit and mean_ (d,), or 0 without centring."""

    map_: np.ndarray
    mean_: np.ndarray | float = 0.0

    @property
    def n_parameters(self) -> int:
        check_fitted(self, "map_")
        return self.map_.size + (np.size(self.mean_) if np.ndim(self.mean_) else 0)

    def transform(self, items: Embeddings) -> Embeddings:
        check_fitted(self, "map_")
        check_dimensions(items, len(self.map_))
        # In float64, rounded once: equal vectors stay equal wherever they lie in memory, and tie.
        return with_vectors(items, (items.vectors.astype(np.float64) - self.mean_) @ self.map_)


# ---- vectors and rankings ----------------------------------------------------------------------------------------


def with_vectors(items: Embeddings, vectors: np.ndarray) -> Embeddings:
    """The same items with other vectors (N, m), scaled to length 1."""
    return items.replace_vectors(Embeddings.from_vectors(vectors).vectors)


def cosine_blocks(items: Embeddings, at_most: int = 512) -> Iterator[tuple[slice, np.ndarray]]:
    """Similarities (n, N) float64 of n queries to all items at a time, for methods that need every one."""
    vectors = items.vectors.astype(np.float64)
    size = int(np.clip(_VALUES_AT_ONCE // len(items), 1, at_most))
    for start in range(0, len(items), size):
        block = slice(start, min(start + size, len(items)))
        yield block, vectors[block] @ vectors.T


def best_scored(items: Embeddings, block: slice, scores: np.ndarray, k: int) -> Neighbors:
    """The k best of scores (n, N) for each query of the block, never itself; equal scores by id, lower first.

    Scores are compared as float32, so that ties survive sums taken in another order.
    """
    by_id = np.argsort(items.ids, kind="stable")
    scores = scores.astype(np.float32)
    scores[np.arange(len(scores)), np.arange(block.start, block.stop)] = -np.inf
    scores = scores[:, by_id]
    least = np.partition(scores, -k, axis=1)[:, -k]  # the k-th best
    rows = np.empty((len(scores), k), np.int64)
    for query, (row, bound) in enumerate(zip(scores, least, strict=True)):
        candidates = np.flatnonzero(row >= bound)  # in order of id, which the stable sort keeps
        rows[query] = candidates[np.argsort(-row[candidates], kind="stable")[:k]]
    return Neighbors(by_id[rows], np.take_along_axis(scores, rows, axis=1))


# ---- checks ------------------------------------------------------------------------------------------------------


def training_codes(training: Embeddings) -> np.ndarray:
    """Labels of the training items as codes 0..C-1, (N,)."""
    if training.labels is None:
        raise InputError("the training items have no labels; wanted one per item to learn from")
    return label_codes(training.labels)


def check_depth(items: Embeddings, k: int) -> None:
    if not (isinstance(k, Integral) and 1 <= k < len(items)):
        raise InputError(
            f"k = {k} ranks asked of {len(items)} items; wanted 1 ≤ k ≤ {len(items) - 1}: lower k or bring more items"
        )


def check_whole(name: str, value, least: int) -> None:
    if not (isinstance(value, Integral) and value >= least):
        raise InputError(f"{name} is {value!r}; wanted a whole number, at least {least}")


def check_share(name: str, value, *, below_one: bool = False) -> None:
    if not (isinstance(value, Real) and 0 <= value <= 1) or (below_one and value == 1):
        raise InputError(f"{name} is {value!r}; wanted 0 ≤ {name} {'<' if below_one else '≤'} 1")


def check_not_negative(name: str, value) -> None:
    if not (isinstance(value, Real) and 0 <= value < np.inf):
        raise InputError(f"{name} is {value!r}; wanted a finite number, at least 0")


def check_fitted(method: Method, learned: str) -> None:
    if not hasattr(method, learned):
        raise NotFittedError(f"{method} has not learned anything yet: call fit(training) first")


def check_dimensions(items: Embeddings, dim: int) -> None:
    if items.dim != dim:
        raise InputError(
            f"the items have {items.dim} dimensions but the training items had {dim}; use vectors of one encoder"
        )
