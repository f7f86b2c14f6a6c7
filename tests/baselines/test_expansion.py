import numpy as np
import pytest

from entourage.baselines import QueryExpansion, QuerySideExpansion, Raw, expand_queries
from entourage.errors import InputError
from entourage.neighbors import search
from entourage.values import Embeddings


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def dense(items, method):
    """Expanded vectors (N, d) by a full matrix of weights, in float64."""
    start = items.vectors.astype(np.float64)
    similarity = (start @ start.T).astype(np.float32)
    weights = np.zeros((len(items), len(items)))
    for q in range(len(items)):
        others = [p for p in range(len(items)) if p != q]
        for p in sorted(others, key=lambda p: (-similarity[q, p], items.ids[p]))[: method.k]:
            weights[q, p] = max(similarity[q, p], 0) ** method.alpha
    z = start
    for _ in range(method.steps):
        z = unit(z + weights @ (z if isinstance(method, QueryExpansion) else start))
    return unit(method.blend * start + (1 - method.blend) * z)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("blend", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("k", "alpha"), [(1, 3.0), (8, 0.0), (8, 1.5), (100, 3.0)])
def test_both_sides_equal_a_matrix_of_weights(k, alpha, blend, steps, clusters):
    items = clusters(48)
    method = QueryExpansion(k, alpha, steps=steps, blend=blend)
    np.testing.assert_allclose(method.transform(items).vectors, dense(items, method), atol=1e-5)


@pytest.mark.parametrize(("steps", "blend"), [(1, 0.0), (3, 0.4)])
@pytest.mark.parametrize(("k", "alpha"), [(1, 3.0), (8, 0.0), (100, 3.0)])
def test_the_query_side_is_searched_among_the_raw_items(k, alpha, steps, blend, clusters, ranked, ranking):
    items = clusters(48)
    method = QuerySideExpansion(k, alpha, steps, blend)
    wanted = ranking(items, dense(items, method) @ items.vectors.T.astype(np.float64), 47)
    np.testing.assert_array_equal(ranked(method, items, 47), wanted)


def test_copies_are_expanded_alike(copies):
    method = QueryExpansion(k=5, steps=2)
    np.testing.assert_allclose(method.transform(copies).vectors, dense(copies, method), atol=1e-5)


def test_all_of_the_own_vector_put_back_changes_nothing(clusters, ranked):
    items = clusters(48)
    for method in (QueryExpansion(blend=1.0), QuerySideExpansion(blend=1.0)):
        np.testing.assert_array_equal(ranked(method, items, 47), ranked(Raw(), items, 47))


def test_opposite_items_cannot_be_averaged():
    with pytest.raises(InputError, match="all zeros"):
        QueryExpansion(alpha=0).transform(Embeddings.from_vectors([[1.0, 0.0], [-1.0, 0.0]]))


# ---- expand_queries ----------------------------------------------------------------------------------------------


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
