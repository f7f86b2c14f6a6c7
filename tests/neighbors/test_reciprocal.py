"""Against the definition in sets, one item after the other."""

import tracemalloc

import numpy as np
import pytest

from entourage.neighbors import reciprocal, search
from entourage.neighbors.reciprocal import mutual_sets, neighbor_sets, reciprocal_sets
from entourage.values import Embeddings


def items(count=60, dim=8, seed=0) -> Embeddings:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count // 6, dim))[np.arange(count) % (count // 6)] + 0.7 * rng.normal(size=(count, dim))
    vectors[:5] = vectors[5]  # copies are each other's neighbours, wherever they stand
    return Embeddings.from_vectors(vectors)


def mutual(nearest, i, k) -> set[int]:
    return {i} | {j for j in nearest[i][:k].tolist() if i in nearest[j][:k]}


def expanded(nearest, i, k) -> set[int]:
    core = mutual(nearest, i, k)
    result = set(core)
    for j in core:
        candidate = mutual(nearest, j, round(k / 2))
        if len(candidate & core) >= 2 / 3 * len(candidate):
            result |= candidate
    return result


def as_sets(matrix) -> list[set[int]]:
    return [set(matrix.indices[slice(*matrix.indptr[row : row + 2])].tolist()) for row in range(matrix.shape[0])]


@pytest.mark.parametrize("k", [1, 2, 5, 12, 59, 100])
def test_the_sets_are_those_of_the_definition(k, monkeypatch):
    monkeypatch.setattr(reciprocal, "_ROWS_AT_ONCE", 17)
    nearest = search(items(), k=59).rows
    assert as_sets(mutual_sets(nearest[:, :k])) == [mutual(nearest, i, k) for i in range(60)]
    found = [members for block, rows in reciprocal_sets(nearest, k) for members in as_sets(rows)]
    assert found == [expanded(nearest, i, k) for i in range(60)]


def test_blocks_follow_each_other_and_cover_all(monkeypatch):
    monkeypatch.setattr(reciprocal, "_ROWS_AT_ONCE", 25)
    blocks = [block for block, _ in reciprocal_sets(search(items(), k=4).rows, 4)]
    assert blocks == [slice(0, 25), slice(25, 50), slice(50, 60)]


def test_neighbours_are_a_set_with_the_item_itself():
    nearest = np.array([[2, 1], [0, 2], [1, 0]])
    assert as_sets(neighbor_sets(nearest[:, :1])) == [{0, 2}, {1, 0}, {2, 1}]
    assert as_sets(neighbor_sets(nearest[:, :0])) == [{0}, {1}, {2}]


def test_memory_grows_with_the_neighbours_not_with_their_neighbours():
    """All pairs (i, neighbour of a neighbour) at once would take more than 6 bytes for each of 4000 x 30 x 15."""
    near = (np.arange(4000)[:, None] + np.r_[-15:0, 1:16]) % 4000  # a ring: every neighbour is mutual
    tracemalloc.start()
    sizes = [np.diff(rows.indptr).max() for _, rows in reciprocal_sets(near, 30)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(sizes) < 60 and peak < 4000 * 30 * 60
