"""The neighbourhood graph: copies share a node, lists are cut short without another search."""

import numpy as np
import pytest
from tests.refiner.samples import clusters

from entourage.neighbors import search
from entourage.refiner.graph import build_graph
from entourage.refiner.relations import RELATIONS, relation_features
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def with_copies() -> Embeddings:
    """40 items; the first ten come again at the end."""
    vectors = clusters(seed=0, n_classes=4, per_class=10)[0]
    return Embeddings.from_vectors(np.vstack([vectors, vectors[:10]]))


def test_without_copies_every_item_is_a_node_with_its_nearest_neighbours():
    items = Embeddings.from_vectors(clusters(seed=1)[0])
    graph, found = build_graph(items, 6), search(items, k=6)
    assert graph.items is items
    np.testing.assert_array_equal(graph.stands_for, np.arange(len(items)))
    np.testing.assert_array_equal(graph.gallery_rows, np.arange(len(items)))
    np.testing.assert_array_equal(graph.neighbors.rows, found.rows)
    np.testing.assert_array_equal(graph.relations, relation_features(found))


@pytest.mark.parametrize("shorter", [1, 4, 6, 100])
def test_shorter_lists_are_those_of_another_search_where_there_are_no_copies(shorter):
    items = Embeddings.from_vectors(clusters(seed=1, n_classes=4, per_class=10)[0])
    graph, wanted = build_graph(items, 50).shortened(shorter), build_graph(items, shorter)
    np.testing.assert_array_equal(graph.neighbors.rows, wanted.neighbors.rows)
    np.testing.assert_array_equal(graph.relations, wanted.relations)
    assert build_graph(items, 5).shortened(6) is None and build_graph(with_copies(), 6).shortened(shorter) is None


def test_copies_share_one_node_and_are_nobodys_neighbours_twice():
    graph = build_graph(with_copies(), 5)
    np.testing.assert_array_equal(graph.stands_for, [*range(40), *range(10)])
    np.testing.assert_array_equal(graph.gallery_rows, np.arange(40))
    assert len(graph.items) == len(graph.neighbors) == 40 and graph.neighbors.k == 5
    assert all(len(set(row)) == 5 for row in graph.neighbors.rows.tolist())
    assert not (graph.neighbors.rows == np.arange(40)[:, None]).any()
    assert (graph.neighbors.similarities < graph.copy_similarity).all()


@pytest.mark.parametrize(("n", "k"), [(1, 0), (2, 1), (7, 1), (8, 2), (40, 10), (200, 12)])
def test_a_small_gallery_has_a_quarter_of_its_items_for_neighbours(n, k):
    items = Embeddings.from_vectors(np.random.default_rng(n).normal(size=(n, 16)))
    graph = build_graph(items, 12)
    assert graph.neighbors.rows.shape == (n, k) and graph.relations.shape == (n, k, len(RELATIONS))


def test_all_copies_of_one_another_are_one_node_without_neighbours():
    graph = build_graph(Embeddings.from_vectors(np.ones((30, 4))), 12)
    assert len(graph.items) == 1 and graph.neighbors.rows.shape == (1, 0)
    np.testing.assert_array_equal(graph.stands_for, np.zeros(30))


@pytest.mark.parametrize("k", [1, 4, 11])
def test_shorter_lists_are_those_of_a_graph_built_with_so_many(k):
    items = Embeddings.from_vectors(clusters(seed=2)[0])
    cut, built = build_graph(items, 12).with_neighbors(k), build_graph(items, k)
    np.testing.assert_array_equal(cut.neighbors.rows, built.neighbors.rows)
    np.testing.assert_array_equal(cut.neighbors.similarities, built.neighbors.similarities)
    np.testing.assert_array_equal(cut.relations, built.relations)


def test_lists_that_are_short_enough_stay():
    graph = build_graph(with_copies(), 5)
    assert graph.with_neighbors(5) is graph and graph.with_neighbors(50) is graph
