"""Queries that come one at a time to a gallery that stands: every method, and where there is a form, by loops."""

import numpy as np
import pytest
from tests.baselines.test_diffusion import dense_graph
from tests.baselines.test_method import METHODS, every_method
from tests.baselines.test_reciprocal import distances_and_order

from entourage.baselines import (
    Chain,
    Diffusion,
    GraphNetwork,
    KReciprocal,
    QueryExpansion,
    QuerySideExpansion,
    Raw,
    SuperGlobal,
    VectorMethod,
    WithinClassWhitening,
)
from entourage.baselines.graph_network import query_features
from entourage.baselines.reciprocal import query_encodings
from entourage.baselines.super_global import refined_candidates, rescored
from entourage.errors import InputError
from entourage.neighbors import search
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def sides(clusters):
    """Nine queries and a gallery of 39."""
    items = clusters(48)
    return items.take(np.arange(9)), items.take(np.arange(9, 48))


def found_by(method, queries, gallery, k):
    parts = [found for _, found in method.rank_in(queries, gallery, k)]
    return np.concatenate([part.rows for part in parts]), np.concatenate([part.similarities for part in parts])


# ---- every method ------------------------------------------------------------------------------------------------


@every_method
def test_no_query_is_affected_by_another(name, clusters, sides):
    queries, gallery = sides
    method = METHODS[name]().fit(clusters(60, seed=1))
    rows, scores = found_by(method, queries, gallery, 39)
    assert rows.shape == (9, 39) and all(sorted(row) == list(range(39)) for row in rows)
    assert (np.diff(scores, axis=1) <= 1e-6).all()
    for row in range(9):
        alone, own = found_by(method, queries.take([row]), gallery, 39)
        np.testing.assert_allclose(own[0], scores[row], atol=2e-5)
        assert (alone[0] == rows[row]).mean() > 0.9  # items of almost equal scores may change places


@every_method
def test_the_ids_of_queries_mean_nothing_to_the_gallery(name, clusters, sides):
    queries, gallery = sides
    method = METHODS[name]().fit(clusters(60, seed=1))
    same_ids = Embeddings(queries.vectors, gallery.ids[:9])
    np.testing.assert_array_equal(found_by(method, same_ids, gallery, 20)[0], found_by(method, queries, gallery, 20)[0])


@every_method
def test_small_galleries_and_impossible_k(name, clusters, sides):
    queries, gallery = sides
    method = METHODS[name]().fit(clusters(60, seed=1))
    assert found_by(method, queries, gallery.take([3]), 1)[0].tolist() == [[0]] * 9
    assert {tuple(sorted(row)) for row in found_by(method, queries, gallery.take([3, 4]), 2)[0]} == {(0, 1)}
    for k in (0, 40):
        with pytest.raises(InputError, match=f"k is {k}, but the gallery has 39 items; wanted 1 ≤ k ≤ 39"):
            method.rank_in(queries, gallery, k)


def test_a_method_that_has_no_form_for_it_says_so(sides):
    class Among(VectorMethod):
        def _moved(self, items):
            return items

    with pytest.raises(InputError, match=r"Among moves items among each other only; .* implement _moved_both"):
        Among().rank_in(*sides, 3)


# ---- by loops ----------------------------------------------------------------------------------------------------


def cosines_of(queries, gallery):
    return queries.vectors.astype(np.float64) @ gallery.vectors.astype(np.float64).T


def by_score(scores, gallery, k):
    order = [sorted(range(len(row)), key=lambda j: (-row[j], gallery.ids[j]))[:k] for row in scores.astype(np.float32)]
    return np.array(order)


def test_raw_is_search_and_the_first_similarity_is_the_confidence(sides):
    _, scores = found_by(Raw(), *sides, 5)
    queries, gallery = sides
    found = search(queries.vectors, gallery.vectors, 5)
    np.testing.assert_allclose(scores, found.similarities, atol=1e-6)
    sure = Raw().confidence(queries, gallery, scores[:, 0])
    np.testing.assert_allclose(sure, cosines_of(*sides).max(axis=1), atol=1e-6)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("gallery_too", [True, False])
@pytest.mark.parametrize(("steps", "blend"), [(1, 0.0), (3, 0.3)])
def test_expansion_equals_loops(gallery_too, steps, blend, sides):
    queries, gallery = sides
    k, alpha = 4, 2.0
    x, among = queries.vectors.astype(np.float64), gallery.vectors.astype(np.float64)
    z, g = x, among
    for _ in range(steps):
        new = [z[i] + sum(max(c, 0) ** alpha * g[j] for j, c in nearest(among, x[i], k)) for i in range(len(x))]
        z = unit(np.array(new))
        if gallery_too:
            pairs = [nearest(among, among[i], k, but=i) for i in range(len(g))]
            g = unit(np.array([g[i] + sum(max(c, 0) ** alpha * g[j] for j, c in pairs[i]) for i in range(len(g))]))
    z, g = unit(blend * x + (1 - blend) * z), unit(blend * among + (1 - blend) * g) if gallery_too else among
    make = QueryExpansion if gallery_too else QuerySideExpansion
    rows, scores = found_by(make(k=k, alpha=alpha, steps=steps, blend=blend), queries, gallery, 39)
    np.testing.assert_allclose(scores, -np.sort(-(z @ g.T), axis=1), atol=1e-5)
    assert (rows == by_score(z @ g.T, gallery, 39)).mean() > 0.95


def nearest(vectors, x, k, but=None):
    cosines = vectors @ x
    order = [j for j in np.argsort(-cosines, kind="stable") if j != but][:k]
    return [(j, cosines[j]) for j in order]


@pytest.mark.parametrize(("k1", "k2"), [(10, 4), (5, 1), (60, 6)])
def test_reciprocal_encodings_of_queries_equal_sets(k1, k2, sides):
    queries, gallery = sides
    own, standing = query_encodings(queries, gallery, k1, k2)
    np.testing.assert_array_equal(standing.toarray(), _alone(gallery, k1, k2)[1])
    cosines, first = cosines_of(*sides).astype(np.float32), _alone(gallery, k1, k2)[0]
    _, order = distances_and_order(gallery)  # of each item, itself first
    inside = (gallery.vectors @ gallery.vectors.T).astype(np.float32)

    def reciprocal(i, k):
        return {j for j in order[i][: k + 1] if i in order[j][: k + 1]}

    for q in range(len(queries)):
        near = by_score(cosines[q : q + 1], gallery, 39)[0]
        core = {j for j in near[:k1] if k1 >= 39 or cosines[q, j] >= np.sort(np.delete(inside[j], j))[::-1][k1 - 1]}
        members = set(core)
        for j in core:
            candidate = reciprocal(j, round(k1 / 2))
            if 3 * len(candidate & core) >= 2 * len(candidate):
                members |= candidate
        distance = 2 - 2 * cosines_of(*sides)[q]
        wanted = np.zeros(39)
        wanted[list(members)] = np.exp(-distance[list(members)] / distance.max())
        wanted = wanted / max(wanted.sum(), 1e-30) + first[near[: k2 - 1]].sum(axis=0)
        np.testing.assert_allclose(own.toarray()[q], wanted / max(wanted.sum(), 1e-30), atol=1e-6)


def _alone(gallery, k1, k2):
    """Encodings of the gallery by itself, each its own and averaged."""
    from entourage.baselines import reciprocal_encodings

    return reciprocal_encodings(gallery, k1, 1).toarray(), reciprocal_encodings(gallery, k1, k2).toarray()


def test_a_query_without_mutual_neighbours_is_ranked_by_cosine():
    gallery = Embeddings.from_vectors([[1, 0.01, 0], [1, 0.02, 0], [1, 0.03, 0], [1, 0.04, 0]])
    query = Embeddings.from_vectors([[0.2, 1.0, 0.5]])
    assert query_encodings(query, gallery, 2, 1)[0].nnz == 0
    assert found_by(KReciprocal(2, 1, 0.3), query, gallery, 4)[0].tolist() == [[3, 2, 1, 0]]


def test_diffusion_starts_from_the_nearest_items(sides):
    queries, gallery = sides
    graph, cosines = dense_graph(gallery, 6, 2.0), cosines_of(*sides)
    scores = np.zeros_like(cosines)
    for q, row in enumerate(cosines):
        source = np.zeros(39)
        for j in by_score(row[None], gallery, 6)[0]:
            source[j] = max(row[j], 0) ** 2.0
        term = total = source
        for _ in range(20):
            term = 0.8 * graph @ term
            total = total + term
        scores[q] = total
    wanted = np.where(scores > 0, scores, cosines - 2)
    rows, found = found_by(Diffusion(k=6, alpha=0.8, gamma=2.0), queries, gallery, 39)
    np.testing.assert_allclose(found, -np.sort(-wanted, axis=1), atol=1e-5)
    assert (rows == by_score(wanted, gallery, 39)).mean() > 0.95


def test_features_of_a_query_in_the_graph_network_equal_loops(sides):
    queries, gallery = sides
    k1, k2, alpha = 8, 4, 2.0
    own, features = query_features(queries, gallery, k1, k2, alpha, 2)
    from entourage.baselines import propagated_features

    np.testing.assert_array_equal(features.toarray(), propagated_features(gallery, k1, k2, alpha, 2).toarray())
    cosines, inside = cosines_of(*sides), cosines_of(gallery, gallery)
    lists = [[j for j in np.argsort(-inside[i], kind="stable") if j != i] for i in range(39)]
    h = np.array([[1.0 if j == i or j in lists[i][: k1 - 1] else 0.0 for j in range(39)] for i in range(39)])
    near = [list(np.argsort(-row, kind="stable")) for row in cosines]
    reach = [inside[j, lists[j][k1 - 2]] for j in range(39)]
    f = np.array(
        [[float(j in near[q][: k1 - 1]) + float(cosines[q, j] >= reach[j]) for j in range(39)] for q in range(9)]
    )
    for layer in range(2):
        h = h + h.T
        f = f if layer == 0 else 2 * f
        f = unit(
            np.array([f[q] + sum(max(cosines[q, j], 0) ** alpha * h[j] for j in near[q][: k2 - 1]) for q in range(9)])
        )
        h = unit(
            np.array([h[i] + sum(max(inside[i, j], 0) ** alpha * h[j] for j in lists[i][: k2 - 1]) for i in range(39)])
        )
    np.testing.assert_allclose(own.toarray(), f, atol=1e-6)
    rows, _ = found_by(GraphNetwork(k1, k2, alpha, 2), queries, gallery, 10)
    assert (rows == by_score(np.where(f @ h.T > 0, f @ h.T, cosines - 2), gallery, 10)).mean() > 0.95


def test_super_global_rescores_the_candidates_of_the_gallery(sides):
    queries, gallery = sides
    rows, _ = found_by(SuperGlobal(candidates=12, k=3, beta=0.5), queries, gallery, 39)
    vectors = gallery.vectors.astype(np.float64)
    for q, row in enumerate(cosines_of(*sides)):
        candidates = by_score(row[None], gallery, 12)[0]
        wanted = rescored(queries.vectors[q].astype(float), refined_candidates(vectors[candidates], 3, 0.5), 3)
        assert rows[q, :12].tolist() == candidates[np.argsort(-wanted, kind="stable")].tolist()
        rest = [j for j in by_score(row[None], gallery, 39)[0] if j not in candidates]
        assert rows[q, 12:].tolist() == rest


def test_a_chain_ranks_what_the_first_gives(clusters, sides):
    queries, gallery = sides
    training = clusters(60, seed=1)
    first = WithinClassWhitening(0.2).fit(training)
    moved = first.transform(queries), first.transform(gallery)
    for second in (QueryExpansion(k=3), KReciprocal(8, 3)):
        chain = Chain(WithinClassWhitening(0.2), second).fit(training)
        np.testing.assert_array_equal(found_by(chain, queries, gallery, 9)[0], found_by(second, *moved, 9)[0])
