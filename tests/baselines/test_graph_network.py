"""Against plain loops over full matrices."""

import numpy as np
import pytest

from entourage.baselines import GraphNetwork, propagated_features
from entourage.values import Embeddings


def nearest(items, similarity, i, k):
    """The item itself and its k - 1 nearest, ties by id."""
    others = [j for j in range(len(items)) if j != i]
    return [i, *sorted(others, key=lambda j: (-np.float32(similarity[i, j]), items.ids[j]))[: k - 1]]


def loop(items, k1, k2, alpha, layers):
    similarity = items.vectors.astype(np.float64) @ items.vectors.T.astype(np.float64)
    count = len(items)
    h = np.zeros((count, count))
    for i in range(count):
        h[i, nearest(items, similarity, i, k1)] = 1
    for _ in range(layers):
        h, passed = h + h.T, np.zeros((count, count))
        for i in range(count):
            for j in nearest(items, similarity, i, k2):
                passed[i] += h[i] if j == i else max(similarity[i, j], 0) ** alpha * h[j]
            passed[i] /= np.linalg.norm(passed[i])
        h = passed
    return h


def given(request, name):
    items = request.getfixturevalue(name)
    return items(48) if name == "clusters" else items


@pytest.mark.parametrize(
    ("k1", "k2", "alpha", "layers"), [(10, 4, 2.0, 2), (5, 1, 2.0, 2), (1, 3, 0.0, 3), (99, 99, 1, 1)]
)
@pytest.mark.parametrize("data", ["clusters", "pairs"])
def test_features_and_ranking_equal_those_of_loops(k1, k2, alpha, layers, data, request, ranked, ranking):
    items = given(request, data)
    h = loop(items, k1, k2, alpha, layers)
    np.testing.assert_allclose(propagated_features(items, k1, k2, alpha, layers).toarray(), h, atol=1e-6)
    scores, vectors = h @ h.T, items.vectors.astype(np.float64)
    wanted = np.where(scores > 1e-12, scores, vectors @ vectors.T - 2)
    assert (ranked(GraphNetwork(k1, k2, alpha, layers), items, 7) == ranking(items, wanted, 7)).mean() > 0.98  # ties


def test_copies_and_items_that_point_away_are_ranked(copies, ranked):
    assert ranked(GraphNetwork(), copies, 49).shape == (50, 49)
    items = Embeddings.from_vectors([[1.0, 0.0], [-1.0, 0.1], [-1.0, -0.2]])
    assert ranked(GraphNetwork(k1=1), items, 2).tolist() == [[2, 1], [2, 0], [1, 0]]


def test_it_helps_where_classes_overlap(clusters, ranked):
    items = clusters(300, n_classes=10, dim=16, spread=1.1)

    def precision(method):
        rows = ranked(method, items, 20)
        return (items.labels[rows] == items.labels[:, None]).mean()

    assert precision(GraphNetwork()) > precision(GraphNetwork(k1=1, k2=1, layers=1)) + 0.05


def test_full_and_sparse_products_rank_alike(clusters, ranked, monkeypatch):
    items, method = clusters(48), GraphNetwork(10, 4, 2.0, 2)
    full = ranked(method, items, 47)
    monkeypatch.setattr("entourage.baselines.graph_network._FULL", 2.0)
    np.testing.assert_array_equal(ranked(method, items, 47), full)
