"""Neighbours gathered, weighted and summed in one pass over their rows, without a copy.

Written out with arrays, each of these makes a table of every neighbour of every item, k times the size of the set, only
to sum it up again. The rows of four neighbours are read at a time: memory answers several requests at once.

N items, M context items, k neighbours, d dimensions; arrays of float32, or all of float64. `out` is where the result
goes, if there is a place for it; new memory costs as much as filling it.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from entourage.runtime.jit import compiled
from entourage.runtime.threads import share_out
from entourage.values import FloatArray, IntArray

__all__ = ["add", "attend", "gather_step", "normalise", "silu", "unit_sum"]

# Sums may be taken in any order, so that they are vectorised; infinities and NaN keep their meaning.
_compiled = compiled(fastmath={"arcp", "contract", "nsz", "reassoc"})
_in_order = compiled(fastmath={"contract"}, error_model="numpy")  # where a sum must be taken as it is written
_TINY = 1e-12


def attend(
    queries: FloatArray, keys_values: FloatArray, rows: IntArray, scale: float, *, out: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Softmax attention of each query over some rows of a context.

    Parameters
    ----------
    queries : ndarray of shape (N, d)
    keys_values : ndarray of shape (M, 2d)
        The key and the value of each context item, side by side.
    rows : ndarray of shape (N, k)
        The context items that each query attends to.
    scale : float
        What logits are multiplied by.
    out : ndarray of shape (N, d), optional
        Where the mixed values go.

    Returns
    -------
    mixed : ndarray of shape (N, d)
        Values, weighted and summed.
    weights : ndarray of shape (N, k)
        Summing to 1.
    """
    queries, keys_values = _alike(queries, keys_values)
    mixed, weights = _place(out, queries), np.empty(rows.shape, queries.dtype)
    rows, factor = _rows_within(rows, keys_values), queries.dtype.type(scale)
    share_out(lambda *part: _attend(queries, keys_values, rows, factor, weights, mixed, *part), len(rows))
    return mixed, weights


def gather_step(
    z: FloatArray, context: FloatArray, rows: IntArray, weights: FloatArray, *, out: FloatArray | None = None
) -> FloatArray:
    """One step of refinement, normalise(z_i + sum_j w_ij c_j).

    Parameters
    ----------
    z : ndarray of shape (N, d)
    context : ndarray of shape (M, d)
        The vectors c of the context items.
    rows : ndarray of shape (N, k)
        The context items that each item attends to.
    weights : ndarray of shape (N, k)
        The weight w of each of them.
    out : ndarray of shape (N, d), optional
        Where the result goes.

    Returns
    -------
    ndarray of shape (N, d)
    """
    z, context, weights = _alike(z, context, weights)
    rows, result = _rows_within(rows, context), _place(out, z)
    share_out(lambda *part: _gather_step(z, context, rows, weights, result, *part), len(rows))
    return result


def unit_sum(
    a: float,
    x: FloatArray,
    b: float,
    y: FloatArray,
    *,
    bias: FloatArray | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """The sum of two sets of vectors, scaled to length 1: normalise(a x + b y + bias).

    Parameters
    ----------
    a, b : float
    x, y : ndarray of shape (N, d)
    bias : ndarray of shape (d,), optional
    out : ndarray of shape (N, d), optional
        Where the result goes; it may be x or y.

    Returns
    -------
    ndarray of shape (N, d)
    """
    x, y, bias = _alike(x, y, np.zeros(x.shape[1], x.dtype) if bias is None else bias)
    of_x, of_y, result = x.dtype.type(a), x.dtype.type(b), _place(out, x)
    share_out(lambda *part: _unit_sum(of_x, x, of_y, y, bias, result, *part), len(x))
    return result


def normalise(x: FloatArray) -> FloatArray:
    """x (N, d) scaled to rows of length 1, in the place of x; rows of zeros stay."""
    share_out(lambda *part: _normalise_rows(x, *part), len(x))
    return x


def add(y: FloatArray, x: FloatArray, bias: FloatArray) -> FloatArray:
    """y + x + bias, in the place of y: x and y (N, d), bias (d,)."""
    x, bias = _as_compiled(x, y.dtype), _as_compiled(bias, y.dtype)
    share_out(lambda *part: _add(y, x, bias, *part), len(y))
    return y


def silu(x: FloatArray, bias: FloatArray) -> FloatArray:
    """y / (1 + exp(-y)) of y = x + bias, for x (N, d) and bias (d,); in the place of x."""
    if x.dtype != np.float32:
        x += bias
        return np.divide(x, 1 + np.exp(-x), out=x)
    bias = _as_compiled(bias, np.float32)
    share_out(lambda *part: _silu(x, bias, *part), len(x))
    return x


def _alike(*arrays: FloatArray) -> list[FloatArray]:
    """The arrays as one type of float, float32 at least."""
    floats = np.result_type(np.float32, *arrays)
    return [_as_compiled(array, floats) for array in arrays]


def _as_compiled(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The array in the one layout that kernels are compiled for, read only; copied if it must be."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _rows_within(rows: IntArray, table: FloatArray) -> IntArray:
    """The rows, if the table has them all: kernels do not look."""
    if rows.size and not (rows.min() >= 0 and rows.max() < len(table)):
        raise IndexError(f"rows run from {rows.min()} to {rows.max()}; wanted 0 to {len(table) - 1}, as in the table")
    return _as_compiled(rows, np.int64)


def _place(out: FloatArray | None, like: FloatArray) -> FloatArray:
    return np.empty_like(like) if out is None else out


# ---- kernels: items start..stop ----------------------------------------------------------------------------------


@_compiled
def _attend(
    queries: FloatArray,
    keys_values: FloatArray,
    rows: IntArray,
    scale: np.floating[Any],
    weights: FloatArray,
    mixed: FloatArray,
    start: int,
    stop: int,
) -> None:
    d = queries.shape[1]
    for i in range(start, stop):
        _dot_rows(queries[i], keys_values, rows[i], weights[i])
        largest = weights[i].max()
        total = queries.dtype.type(0)
        for r in range(rows.shape[1]):
            weights[i, r] = np.exp(scale * (weights[i, r] - largest))
            total += weights[i, r]
        for r in range(rows.shape[1]):
            weights[i, r] /= total
        mixed[i] = 0
        _add_rows(mixed[i], weights[i], keys_values, rows[i], d)


@_in_order
def _silu(x: FloatArray, bias: FloatArray, start: int, stop: int) -> None:
    """In single precision, and vectorised, which exp itself is not: exp(-y) = 2^z = 2^n exp(r) for the whole number n
    nearest to z. Added to a float too large for digits after the point, z leaves n in its last bits; shifted to where a
    float keeps its exponent, which is 127 more, they are 2^n. exp(r) is a polynomial, of the Cephes library.
    """
    f = np.float32
    log2_e, ln_2, whole = f(1.442695041), f(0.6931471806), f(1.5 * 2**23)
    y, z, power = np.empty(x.shape[1], f), np.empty(x.shape[1], f), np.empty(x.shape[1], f)
    bits = power.view(np.int32)
    for i in range(start, stop):
        for c in range(len(y)):
            y[c] = x[i, c] + bias[c]
            z[c] = min(max(-y[c] * log2_e, f(-126)), f(126))
            power[c] = z[c] + whole
            z[c] -= power[c] - whole
        for c in range(len(y)):
            bits[c] = (bits[c] + 127) << 23
        for c in range(len(y)):
            r = z[c] * ln_2
            p = f(1.9875691500e-4)
            p = p * r + f(1.3981999507e-3)
            p = p * r + f(8.3334519073e-3)
            p = p * r + f(4.1665795894e-2)
            p = p * r + f(1.6666665459e-1)
            p = p * r + f(5.0000001201e-1)
            x[i, c] = y[c] / (f(1) + power[c] * (p * r * r + r + f(1)))


@_compiled
def _gather_step(
    z: FloatArray,
    context: FloatArray,
    rows: IntArray,
    weights: FloatArray,
    result: FloatArray,
    start: int,
    stop: int,
) -> None:
    for i in range(start, stop):
        for c in range(z.shape[1]):
            result[i, c] = z[i, c]
        _add_rows(result[i], weights[i], context, rows[i], 0)
        _normalise(result[i])


@_compiled
def _unit_sum(
    a: np.floating[Any],
    x: FloatArray,
    b: np.floating[Any],
    y: FloatArray,
    bias: FloatArray,
    result: FloatArray,
    start: int,
    stop: int,
) -> None:
    for i in range(start, stop):
        for c in range(x.shape[1]):
            result[i, c] = a * x[i, c] + b * y[i, c] + bias[c]
        _normalise(result[i])


@_compiled
def _normalise_rows(x: FloatArray, start: int, stop: int) -> None:
    for i in range(start, stop):
        _normalise(x[i])


@_compiled
def _add(y: FloatArray, x: FloatArray, bias: FloatArray, start: int, stop: int) -> None:
    for i in range(start, stop):
        for c in range(x.shape[1]):
            y[i, c] += x[i, c] + bias[c]


@_compiled
def _dot_rows(vector: FloatArray, table: FloatArray, rows: IntArray, dots: FloatArray) -> None:
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
def _add_rows(vector: FloatArray, weights: FloatArray, table: FloatArray, rows: IntArray, first: int) -> None:
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
def _normalise(vector: FloatArray) -> None:
    square = vector.dtype.type(0)
    for c in range(len(vector)):
        square += vector[c] * vector[c]
    factor = vector.dtype.type(1 / max(np.sqrt(square), _TINY))
    for c in range(len(vector)):
        vector[c] *= factor
