import numpy as np

from entourage.baselines import expand_queries
from entourage.neighbors import search
from entourage.values import Embeddings


def test_query_expansion_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    items = Embeddings.from_vectors(rng.normal(size=(30, 6)))
    found = search(items, k=5)
    expanded = expand_queries(items, items, found, alpha=3.0)
    for q in range(30):
        total = items.vectors[q].astype(float)
        for j, similarity in zip(found.rows[q], found.similarities[q], strict=True):
            total = total + max(similarity, 0) ** 3 * items.vectors[j]
        np.testing.assert_allclose(expanded.vectors[q], total / np.linalg.norm(total), atol=1e-6)


def test_alpha_zero_is_the_plain_average():
    items = Embeddings.from_vectors([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]], ids=["a", "b", "c"], labels=[1, 1, 2])
    expanded = expand_queries(items, items, search(items, k=2), alpha=0.0)
    mean = items.vectors.sum(axis=0)
    np.testing.assert_allclose(expanded.vectors, np.tile(mean / np.linalg.norm(mean), (3, 1)), atol=1e-6)
    assert expanded.ids.tolist() == ["a", "b", "c"]
    assert expanded.labels.tolist() == [1, 1, 2]


def test_neighbours_pointing_away_add_nothing():
    items = Embeddings.from_vectors([[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(expand_queries(items, items, search(items, k=1)).vectors, items.vectors)
