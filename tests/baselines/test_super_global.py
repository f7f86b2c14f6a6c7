"""Against plain loops."""

import numpy as np
import pytest

from entourage.baselines import SuperGlobal, refined_candidates, rescored
from entourage.values import Embeddings


def loop_refined(g, k, beta):
    moved = np.zeros_like(g)
    for i in range(len(g)):
        near = sorted((j for j in range(len(g)) if j != i), key=lambda j: -(g[i] @ g[j]))[:k]
        total, weight = g[i].copy(), 1.0
        for j in near:
            total += beta * max(g[i] @ g[j], 0) * g[j]
            weight += beta * max(g[i] @ g[j], 0)
        moved[i] = total / weight
    return moved


def loop_scores(query, refined, k):
    first = [query @ g for g in refined]
    best = sorted(range(len(refined)), key=lambda i: -first[i])[: k + 1]
    expanded = np.array([max(refined[i][axis] for i in best) for axis in range(len(query))])
    return np.array([(first[i] + expanded @ refined[i]) / 2 for i in range(len(refined))])


@pytest.mark.parametrize(("k", "beta"), [(3, 0.15), (1, 1.0), (50, 0.5), (4, 0.0)])
def test_candidates_are_refined_and_scored_as_in_loops(k, beta, clusters):
    vectors = clusters(30).vectors.astype(np.float64)
    refined = refined_candidates(vectors[1:], k, beta)
    np.testing.assert_allclose(refined, loop_refined(vectors[1:], k, beta), atol=1e-12)
    np.testing.assert_allclose(rescored(vectors[0], refined, k), loop_scores(vectors[0], refined, k), atol=1e-12)


@pytest.mark.parametrize("candidates", [1, 6, 99])
def test_candidates_come_first_and_the_others_keep_their_order(candidates, clusters, ranked):
    items = clusters(48)
    vectors, depth = items.vectors.astype(np.float64), 20
    rows = ranked(SuperGlobal(candidates, k=3, beta=0.5), items, depth)
    for query in range(48):
        order = sorted((p for p in range(48) if p != query), key=lambda p: -np.float32(vectors[query] @ vectors[p]))
        chosen = order[: min(candidates, 47)]
        scores = loop_scores(vectors[query], loop_refined(vectors[chosen], 3, 0.5), 3)
        wanted = [chosen[place] for place in np.argsort(-scores)] + order[candidates:]
        assert rows[query].tolist() == wanted[:depth]


def test_two_items_and_copies_are_ranked(copies, ranked):
    assert ranked(SuperGlobal(), Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]]), 1).tolist() == [[1], [0]]
    assert ranked(SuperGlobal(), copies, 49).shape == (50, 49)


def test_pairs_that_are_too_many_to_be_kept_are_multiplied_query_by_query(clusters, ranked, monkeypatch):
    items, method = clusters(48), SuperGlobal(20, k=3, beta=0.5)
    kept = ranked(method, items, 47)
    monkeypatch.setattr("entourage.baselines.super_global._MOST_PAIRS", 0)
    np.testing.assert_array_equal(ranked(method, items, 47), kept)
