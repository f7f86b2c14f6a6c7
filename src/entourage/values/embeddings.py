"""Embeddings: unit vectors with ids and, where known, labels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from entourage.errors import InputError
from entourage.values.columns import (
    BoolArray,
    FloatArray,
    IntArray,
    LabelArray,
    check_unique,
    checked_column,
    plural,
    set_frozen,
)
from entourage.values.conversion import as_matrix

__all__ = ["Embeddings", "as_embeddings", "unit_factors", "without_direction"]

# Unit length up to the rounding of half precision, which is what many stores keep.
_UNIT_TOLERANCE = 2e-3
# Closer to 1 than this is the rounding of a vector scaled before: it is kept to the bit.
_SCALED_BEFORE = 1e-6
_OPTIONAL_COLUMNS = ("labels", "cameras", "sequences")


@dataclass(frozen=True, eq=False, init=False)
class Embeddings:
    """Unit vectors with stable ids and, where known, labels, cameras and sequences.

    Parameters
    ----------
    vectors : array-like of shape (N, d)
        Vectors of length 1, of any kind (arrays, lists, DataFrames, columns of lists, tensors);
        `Embeddings.from_vectors` takes vectors of any length.
    ids : array-like of shape (N,), optional
        Unique integers or texts. Without them the rows are numbered 0 to N - 1.
    labels : array-like of shape (N,), optional
        The class of each item, as integers or texts.
    named : bool, default True
        Whether equal ids in another set mean the same items. Always False if no ids are given, as row numbers do not.
    cameras, sequences : array-like of shape (N,), optional
        The camera and the sequence (such as a video) that each item is from; see `entourage.evaluation.exclusions`.

    Raises
    ------
    InputError
        If a vector is not of length 1, an id is repeated, or a column has another length than the vectors.

    Examples
    --------
    >>> e = Embeddings.from_vectors([[3.0, 4.0], [0.0, 2.0]], labels=["cat", "dog"])
    >>> e.vectors.tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]]
    >>> e.ids.tolist(), e.named
    ([0, 1], False)
    >>> e
    Embeddings(2 items of 2 dimensions, 2 classes)
    """

    vectors: NDArray[np.float32]
    """(N, d) unit vectors."""
    ids: LabelArray
    """(N,) integers or texts, unique."""
    labels: LabelArray | None
    """(N,) integers or texts, or None where unknown."""
    named: bool
    """Whether the ids were given, so that equal ids in another set mean the same items."""
    cameras: LabelArray | None
    """(N,) integers or texts, or None where unknown."""
    sequences: LabelArray | None
    """(N,) integers or texts, or None where unknown."""

    def __init__(
        self,
        vectors: ArrayLike,
        ids: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        named: bool = True,
        cameras: ArrayLike | None = None,
        sequences: ArrayLike | None = None,
    ) -> None:
        matrix = _matrix(vectors, "vectors")
        with np.errstate(over="ignore"):
            lengths = np.multiply(*_lengths(matrix))
        off = np.flatnonzero(~(np.abs(lengths - 1) <= _UNIT_TOLERANCE))
        if off.size:
            raise InputError(
                f"row {off[0]} has length {lengths[off[0]]:.4g}, but Embeddings hold unit vectors: "
                "use Embeddings.from_vectors, which normalises"
            )
        count = len(matrix)
        column_of_ids = np.arange(count) if ids is None else checked_column(ids, "ids", count)
        check_unique(column_of_ids)
        columns = zip(_OPTIONAL_COLUMNS, (labels, cameras, sequences), strict=True)
        checked = {name: None if values is None else checked_column(values, name, count) for name, values in columns}
        unit = np.ascontiguousarray(matrix, np.float32)
        set_frozen(self, vectors=unit, ids=column_of_ids, named=ids is not None and named, **checked)

    @classmethod
    def from_vectors(
        cls,
        vectors: ArrayLike,
        ids: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        *,
        cameras: ArrayLike | None = None,
        sequences: ArrayLike | None = None,
    ) -> "Embeddings":
        """Check raw vectors and scale each to length 1.

        Parameters
        ----------
        vectors : array-like of shape (N, d)
            Finite numbers of any type, no row of them all zeros. The array is not changed.
        ids, labels, cameras, sequences : array-like of shape (N,), optional
            What is known of each vector, as in the constructor.

        Returns
        -------
        Embeddings
            N unit vectors; those that have length 1 already are kept to the bit.
        """
        raw = _matrix(vectors, "vectors")
        scales, lengths = _lengths(raw)
        _check_directions(raw, lengths)
        with np.errstate(over="ignore"):
            unit_already = np.abs(scales * lengths - 1) < _SCALED_BEFORE
        scales[unit_already] = lengths[unit_already] = 1
        unit = np.empty(raw.shape, np.float32)
        for rows in _blocks(len(raw)):
            unit[rows] = raw[rows] / scales[rows, None] / lengths[rows, None]  # in float64, rounded once
        unit += 0.0  # -0.0 becomes 0.0, so that equal vectors are equal to the bit
        return cls(unit, ids, labels, cameras=cameras, sequences=sequences)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        classes = "" if self.labels is None else f", {len(np.unique(self.labels)):,} classes"
        others = [name for name in ("cameras", "sequences") if getattr(self, name) is not None]
        more = f", with {' and '.join(others)}" if others else ""
        return f"Embeddings({len(self):,} items of {self.dim} dimensions{classes}{', named' * self.named}{more})"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """The vectors (N, d), wherever numpy wants an array."""
        return np.array(self.vectors, dtype, copy=copy)

    @property
    def dim(self) -> int:
        """The number of dimensions, d."""
        return int(self.vectors.shape[1])

    def take(self, rows: Sequence[int] | IntArray | BoolArray) -> "Embeddings":
        """Select items.

        Parameters
        ----------
        rows : array of shape (n,) or (N,)
            Row numbers, in the wanted order, or a mask that is True for the wanted rows.

        Returns
        -------
        Embeddings
            The n items with their ids, labels, cameras and sequences.
        """
        known = {name: getattr(self, name) for name in _OPTIONAL_COLUMNS}
        columns = {name: None if values is None else values[rows] for name, values in known.items()}
        return Embeddings(self.vectors[rows], self.ids[rows], named=self.named, **columns)

    def replace_vectors(self, vectors: ArrayLike) -> "Embeddings":
        """Give the same items other vectors.

        Parameters
        ----------
        vectors : array-like of shape (N, d')
            A unit vector for each item, in the same order; d' may differ from d.

        Returns
        -------
        Embeddings
            The new vectors with the ids, labels, cameras and sequences of the old ones.
        """
        return replace(self, vectors=np.asarray(vectors))

    def without_labels(self) -> "Embeddings":
        """Forget what is known of the items: labels, cameras and sequences.

        Returns
        -------
        Embeddings
            The same vectors and ids.
        """
        return Embeddings(self.vectors, self.ids, named=self.named)


def as_embeddings(vectors: Any, labels: Any = None, *, name: str = "vectors") -> Embeddings:
    """Take vectors of any kind as Embeddings: the one way into every public function.

    Parameters
    ----------
    vectors : Embeddings, array, list, DataFrame, column of lists or tensor of shape (N, d)
        Embeddings are taken as they are, others are scaled to length 1.
    labels : array-like of shape (N,), optional
        Labels, integers or texts; for Embeddings they take the place of their own.
    name : str
        What messages call the vectors.

    Returns
    -------
    Embeddings

    Examples
    --------
    >>> as_embeddings([[3.0, 4.0]], ["cat"]).labels.tolist()
    ['cat']
    """
    if isinstance(vectors, Embeddings):
        return vectors if labels is None else replace(vectors, labels=labels)
    return Embeddings.from_vectors(_matrix(vectors, name), labels=labels)


# ---- vectors -----------------------------------------------------------------------------------------------------


def without_direction(vectors: NDArray[Any], lengths: FloatArray | None = None) -> str | None:
    """Say which rows of vectors cannot be scaled to length 1.

    Parameters
    ----------
    vectors : array of shape (N, d)
    lengths : array of shape (N,), optional
        Their lengths, if they are known already.

    Returns
    -------
    str or None
        The first such row and what it holds; None if all rows have a direction.

    Examples
    --------
    >>> without_direction(np.array([[1.0, 2.0], [0.0, 0.0]]))
    'row 1 of the vectors is all zeros (1 such row)'
    """
    lengths = _lengths(vectors)[1] if lengths is None else lengths
    bad = np.flatnonzero(~np.isfinite(lengths))
    if bad.size:
        row = vectors[bad[0]]
        seen = "NaN" if np.isnan(row).any() else "inf" if np.isinf(row).any() else "an overflowing value"
        return f"row {bad[0]} of the vectors contains {seen} ({bad.size} such row{plural(bad.size)})"
    zero = np.flatnonzero(lengths == 0)
    return f"row {zero[0]} of the vectors is all zeros ({zero.size} such row{plural(zero.size)})" if zero.size else None


def unit_factors(raw: NDArray[Any]) -> NDArray[np.float32]:
    """What each vector has to be multiplied by to have length 1, of vectors that need not be in memory.

    Parameters
    ----------
    raw : array of shape (N, d)
        Finite numbers, no row of them all zeros; may be a memory-mapped file.

    Returns
    -------
    array of shape (N,)
        float32, 1 where a vector has length 1 already.

    Examples
    --------
    >>> unit_factors(np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [0.20000000298023224, 1.0]
    """
    scales, lengths = _lengths(raw)
    _check_directions(raw, lengths)
    lengths *= scales
    lengths[np.abs(lengths - 1) < _SCALED_BEFORE] = 1
    return (1 / lengths).astype(np.float32)


def _check_directions(raw: NDArray[Any], lengths: FloatArray) -> None:
    """Refuse rows of raw (N, d) that cannot be scaled to length 1, by their lengths (N,)."""
    sentence = without_direction(raw, lengths)
    if sentence:
        why = "a vector needs a direction to be compared" if "zeros" in sentence else "every value must be finite"
        raise InputError(f"{sentence}; {why}: drop or re-encode them")


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    array = as_matrix(values, name)
    if not array.size:
        raise InputError(
            f"{name} must have at least one row and one column, but the shape is {array.shape}: check what made them"
        )
    return array


def _lengths(vectors: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Length of each row as the product of two factors, each (N,) float64.

    The first is 1 except for values so large or small that their squares would overflow or vanish: there it is the
    row's largest value.
    """
    scales, squares = np.ones(len(vectors)), np.empty(len(vectors))
    with np.errstate(over="ignore"):
        for rows in _blocks(len(vectors)):
            block = vectors[rows].astype(np.float64)
            squares[rows] = np.einsum("nd,nd->n", block, block)
    for row in np.flatnonzero(~((squares > 1e-200) & (squares < 1e200))):
        values = vectors[row].astype(np.float64)
        largest = np.abs(values).max()
        if 0 < largest < np.inf:
            scales[row], squares[row] = largest, np.square(values / largest).sum()
    return scales, np.sqrt(squares)


def _blocks(count: int) -> Iterator[slice]:
    """Rows in parts, so that no second copy of all vectors is held."""
    return (slice(start, start + 512) for start in range(0, count, 512))
