"""Search by codes of 8 bits finds exactly what search without them finds."""

import numpy as np
import pytest

from entourage.neighbors import exact, index, search
from entourage.neighbors.index import SearchIndex
from entourage.neighbors.quantised import Codes
from entourage.values import Embeddings


def gallery_of(kind: str, n: int = 6000, d: int = 24) -> Embeddings:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(n // 20, d))[rng.integers(n // 20, size=n)] + 0.4 * rng.normal(size=(n, d))
    if kind == "copies":
        vectors[n // 2 :] = vectors[rng.integers(n // 2, size=n - n // 2)]
    if kind == "ties":
        vectors = rng.integers(-1, 2, size=(n, d)) + 1e-3
    if kind == "a cone":
        vectors = 0.01 * vectors + 1
    if kind == "one large value":
        vectors[:, 0] += 100
    return Embeddings.from_vectors(vectors, ids=[f"{i:05}" for i in rng.permutation(n)])


@pytest.mark.parametrize("kind", ["clusters", "copies", "ties", "a cone", "one large value"])
def test_a_few_queries_find_what_they_find_without_codes(kind):
    gallery = gallery_of(kind)
    plain, ready = SearchIndex(gallery), SearchIndex(gallery)
    ready.make_ready()
    assert ready.codes is not None and plain.codes is None
    rng = np.random.default_rng(1)
    for queries in (
        gallery.take(rng.integers(6000, size=1)),
        gallery.take([5, 77, 3]),
        Embeddings.from_vectors(rng.normal(size=(4, 24))),
    ):
        for k in (1, 13):
            expected, found = search(queries, plain, k), search(queries, ready, k)
            np.testing.assert_array_equal(found.rows, expected.rows)
            np.testing.assert_allclose(found.similarities, expected.similarities, atol=1e-6)


def test_codes_are_used_by_few_queries_in_a_large_gallery_alone(monkeypatch):
    gallery, asked = gallery_of("clusters"), []
    real = Codes.candidates
    monkeypatch.setattr(Codes, "candidates", lambda *given: asked.append(1) or real(*given))
    ready, small = SearchIndex(gallery), SearchIndex(gallery.take(np.arange(index._MANY - 1)))
    for each in (ready, small):
        each.make_ready()
        for n in (1, exact._FEW_QUERIES, exact._FEW_QUERIES + 1):
            search(gallery.take(np.arange(n)), each, 3)
    assert len(asked) == 1 + exact._FEW_QUERIES and small.codes is None


def test_a_product_of_codes_is_off_by_no_more_than_they_say():
    vectors = gallery_of("clusters").vectors
    codes = Codes.of(vectors)
    off = np.linalg.norm(vectors - codes.scales[:, None] * codes.values, axis=1)
    assert (off <= codes.errors * 1.0001 + 1e-6).all() and codes.errors.max() < 0.02
    near = codes.candidates(vectors[0], 5, hidden=0)
    assert set(np.argsort(-(vectors @ vectors[0]))[1:6]) <= set(near) and len(near) < 600


def test_codes_after_a_change_are_those_made_anew():
    vectors = gallery_of("clusters").vectors
    codes, came_from = Codes.of(vectors[:100]), np.r_[np.arange(50, 100), np.full(5, -1)]
    changed = came_from < 0
    changed[3] = True
    table = np.vstack([vectors[50:100], vectors[200:205]])
    table[3] = vectors[300]
    after, expected = codes.after(table, came_from, changed), Codes.of(table)
    for name in ("values", "scales", "errors"):
        np.testing.assert_array_equal(getattr(after, name), getattr(expected, name))


def test_vectors_of_very_many_dimensions_have_no_codes():
    assert Codes.of(np.ones((2, 5000), np.float32)) is None
