"""Similarities of some pairs to the last bit: the same whichever search found the pair.

A matrix product rounds a similarity differently from one shape of a table to the next. What is kept from one change to
the next must not depend on it, so a product only says which pairs may be similar enough.

M items, d dimensions.
"""

import numpy as np

from entourage.neighbors.kernels import precise_product, rounding_margin
from entourage.runtime.jit import compiled
from entourage.runtime.threads import blocks, share_out
from entourage.values import FloatArray, IntArray

__all__ = ["pairs_above", "similarities_of"]

_VALUES_AT_ONCE = 2**24


def similarities_of(vectors: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Similarities of pairs of items.

    Parameters
    ----------
    vectors : ndarray of shape (M, d)
        Unit vectors, float32.
    left, right : ndarray of shape (n,)
        The rows of each pair.

    Returns
    -------
    ndarray of shape (n,)
        float32, summed in double precision.
    """
    result = np.empty(len(left), np.float32)
    left, right = np.ascontiguousarray(left, np.int64), np.ascontiguousarray(right, np.int64)
    vectors = vectors.view()
    vectors.flags.writeable = False
    share_out(lambda *part: _similarities(vectors, left, right, result, *part), len(left))
    return result


@compiled
def _similarities(
    vectors: FloatArray, left: IntArray, right: IntArray, result: FloatArray, start: int, stop: int
) -> None:
    for pair in range(start, stop):
        result[pair] = precise_product(vectors[left[pair]], vectors[right[pair]])


def pairs_above(vectors: FloatArray, rows: IntArray, bars: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Find all items that are as similar to some of them as a bar says.

    Parameters
    ----------
    vectors : ndarray of shape (M, d)
        Unit vectors, float32.
    rows : ndarray of shape (n,)
        The items that are compared with all.
    bars : ndarray of shape (M,)
        The similarity that each of the others asks for.

    Returns
    -------
    rows : ndarray of shape (p,)
        Of each pair the item of `rows`.
    others : ndarray of shape (p,)
        And the other one, never the same.
    similarities : ndarray of shape (p,)
        float32.
    """
    least = bars - np.float32(2 * rounding_margin(vectors.shape[1]))
    found = []
    for block in blocks(len(rows), max(1, _VALUES_AT_ONCE // len(vectors))):
        tile = vectors[rows[block]] @ vectors.T
        near, others = np.nonzero(tile >= least)
        found.append((rows[block][near], others))
    left, right = (np.concatenate(side) for side in zip(*found, strict=True)) if found else (rows, rows)
    different = left != right
    left, right = left[different], right[different]
    similarities = similarities_of(vectors, left, right)
    kept = similarities >= bars[right]
    return left[kept], right[kept], similarities[kept]
