"""The neighbourhood graph of some hundred items, by the similarities of all pairs.

It is the graph that `build_graph` searches for, in a fifth of the time: a search made for large galleries takes longer
to prepare than a hundred items take to be compared.

n items, G distinct ones, k neighbours.
"""

import numpy as np

from entourage.neighbors.copies import copy_similarity
from entourage.refiner.graph import Graph, most_neighbors
from entourage.runtime.jit import compiled
from entourage.values import Embeddings, FloatArray, IntArray, Neighbors

__all__ = ["build_small_graph"]


def build_small_graph(items: Embeddings, n_neighbors: int) -> Graph:
    """Compare all items for their neighbourhood graph; memory grows with their number squared.

    Parameters
    ----------
    items : Embeddings
        n items, in order of id: of copies the first stands for the others, of equally similar items the first is
        nearer.
    n_neighbors : int
        As in `build_graph`.

    Returns
    -------
    Graph
        The graph of the G ≤ n distinct items.
    """
    vectors = items.vectors.astype(np.float64)  # rounded once: equal pairs tie, wherever they stand in the table
    similarities = (vectors @ vectors.T).astype(np.float32)  # (n, n)
    from_here_on = copy_similarity(items)
    stands_for = np.arange(len(items))
    stand_in = _stand_ins(similarities, from_here_on)
    if (stand_in != stands_for).any():
        rows, stands_for = np.unique(stand_in, return_inverse=True)
        items, similarities = items.take(rows), np.ascontiguousarray(similarities[np.ix_(rows, rows)])
    k = min(n_neighbors, most_neighbors(len(items)), len(items) - 1)
    return Graph(items, stands_for, Neighbors(*_nearest(similarities, k)), from_here_on)


@compiled
def _stand_ins(similarities: FloatArray, copy_similarity: float) -> IntArray:
    """(n,) of each item the first that is similar enough to stand for it and stands for itself; else the item."""
    stand_in = np.arange(len(similarities))
    for i in range(len(similarities)):
        for j in range(i):
            if stand_in[j] == j and similarities[i, j] >= copy_similarity:
                stand_in[i] = j
                break
    return stand_in


@compiled
def _nearest(similarities: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Rows and similarities, each (G, k), of the k most similar others of each item."""
    count = len(similarities)
    rows = np.empty((count, k), np.int64)
    nearest = np.full((count, k), -np.inf, np.float32)
    for i in range(count if k else 0):
        for j in range(count):
            similarity = similarities[i, j]
            if j == i or similarity <= nearest[i, k - 1]:
                continue
            place = k - 1
            while place and nearest[i, place - 1] < similarity:
                nearest[i, place], rows[i, place] = nearest[i, place - 1], rows[i, place - 1]
                place -= 1
            nearest[i, place], rows[i, place] = similarity, j
    return rows, nearest
