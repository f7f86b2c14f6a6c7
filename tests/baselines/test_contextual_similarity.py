"""Contextual similarity aggregation against plain loops, and that it learns."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from entourage.baselines import ContextualSimilarity
from entourage.baselines.similarity_network import SimilarityNetwork, affinities, aggregation_loss
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def unit(vector):
    return vector / np.linalg.norm(vector)


def nearest(items, query):
    similarity = items.vectors @ items.vectors[query]
    return sorted((p for p in range(len(items)) if p != query), key=lambda p: (-similarity[p], items.ids[p]))


def affinity_in_loops(items, query, candidates, anchors):
    order = nearest(items, query)
    around, to = [query, *order[:candidates]], [query, *order[: anchors - 1]]
    features = np.zeros((len(around), anchors), np.float32)
    for row, i in enumerate(around):
        for column, j in enumerate(to):
            features[row, column] = items.vectors[i] @ items.vectors[j]
    return features


def encoded_in_loops(network, features):
    with torch.no_grad():
        z = network.project(torch.tensor(features)[None])
        for layer in network.layers:
            z = layer(z)
    return z[0].numpy().astype(np.float64)


@pytest.mark.parametrize(("candidates", "anchors"), [(6, 9), (9, 4), (99, 99), (1, 1)])
def test_the_ranking_equals_loops_of_its_equations(candidates, anchors, clusters, ranked):
    items = clusters(30)
    method = ContextualSimilarity(candidates, anchors, width=16, epochs=1).fit(clusters(48, seed=1))
    rows = ranked(method, items, 29)
    for query in range(30):
        z = encoded_in_loops(method.network_, affinity_in_loops(items, query, candidates, anchors))
        order = nearest(items, query)
        scores = {p: unit(z[0]) @ unit(z[1 + place]) for place, p in enumerate(order[:candidates])}
        found = rows[query].tolist()
        assert found[candidates:] == order[candidates:]
        again = [scores[p] for p in found[:candidates]]
        assert sorted(found[:candidates]) == sorted(scores)
        assert all(first >= second - 1e-5 for first, second in pairwise(again))


def test_the_loss_equals_loops_and_leaves_out_queries_without_a_match(clusters):
    items = clusters(30)
    torch.manual_seed(0)
    network = SimilarityNetwork(anchors=5, width=16, layers=1).eval()
    queries = [2, 11, 20]
    found = torch.tensor([nearest(items, query)[:6] for query in queries])
    features = affinities(torch.tensor(items.vectors)[torch.tensor(queries)], torch.tensor(items.vectors), found, 6, 5)
    same = torch.tensor([[True, False, True, False, False, False], [False] * 6, [False, True, *[False] * 4]])
    contrastive, apart = [], []
    for place, query in enumerate(queries):
        a = affinity_in_loops(items, query, 6, 5)
        np.testing.assert_allclose(features[place].numpy(), a, atol=1e-6)
        z = encoded_in_loops(network, a)
        with torch.no_grad():
            restored = network.restore(torch.tensor(z, dtype=torch.float32)).numpy()
        apart += [np.linalg.norm(unit(a[i]) - unit(restored[i])) for i in range(7)]
        exps = [np.exp(unit(z[0]) @ unit(z[i]) / 2) for i in range(1, 7)]
        right = [value for value, is_same in zip(exps, same[place].tolist(), strict=True) if is_same]
        contrastive += [-np.log(sum(right) / sum(exps))] if right else []
    with torch.no_grad():
        found_loss = aggregation_loss(network, features, same).item()
        nothing = aggregation_loss(network, features, torch.zeros_like(same)).item()
    assert len(contrastive) == 2
    assert found_loss == pytest.approx(np.mean(contrastive) + 0.2 * np.mean(apart), rel=1e-5)
    assert nothing == pytest.approx(0.2 * np.mean(apart), rel=1e-5)


def test_it_learns_and_keeps_its_best_epoch(clusters):
    items = clusters(240, n_classes=12, dim=12, spread=0.9)
    method = ContextualSimilarity(24, 24, width=32, layers=1, epochs=14, patience=14, learning_rate=3e-3).fit(items)
    scores = [point["score"] for point in method.history_.curve]
    assert method.history_.best_epoch == int(np.argmax(scores))
    assert max(scores) > scores[0] + 0.02  # on held-out classes


def test_a_seed_decides_and_few_items_are_enough(clusters, ranked):
    items = clusters(48)
    first, again = (ranked(ContextualSimilarity(width=8, epochs=1, random_state=3).fit(items), items, 47) for _ in "ab")
    np.testing.assert_array_equal(first, again)
    method = ContextualSimilarity(width=8, epochs=1).fit(items)
    assert ranked(method, Embeddings.from_vectors(np.eye(8)[:2]), 1).tolist() == [[1], [0]]
