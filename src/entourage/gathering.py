"""What an item takes from its neighbours, in one pass over their rows: gathered, weighed and summed, never copied.

Written out with arrays, each of these makes a table of every neighbour of every item, k times the size of the set, only
to sum it up again. The rows of four neighbours are read at a time: memory answers several requests at once.

N items, M context items, k neighbours, d dimensions; arrays of float32, or all of float64. `out` is where the result
goes, if there is a place for it; new memory costs as much as filling it.
"""

import numpy as np

from entourage.compiling import compiled
from entourage.threads import share_out

__all__ = ["attend", "gather_step", "unit_sum"]

# Sums may be taken in any order, so that they are vectorised; infinities and NaN keep their meaning.
_compiled = compiled(fastmath={"arcp", "contract", "nsz", "reassoc"})
_TINY = 1e-12


def attend(asked: np.ndarray, offered: np.ndarray, rows: np.ndarray, scale: float, *, out=None) -> tuple:
    """Softmax attention: mixed values (N, d) and weights (N, k).

    asked (N, d); offered (M, 2d): of each context item its key and its value, side by side; rows (N, k) of it.
    """
    asked, offered = _alike(asked, offered)
    mixed, weights = _place(out, asked), np.empty(rows.shape, asked.dtype)
    rows, scale = _as_compiled(rows, np.int64), asked.dtype.type(scale)
    share_out(lambda *part: _attend(asked, offered, rows, scale, weights, mixed, *part), len(rows))
    return mixed, weights


def gather_step(z: np.ndarray, context: np.ndarray, rows: np.ndarray, weights: np.ndarray, *, out=None) -> np.ndarray:
    """normalise(z_i + sum_j w_ij c_j), (N, d), for z (N, d), context c (M, d), rows of it and weights (N, k)."""
    z, context, weights = _alike(z, context, weights)
    rows, result = _as_compiled(rows, np.int64), _place(out, z)
    share_out(lambda *part: _gather_step(z, context, rows, weights, result, *part), len(rows))
    return result


def unit_sum(a: float, x: np.ndarray, b: float, y: np.ndarray, *, out=None) -> np.ndarray:
    """normalise(a x + b y), each (N, d)."""
    x, y = _alike(x, y)
    a, b, result = x.dtype.type(a), x.dtype.type(b), _place(out, x)
    share_out(lambda *part: _unit_sum(a, x, b, y, result, *part), len(x))
    return result


def _alike(*arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays as one type of float, float32 at least."""
    floats = np.result_type(np.float32, *arrays)
    return [_as_compiled(array, floats) for array in arrays]


def _as_compiled(array: np.ndarray, dtype) -> np.ndarray:
    """The array in the one layout that kernels are compiled for, read only; copied if it must be."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _place(out: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    return np.empty_like(like) if out is None else out


# ---- kernels: items start..stop ----------------------------------------------------------------------------------


@_compiled
def _attend(asked, offered, rows, scale, weights, mixed, start, stop):
    d = asked.shape[1]
    for i in range(start, stop):
        _dot_rows(asked[i], offered, rows[i], weights[i])
        largest = weights[i].max()
        total = asked.dtype.type(0)
        for r in range(rows.shape[1]):
            weights[i, r] = np.exp(scale * (weights[i, r] - largest))
            total += weights[i, r]
        for r in range(rows.shape[1]):
            weights[i, r] /= total
        mixed[i] = 0
        _add_rows(mixed[i], weights[i], offered, rows[i], d)


@_compiled
def _gather_step(z, context, rows, weights, result, start, stop):
    for i in range(start, stop):
        for c in range(z.shape[1]):
            result[i, c] = z[i, c]
        _add_rows(result[i], weights[i], context, rows[i], 0)
        _normalise(result[i])


@_compiled
def _unit_sum(a, x, b, y, result, start, stop):
    for i in range(start, stop):
        for c in range(x.shape[1]):
            result[i, c] = a * x[i, c] + b * y[i, c]
        _normalise(result[i])


@_compiled
def _dot_rows(vector, table, rows, dots):
    """dots_r = vector . table[rows_r]; columns of the table beyond the vector's are left alone."""
    zero = vector.dtype.type(0)
    fours = len(rows) // 4 * 4
    for r in range(0, fours, 4):
        t0, t1, t2, t3 = table[rows[r]], table[rows[r + 1]], table[rows[r + 2]], table[rows[r + 3]]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for c in range(len(vector)):
            s0 += vector[c] * t0[c]
            s1 += vector[c] * t1[c]
            s2 += vector[c] * t2[c]
            s3 += vector[c] * t3[c]
        dots[r], dots[r + 1], dots[r + 2], dots[r + 3] = s0, s1, s2, s3
    for r in range(fours, len(rows)):
        t0, s0 = table[rows[r]], zero
        for c in range(len(vector)):
            s0 += vector[c] * t0[c]
        dots[r] = s0


@_compiled
def _add_rows(vector, weights, table, rows, first):
    """vector += sum_r weights_r table[rows_r], of whose columns it takes those from `first` on."""
    fours = len(rows) // 4 * 4
    for r in range(0, fours, 4):
        t0, t1 = table[rows[r]][first:], table[rows[r + 1]][first:]
        t2, t3 = table[rows[r + 2]][first:], table[rows[r + 3]][first:]
        w0, w1, w2, w3 = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
        for c in range(len(vector)):
            vector[c] += w0 * t0[c] + w1 * t1[c] + w2 * t2[c] + w3 * t3[c]
    for r in range(fours, len(rows)):
        t0, w0 = table[rows[r]][first:], weights[r]
        for c in range(len(vector)):
            vector[c] += w0 * t0[c]


@_compiled
def _normalise(vector):
    square = vector.dtype.type(0)
    for c in range(len(vector)):
        square += vector[c] * vector[c]
    factor = vector.dtype.type(1 / max(np.sqrt(square), _TINY))
    for c in range(len(vector)):
        vector[c] *= factor
