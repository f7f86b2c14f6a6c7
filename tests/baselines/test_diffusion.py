"""Against full matrices."""

import numpy as np
import pytest

from entourage.baselines import Diffusion, diffuse, mutual_graph
from entourage.values import Embeddings


def dense_graph(items, k, gamma):
    vectors = items.vectors.astype(np.float64)
    similarity = vectors @ vectors.T
    count = len(items)
    near = []
    for i, row in enumerate(similarity.astype(np.float32)):
        others = [j for j in range(count) if j != i]
        near.append(sorted(others, key=lambda j: (-row[j], items.ids[j]))[:k])
    weights = np.zeros((count, count))
    for i in range(count):
        for j in near[i]:
            if i in near[j]:
                weights[i, j] = max(similarity[i, j], 0) ** gamma
    degrees = weights.sum(axis=1)
    roots = np.array([degree**-0.5 if degree > 0 else 0.0 for degree in degrees])
    return roots[:, None] * weights * roots


def dense_scores(graph, alpha, iterations):
    term = total = np.eye(len(graph))
    for _ in range(iterations):
        term = alpha * graph @ term
        total = total + term
    return total


def given(request, name):
    items = request.getfixturevalue(name)
    return items(48) if name == "clusters" else items


@pytest.mark.parametrize(("k", "gamma"), [(1, 3.0), (5, 0.0), (8, 3.0), (19, 1.0)])
@pytest.mark.parametrize("data", ["clusters", "copies", "pairs"])
def test_the_graph_equals_a_full_matrix(k, gamma, data, request):
    items = given(request, data)
    graph = mutual_graph(items, k, gamma)
    np.testing.assert_allclose(graph.toarray(), dense_graph(items, k, gamma), atol=1e-12)


def test_enough_terms_solve_the_linear_system(clusters):
    graph = mutual_graph(clusters(48), 8, 3.0)
    wanted = np.linalg.inv(np.eye(48) - 0.9 * graph.toarray())
    np.testing.assert_allclose(diffuse(graph, slice(5, 20), 0.9, 300), wanted[5:20], atol=1e-9)


@pytest.mark.parametrize(
    ("k", "alpha", "gamma", "iterations"), [(5, 0.9, 3.0, 20), (2, 0.5, 1.0, 3), (99, 0.99, 3.0, 1)]
)
@pytest.mark.parametrize("data", ["clusters", "copies", "pairs"])
def test_the_ranking_equals_that_of_full_matrices(k, alpha, gamma, iterations, data, request, ranked, ranking):
    items = given(request, data)
    vectors = items.vectors.astype(np.float64)
    scores = dense_scores(dense_graph(items, k, gamma), alpha, iterations)
    wanted = np.where(scores > 0, scores, vectors @ vectors.T - 2)
    method = Diffusion(k, alpha, gamma, iterations)
    for depth in (7, len(items) - 1):
        np.testing.assert_array_equal(ranked(method, items, depth), ranking(items, wanted, depth))


def test_on_islands_the_others_follow_by_cosine(ranked):
    """Two pairs far apart, and a hermit nobody has for a nearest neighbour."""
    items = Embeddings.from_vectors([[1.0, 0.0], [1.0, 0.1], [-0.1, 1.0], [0.0, 1.0], [0.8, 0.7]])
    rows = ranked(Diffusion(k=1), items, 4)
    assert rows.tolist() == [[1, 4, 3, 2], [0, 4, 3, 2], [3, 4, 1, 0], [2, 4, 1, 0], [1, 0, 3, 2]]


def test_nothing_spreads_to_items_that_point_away(ranked):
    items = Embeddings.from_vectors([[1.0, 0.0], [-1.0, 0.1], [-1.0, -0.2]])
    assert ranked(Diffusion(), items, 2).tolist() == [[2, 1], [2, 0], [1, 0]]
