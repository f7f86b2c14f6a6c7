"""Reciprocal neighbours: items that are among the nearest of each other, and sets expanded by their neighbours.

An item that is near to another may have a hundred nearer ones; items that are near in both directions are more often of
the same class (Zhong et al. 2017). Sets of items are rows of sparse matrices, made some rows at a time, so that memory
grows with N x k and with the sets themselves. N items, k neighbours each.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from entourage.values import IntArray

__all__ = ["expanded_sets", "mutual_sets", "neighbor_sets", "reciprocal_sets"]

_ROWS_AT_ONCE = 256


def neighbor_sets(nearest: IntArray) -> csr_array:
    """Make the set of each item and its neighbours.

    Parameters
    ----------
    nearest : array of shape (N, k)
        The rows of the neighbours of each item, without itself.

    Returns
    -------
    sparse array of shape (N, N)
        1 at (i, j) where j is i or one of its neighbours.
    """
    count, k = nearest.shape
    members = np.column_stack([np.arange(count), nearest])
    starts = np.arange(count + 1) * (k + 1)
    return csr_array((np.ones(members.size, np.int32), members.ravel(), starts), (count, count))


def mutual_sets(nearest: IntArray) -> csr_array:
    """Make R(i, k): the items that are neighbours of i and have i among their own, and i itself.

    Parameters
    ----------
    nearest : array of shape (N, k)
        The rows of the neighbours of each item, without itself.

    Returns
    -------
    sparse array of shape (N, N)
        1 at (i, j) where j belongs to R(i, k).

    Examples
    --------
    >>> mutual_sets(np.array([[1], [0], [1]])).toarray().tolist()  # 2 is near to 1, which is nearer to 0
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    graph = neighbor_sets(nearest)
    return graph.multiply(graph.T).tocsr()


def reciprocal_sets(nearest: IntArray, k: int) -> Iterator[tuple[slice, csr_array]]:
    """Make R*(i), the expanded reciprocal set of each item (Eq. 7 of *Intra-Batch Connections*), some items at a time:

        R*(i) = R(i, k) with every R(j, k / 2) of a member j for which  3 |R(i, k) & R(j, k / 2)| >= 2 |R(j, k / 2)|

    Parameters
    ----------
    nearest : array of shape (N, K)
        The rows of the neighbours of each item, nearest first, without itself; the first k are used.
    k : int

    Yields
    ------
    block : slice
        n items, in order.
    sets : sparse array of shape (n, N)
        Not 0 at (i, j) where j belongs to R*(i); an item belongs to its own set.
    """
    reciprocal, half = mutual_sets(nearest[:, :k]), mutual_sets(nearest[:, : round(k / 2)])
    sizes = half.sum(axis=1)
    for start in range(0, len(nearest), _ROWS_AT_ONCE):
        block = slice(start, min(start + _ROWS_AT_ONCE, len(nearest)))
        yield block, expanded_sets(reciprocal[block], half, sizes)


def expanded_sets(reciprocal: csr_array, half: csr_array, sizes: IntArray) -> csr_array:
    """Make R* of items whose R(i, k) are known; see `reciprocal_sets`.

    Parameters
    ----------
    reciprocal : sparse array of shape (n, N)
        R(i, k) of n items, which need not be among the N.
    half : sparse array of shape (N, N)
        R(j, k / 2).
    sizes : array of shape (N,)
        How many members each R(j, k / 2) has.

    Returns
    -------
    sparse array of shape (n, N)
    """
    inside = (reciprocal @ half).multiply(reciprocal).tocsr()  # |R(j, k/2) in R(i, k)|; half is symmetric
    enough = 3 * inside.data >= 2 * sizes[inside.indices]
    accepted = csr_array((enough.astype(np.int32), inside.indices, inside.indptr), inside.shape)
    accepted.eliminate_zeros()
    return (reciprocal + accepted @ half).tocsr()
