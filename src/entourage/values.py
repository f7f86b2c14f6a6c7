"""The values that travel along the pipeline: frozen, and checked once, at birth.

Embeddings -> search -> Neighbors -> refiner -> Trajectory.
N items, d dimensions, k neighbours, T steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from entourage.errors import InputError

__all__ = ["Attention", "Embeddings", "Neighbors", "Trajectory", "label_codes", "shared_codes"]

# Unit length up to the rounding of half precision, which is what many stores keep.
_UNIT_TOLERANCE = 2e-3
# Closer to 1 than this is the rounding of a vector scaled before: it is kept to the bit.
_SCALED_BEFORE = 1e-6


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Unit vectors with stable ids and, where known, labels.

    vectors (N, d) float32 of length 1; ids (N,) integers or strings, unique; labels (N,) integers or strings.
    Without ids the rows are numbered 0..N-1, and `named` is False: such numbers mean nothing in another set.
    cameras and sequences, (N,) each where known, say which items are too easy to find (see evaluation.py).

    >>> e = Embeddings.from_vectors([[3.0, 4.0], [0.0, 2.0]], labels=["cat", "dog"])
    >>> e.vectors.tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]]
    >>> e.ids.tolist(), e.named
    ([0, 1], False)
    """

    vectors: np.ndarray
    ids: np.ndarray | None = None
    labels: np.ndarray | None = None
    named: bool = True
    cameras: np.ndarray | None = None
    sequences: np.ndarray | None = None

    def __post_init__(self):
        vectors = _matrix(self.vectors, "vectors")
        with np.errstate(over="ignore"):
            lengths = np.multiply(*_lengths(vectors))
        off = np.flatnonzero(~(np.abs(lengths - 1) <= _UNIT_TOLERANCE))
        if off.size:
            raise InputError(
                f"row {off[0]} has length {lengths[off[0]]:.4g}, but Embeddings hold unit vectors: "
                "use Embeddings.from_vectors, which normalises"
            )
        count = len(vectors)
        named = self.ids is not None and self.named
        ids = np.arange(count) if self.ids is None else _column(self.ids, "ids", count)
        _check_unique(ids)
        vectors = np.ascontiguousarray(vectors, np.float32)
        columns = {name: getattr(self, name) for name in ("labels", "cameras", "sequences")}
        columns = {name: None if values is None else _column(values, name, count) for name, values in columns.items()}
        _freeze(self, vectors=vectors, ids=ids, named=named, **columns)

    @classmethod
    def from_vectors(cls, vectors, ids=None, labels=None, *, cameras=None, sequences=None) -> "Embeddings":
        """Check raw vectors (N, d) of any float type and scale each to length 1; the input is not changed."""
        raw = _matrix(vectors, "vectors")
        scales, lengths = _lengths(raw)
        bad = np.flatnonzero(~np.isfinite(lengths))
        if bad.size:
            row = raw[bad[0]]
            seen = "NaN" if np.isnan(row).any() else "inf" if np.isinf(row).any() else "an overflowing value"
            raise InputError(
                f"row {bad[0]} of the vectors contains {seen} ({bad.size} such row{_s(bad.size)}); "
                "every value must be finite: drop or re-encode them"
            )
        zero = np.flatnonzero(lengths == 0)
        if zero.size:
            raise InputError(
                f"row {zero[0]} of the vectors is all zeros ({zero.size} such row{_s(zero.size)}); a vector needs "
                "a direction to be compared: drop or re-encode them"
            )
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

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """The vectors, wherever numpy wants an array."""
        return np.array(self.vectors, dtype, copy=copy)

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def take(self, rows) -> "Embeddings":
        """The given rows, in the given order, with all that is known of them."""
        columns = {name: getattr(self, name) for name in ("labels", "cameras", "sequences")}
        columns = {name: None if values is None else values[rows] for name, values in columns.items()}
        return replace(self, vectors=self.vectors[rows], ids=self.ids[rows], **columns)

    def replace_vectors(self, vectors) -> "Embeddings":
        """Other vectors for the same items: the ids, labels and order stay."""
        return replace(self, vectors=vectors)


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The k nearest gallery rows of each query, nearest first.

    rows (N, k) int64 into the gallery; similarities (N, k) float32, never increasing along a row.
    """

    rows: np.ndarray
    similarities: np.ndarray

    def __post_init__(self):
        rows = np.ascontiguousarray(self.rows, np.int64)
        similarities = np.ascontiguousarray(self.similarities, np.float32)
        if rows.ndim != 2 or rows.shape != similarities.shape:
            raise InputError(f"rows have shape {rows.shape} and similarities {similarities.shape}; both must be (N, k)")
        if rows.size and rows.min() < 0:
            raise InputError(f"neighbour row {rows.min()} is negative; rows count from 0")
        if (np.diff(similarities, axis=1) > 0).any():
            raise InputError("similarities increase along a row; neighbours are listed nearest first")
        _freeze(self, rows=rows, similarities=similarities)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def k(self) -> int:
        return self.rows.shape[1]

    def kept_in(self, other: "Neighbors") -> np.ndarray:
        """How many of each query's neighbours are among its neighbours in `other`, (N,).

        >>> before, after = Neighbors([[1, 2]], [[0.9, 0.8]]), Neighbors([[3, 1]], [[0.9, 0.8]])
        >>> before.kept_in(after).tolist()
        [1]
        """
        return (self.rows[:, :, None] == other.rows[:, None, :]).any(axis=2).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Every step of a refinement: steps[t] is e_t (through the output head, if there is one).

    steps (T + 1, N, d) float32; ids (N,).
    """

    steps: np.ndarray
    ids: np.ndarray

    def __post_init__(self):
        steps = np.ascontiguousarray(self.steps, np.float32)
        if steps.ndim != 3:
            raise InputError(f"steps have shape {steps.shape}; wanted (T + 1, N, d)")
        _freeze(self, steps=steps, ids=_column(self.ids, "ids", steps.shape[1]))

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, step: int) -> np.ndarray:
        return self.steps[step]


@dataclass(frozen=True, eq=False)
class Attention:
    """How much each item looked at each of its neighbours, block by block.

    weights (T, N, k) float32, each [t, i] summing to 1; ids (N,) of the items; neighbor_ids (N, k), nearest first.
    """

    weights: np.ndarray
    ids: np.ndarray
    neighbor_ids: np.ndarray

    def __post_init__(self):
        weights = np.ascontiguousarray(self.weights, np.float32)
        neighbor_ids = np.asarray(self.neighbor_ids)
        if weights.ndim != 3 or weights.shape[1:] != neighbor_ids.shape:
            raise InputError(
                f"weights have shape {weights.shape} and neighbor_ids {neighbor_ids.shape}; wanted (T, N, k) and (N, k)"
            )
        ids = _column(self.ids, "ids", len(neighbor_ids))
        _freeze(self, weights=weights, ids=ids, neighbor_ids=neighbor_ids)


def label_codes(labels) -> np.ndarray:
    """Labels of any kind as codes 0..C-1 in sorted order, (N,) int64.

    >>> label_codes(["dog", "cat", "dog"]).tolist()
    [1, 0, 1]
    """
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64).reshape(-1)


def shared_codes(left, right) -> tuple[np.ndarray, np.ndarray]:
    """Codes for two columns such that equal values get equal codes; numbers match their text form.

    >>> [codes.tolist() for codes in shared_codes([7, 9], ["9", "10"])]
    [[1, 2], [2, 0]]
    """
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype.kind != right.dtype.kind:  # also int64 and uint64, which numpy would meet in floats
        left, right = left.astype(str), right.astype(str)
    codes = label_codes(np.concatenate([left, right]))
    return codes[: len(left)], codes[len(left) :]


def _matrix(values, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise InputError(
            f"{name} are {array.dtype} of shape {array.shape}; wanted a table of numbers, one row per item (N, d)"
        )
    if not len(array):
        raise InputError(f"{name} have 0 rows; at least one item is needed")
    return array


def _lengths(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _column(values, name: str, count: int) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim != 1 or len(column) != count:
        seen = f"{len(column)} {name}" if column.ndim == 1 else f"{name} of shape {column.shape}"
        raise InputError(f"{seen} for {count} vectors; wanted one per vector, in the same order")
    if column.dtype.kind == "O":
        if any(value is None or value != value for value in column):
            raise InputError(f"the {name} contain missing values; wanted one per vector: fill or drop those rows")
        column = column.astype(str)
    if column.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # what no integer can hold differs from its cast, and is refused below
            whole = column.astype(np.int64, casting="unsafe")
        if (whole != column).any():
            raise InputError(f"the {name} are {column.dtype} and not whole numbers; wanted integers or text")
        column = whole
    if column.dtype.kind not in "iubU":
        raise InputError(f"the {name} are of type {column.dtype}; wanted integers or text")
    return column


def _check_unique(ids: np.ndarray) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if len(values) != len(ids):
        twice = values[counts > 1]
        raise InputError(
            f"id {twice[0].item()!r} appears {counts[counts > 1][0]} times ({len(twice)} id{_s(len(twice))} repeated); "
            "ids must be unique: remove or rename the repeated rows"
        )


def _freeze(value, **fields) -> None:
    """Set checked fields on a frozen dataclass; its arrays become read-only views."""
    for name, field in fields.items():
        if isinstance(field, np.ndarray):
            field = field.view()
            field.flags.writeable = False
        object.__setattr__(value, name, field)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
