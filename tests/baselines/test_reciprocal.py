"""Against the definition in sets and full matrices."""

import numpy as np
import pytest

from entourage.baselines import KReciprocal, Raw, jaccard_distances, reciprocal_encodings
from entourage.values import Embeddings


def distances_and_order(items):
    vectors = items.vectors.astype(np.float64)
    similarity = vectors @ vectors.T
    distance = np.maximum(2 - 2 * similarity, 0)
    distance /= np.maximum(distance.max(axis=1, keepdims=True), 1e-6)
    order = []
    for i, row in enumerate(similarity.astype(np.float32)):
        others = [j for j in range(len(items)) if j != i]
        order.append([i, *sorted(others, key=lambda j: (-row[j], items.ids[j]))])
    return distance, order


def dense_encodings(items, k1, k2):
    distance, order = distances_and_order(items)
    count = len(items)

    def reciprocal(i, k):
        return {j for j in order[i][: k + 1] if i in order[j][: k + 1]}

    encodings = np.zeros((count, count))
    for i in range(count):
        core = reciprocal(i, k1)
        expanded = set(core)
        for j in core:
            candidate = reciprocal(j, round(k1 / 2))
            if len(candidate & core) >= 2 / 3 * len(candidate):
                expanded |= candidate
        for j in expanded:
            encodings[i, j] = np.exp(-distance[i, j])
    encodings /= encodings.sum(axis=1, keepdims=True)
    return np.array([encodings[order[i][:k2]].mean(axis=0) for i in range(count)])


def dense_jaccard(encodings):
    least = np.minimum(encodings[:, None], encodings[None]).sum(axis=2)
    most = np.maximum(encodings[:, None], encodings[None]).sum(axis=2)
    return 1 - least / most


SETTINGS = [(20, 6), (6, 1), (5, 3), (1, 1), (2, 60), (100, 6), (47, 48)]


@pytest.mark.parametrize(("k1", "k2"), SETTINGS)
@pytest.mark.parametrize("data", ["clusters", "copies", "pairs"])
def test_encodings_and_distances_equal_sets_and_full_matrices(k1, k2, data, request):
    items = request.getfixturevalue(data)
    items = items(48) if data == "clusters" else items
    encodings = reciprocal_encodings(items, k1, k2)
    wanted = dense_encodings(items, k1, k2)
    np.testing.assert_allclose(encodings.toarray(), wanted, atol=1e-9)
    by_item = encodings.T.tocsr()
    jaccard = jaccard_distances(encodings, by_item, slice(3, 11))
    np.testing.assert_allclose(jaccard, dense_jaccard(wanted)[3:11], atol=1e-9)


@pytest.mark.parametrize(("k1", "k2"), SETTINGS)
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("data", ["clusters", "copies", "pairs"])
def test_the_ranking_equals_that_of_the_full_distance_matrix(k1, k2, weight, data, request, ranked, ranking):
    items = request.getfixturevalue(data)
    items = items(48) if data == "clusters" else items
    distance, _ = distances_and_order(items)
    final = (1 - weight) * dense_jaccard(dense_encodings(items, k1, k2)) + weight * distance
    for k in (7, len(items) - 1):
        np.testing.assert_array_equal(ranked(KReciprocal(k1, k2, weight), items, k), ranking(items, 1 - final, k))


def test_with_all_the_weight_on_the_original_distance_nothing_changes(clusters, ranked):
    items = clusters(48)
    np.testing.assert_array_equal(ranked(KReciprocal(weight=1), items, 47), ranked(Raw(), items, 47))


def test_the_similarity_given_is_one_minus_the_distance(clusters):
    items = clusters(48)
    distance, _ = distances_and_order(items)
    final = 0.7 * dense_jaccard(dense_encodings(items, 20, 6)) + 0.3 * distance
    for block, found in KReciprocal().rank(items, 5):
        wanted = 1 - np.take_along_axis(final[block], found.rows, axis=1)
        np.testing.assert_allclose(found.similarities, wanted, atol=1e-6)


def test_items_that_are_all_alike_are_ranked_by_id(ranked):
    items = Embeddings.from_vectors(np.ones((12, 3)), ids=np.arange(12)[::-1])
    assert items.ids[ranked(KReciprocal(k1=20, weight=1.0), items, 3)][0].tolist() == [0, 1, 2]
