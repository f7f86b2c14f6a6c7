"""The graph of a few items is the one that a search would find."""

import numpy as np
import pytest
from tests.refiner.samples import clusters, unit

from entourage.refiner.graph import build_graph
from entourage.refiner.small_graph import build_small_graph
from entourage.values import Embeddings


def same_graph(items: Embeddings, k: int) -> None:
    small, searched = build_small_graph(items, k), build_graph(items, k)
    np.testing.assert_array_equal(small.stands_for, searched.stands_for)
    np.testing.assert_array_equal(small.neighbors.rows, searched.neighbors.rows)
    np.testing.assert_allclose(small.neighbors.similarities, searched.neighbors.similarities, atol=1e-6)
    np.testing.assert_array_equal(small.items.vectors, searched.items.vectors)
    assert small.copy_similarity == searched.copy_similarity


@pytest.mark.parametrize("count", [2, 3, 5, 24, 101])
def test_it_is_what_a_search_finds(count):
    same_graph(Embeddings(unit(clusters(seed=0)[0])[:count]), 6)


def test_copies_share_a_node():
    vectors = unit(clusters(seed=0)[0])[:40]
    vectors = np.concatenate([vectors, vectors[:6], vectors[:3]])
    same_graph(Embeddings(vectors), 6)
    assert len(build_small_graph(Embeddings(vectors), 6).items) == 40


def test_items_that_are_all_copies_have_no_neighbours():
    graph = build_small_graph(Embeddings(np.repeat(unit([[1.0, 2.0]]), 5, axis=0)), 6)
    assert graph.neighbors.rows.shape == (1, 0) and graph.stands_for.tolist() == [0] * 5


def test_ties_go_to_the_first():
    corners = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [-1.0, 0.0]])
    neighbors = build_small_graph(Embeddings(np.repeat(corners, 1, axis=0)), 3).neighbors
    assert neighbors.rows[:, 0].tolist() == [1, 0, 0, 1]
