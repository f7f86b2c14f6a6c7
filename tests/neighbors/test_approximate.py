"""Approximate search against exact search: what it finds, what it says of its recall, and who is never found."""

import functools

import numpy as np
import pytest
from tests.refiner.samples import clusters

from entourage.errors import InputError, MissingExtra
from entourage.neighbors import choice, search
from entourage.neighbors.choice import PILOT_MISSED
from entourage.neighbors.reference import nearest_exactly
from entourage.values import Embeddings

METHODS = {"HNSW16": "faiss", "HNSW16,SQ8": "faiss", "IVF8,Flat": "faiss", "IVF8,SQ8": "faiss"}


@pytest.fixture(scope="module")
def items():
    vectors, _ = clusters(0, n_classes=60, per_class=10)
    return Embeddings.from_vectors(vectors, [f"item {row}" for row in range(len(vectors))])


@pytest.fixture(params=METHODS)
def method(request):
    pytest.importorskip(METHODS[request.param])
    return request.param


def overlap(found, wanted) -> float:
    return float(found.kept_in(wanted).mean() / wanted.k)


def test_one_set_is_found_nearly_as_by_exact_search_with_exact_similarities(items, method):
    found, wanted = search(items, k=10, by=method), search(items, k=10, by="exact")
    assert overlap(found, wanted) >= 0.95
    assert not (found.rows == np.arange(len(items))[:, None]).any()
    expected = np.einsum("nd,nkd->nk", items.vectors, items.vectors[found.rows])
    np.testing.assert_allclose(found.similarities, expected, atol=1e-6)


def test_the_recall_that_is_told_is_that_of_the_sample(items, method):
    found, wanted = search(items, k=10, by=method), search(items, k=10)
    assert wanted.method == "exact" and found.method.startswith("approximate (")
    told = float(found.method.partition("recall ")[2].split()[0])
    assert told == pytest.approx(overlap(found, wanted), abs=0.03) and "256 sampled items" in found.method


@pytest.mark.attack  # pynndescent compiles for a minute
def test_nn_descent_finds_one_set(items):
    pytest.importorskip("pynndescent")
    found = search(items, k=10, by="nn-descent")
    assert overlap(found, search(items, k=10)) >= 0.95
    assert found.method.startswith("approximate (NN-descent, lists of 36), recall")


@pytest.mark.parametrize("by", ["HNSW16", "IVF8,SQ8"])
def test_queries_are_found_in_a_gallery_without_themselves(items, by):
    pytest.importorskip("faiss")
    queries, gallery = items.take(np.arange(0, 100)), items.take(np.arange(50, 600))
    found = search(queries, gallery, k=10, by=by)
    assert overlap(found, search(queries, gallery, k=10)) >= 0.95
    assert not (gallery.ids[found.rows] == queries.ids[:, None]).any()


def test_an_index_is_searched_more_widely_until_it_finds_enough(items):
    pytest.importorskip("faiss")
    assert "nprobe 8" not in search(items, k=10, by="IVF64,Flat").method


def test_what_an_index_has_lost_is_searched_exactly(items, monkeypatch):
    pytest.importorskip("faiss")
    from entourage.neighbors.faiss_search import FaissIndex

    lost = lambda self, queries, rows, k: np.full((len(queries), k), -1)  # noqa: E731
    monkeypatch.setattr(FaissIndex, "of", lost)
    np.testing.assert_array_equal(search(items, k=5, by="HNSW16").rows, search(items, k=5).rows)


def test_exact_search_of_vectors_that_are_not_in_memory_finds_the_same(items, monkeypatch):
    monkeypatch.setattr("entourage.neighbors.reference._COLUMNS", 100)
    rank = np.argsort(np.argsort(items.ids))
    rows, similarities = nearest_exactly(items.vectors[:40], items.vectors, 7, np.arange(40), rank)
    wanted = search(items, k=7)
    np.testing.assert_array_equal(rows, wanted.rows[:40])
    np.testing.assert_allclose(similarities, wanted.similarities[:40], atol=1e-6)


@pytest.mark.parametrize(
    ("n", "memory", "wanted"),
    [
        (100_000, 8e9, "exact"),
        (1_000_000, 1e9, "HNSW32,SQ8"),
        (1_000_000, 0.6e9, "HNSW16,SQ8"),
        (10_000_000, 1e9, "IVF4096,PQ96"),
    ],
)
def test_it_is_chosen_by_size_and_memory(n, memory, wanted):
    pytest.importorskip("faiss")
    assert choice.chosen(n, n, 384, one_set=True, memory=memory) == wanted
    assert choice.chosen(10, n, 384, one_set=False, memory=memory) == "exact"


def test_without_faiss_it_stays_exact_and_what_is_named_names_its_extra(items, monkeypatch):
    monkeypatch.setattr("entourage.neighbors.choice.is_installed", lambda library: False)
    assert choice.chosen(10**6, 10**6, 384, one_set=True, memory=8e9) == "exact"
    monkeypatch.setattr("entourage.runtime.extras.is_installed", lambda library: False)
    for by, extra in {"HNSW16": "faiss", "nn-descent": "nn-descent"}.items():
        with pytest.raises(MissingExtra, match=rf"entourage\[{extra}\]"):
            search(items, k=3, by=by)


@pytest.mark.parametrize(
    ("library", "one", "among_others"),
    [("pynndescent", "NN-descent, lists of 31", "exact"), ("faiss", "HNSW32,SQ8", "HNSW32,SQ8")],
)
def test_large_sets_are_searched_by_what_is_installed(items, monkeypatch, library, one, among_others):
    pytest.importorskip(library)
    monkeypatch.setattr("entourage.neighbors.choice._EXACT_PAIRS", 1000)
    monkeypatch.setattr("entourage.neighbors.choice.is_installed", lambda other: other == library)
    assert search(items, k=5).method.startswith(f"approximate ({one}")
    assert among_others in search(items.take(np.arange(300)), items, k=5).method
    assert search(items, k=200).method == "exact"  # an index would have to look at nearly everything


def test_of_both_nn_descent_is_taken_where_its_lists_fit_into_memory(monkeypatch):
    monkeypatch.setattr("entourage.neighbors.choice.is_installed", lambda library: True)
    of_million = functools.partial(choice.chosen, 10**6, 10**6, 384, in_memory=True)
    assert of_million(one_set=True, memory=4e9) == "nn-descent"
    assert of_million(one_set=True, memory=2e9) == "HNSW32,SQ8"
    assert of_million(one_set=False, memory=4e9) == "HNSW32,SQ8"


class NothingKept:
    def __init__(self, vectors, k):
        pass

    def along(self, axes):
        return 0.5


@pytest.mark.parametrize(
    ("gigabytes", "tried"),
    [
        (2 * 9.0, [(384, 63), (384, 88), (384, 123)]),
        (2 * 3.6, [(384, 63)]),
        (2 * 3.4, [(128, 63), (128, 88)]),  # whole vectors would not fit
        (2 * 3.0, [(128, 63)]),
    ],
)
def test_nn_descent_is_widened_as_far_as_memory_allows(monkeypatch, gigabytes, tried):
    from entourage.neighbors.nn_descent import NNDescentGraph

    seen = []

    def found(graph, vectors, length):
        seen.append((graph._dim, length))
        return np.empty((1, length), np.int32)

    monkeypatch.setattr(NNDescentGraph, "_found", found)
    monkeypatch.setattr("entourage.neighbors.nn_descent.require", lambda *named: None)
    monkeypatch.setattr("entourage.neighbors.nn_descent._axes", lambda vectors: np.zeros((384, 384)))
    monkeypatch.setattr("entourage.neighbors.nn_descent._Kept", NothingKept)
    monkeypatch.setattr(NNDescentGraph, "_missed", lambda graph, k: PILOT_MISSED)
    monkeypatch.setattr("entourage.neighbors.nn_descent.free_memory", lambda: gigabytes * 1e9)
    graph = NNDescentGraph(np.broadcast_to(np.float32(0), (10**6, 384)), 16)
    while graph.widen():
        pass
    assert seen == tried


@pytest.mark.parametrize(("filled", "directions"), [(20, 64), (100, 128), (400, 400)])
def test_nn_descent_looks_at_principal_directions_if_neighbours_are_the_same_there(monkeypatch, filled, directions):
    from entourage.neighbors.nn_descent import NNDescentGraph

    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(3000, filled)) @ draw.normal(size=(filled, 400))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    monkeypatch.setattr(NNDescentGraph, "_found", lambda graph, vectors, length: np.empty((1, length), np.int32))
    monkeypatch.setattr("entourage.neighbors.nn_descent.require", lambda *named: None)
    graph = NNDescentGraph(vectors, 10)
    assert graph._dim == directions
    assert (f"in {directions} principal directions" in graph.name) == (directions < 400)


@pytest.mark.parametrize(("dim", "directions"), [(64, None), (100, None), (384, 128)])
def test_whole_vectors_that_do_not_fit_are_seen_along_as_many_directions_as_there_may_be(monkeypatch, dim, directions):
    from entourage.neighbors.nn_descent import NNDescentGraph

    vectors = np.random.default_rng(0).normal(size=(2000, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    monkeypatch.setattr(NNDescentGraph, "_found", lambda graph, vectors, length: np.empty((1, length), np.int32))
    monkeypatch.setattr("entourage.neighbors.nn_descent.require", lambda *named: None)
    monkeypatch.setattr("entourage.neighbors.nn_descent._Kept", NothingKept)
    monkeypatch.setattr("entourage.neighbors.nn_descent.free_memory", lambda: 0)
    assert NNDescentGraph(vectors, 10)._dim == (directions or dim)


def test_items_that_have_nothing_along_the_directions_are_not_near_to_everybody(monkeypatch):
    """As those of sparse features with one of their own: to a vector of zeros, all are nearer than to each other."""
    pytest.importorskip("pynndescent")
    draw = np.random.default_rng(0)
    vectors = np.zeros((6000, 300), np.float32)
    vectors[150:, :62] = draw.normal(size=(5850, 62))
    vectors[range(150), range(62, 212)] = 1
    monkeypatch.setattr("entourage.neighbors.nn_descent._ENOUGH", {64: 0.95})  # these items have no nearest
    found = search(Embeddings.from_vectors(vectors), k=8, by="nn-descent")
    assert "64 principal directions" in found.method
    assert float(found.method.split("recall ")[1].split()[0]) >= 0.95, found.method


@pytest.mark.parametrize(("fall", "noise", "directions"), [(0.5, 0.0, "128"), (0.7, 0.1, None), (0.8, 0.05, None)])
def test_spectra_that_fall_slowly_are_seen_along_as_many_directions_as_find_enough(fall, noise, directions):
    """128 of 384 directions hold most of an item, and not always its order of neighbours."""
    pytest.importorskip("pynndescent")
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(4000, 384)) * np.arange(1, 385) ** -fall + noise * draw.normal(size=(4000, 384))
    found = search(Embeddings.from_vectors(vectors.astype(np.float32)), k=16, by="nn-descent")
    assert ("principal directions" in found.method) == (directions is not None)
    assert directions is None or f"in {directions} principal directions" in found.method
    assert float(found.method.split("recall ")[1].split()[0]) >= 0.95, found.method


@pytest.mark.parametrize("hard", [False, True])
def test_a_part_of_a_large_set_shows_how_long_lists_of_nn_descent_must_be(items, monkeypatch, hard):
    from entourage.neighbors import nn_descent

    pytest.importorskip("pynndescent")
    monkeypatch.setattr(nn_descent, "PILOT", 150)
    monkeypatch.setattr(nn_descent, "pilot_lists", lambda k: 2 if hard else 60)
    asked = []
    monkeypatch.setattr(
        nn_descent,
        "descent_lists",
        lambda n, k, missed=0.045: asked.append((n, k, missed)) or (40 if missed > 0.1 else 20),
    )
    found = search(items, k=7, by="nn-descent")
    assert f"lists of {41 if hard else 21})" in found.method
    (n, k, missed) = asked[-1]
    assert (n, k) == (600, 7) and (missed > 0.5 if hard else missed < 0.05)


def test_nn_descent_takes_longer_lists_where_it_finds_too_little(items, monkeypatch):
    pytest.importorskip("pynndescent")
    monkeypatch.setattr("entourage.neighbors.nn_descent.descent_lists", lambda count, k: k)
    monkeypatch.setattr("entourage.neighbors.approximate.WANTED", 1.1)  # never enough
    assert "lists of 15)" in search(items, k=7, by="nn-descent").method  # 7, 10, 14, and the item itself
    few = items.take(np.arange(9))
    assert "lists of 8)" in search(few, k=7, by="nn-descent").method


def test_what_names_no_way_to_search_is_refused(items):
    pytest.importorskip("faiss")
    with pytest.raises(InputError, match="faiss cannot make an index of 'nonsense'"):
        search(items, k=3, by="nonsense")
    with pytest.raises(InputError, match="has 4096 lists for 600 items; wanted fewer lists"):
        search(items, k=3, by="IVF4096,Flat")
    with pytest.raises(InputError, match="by is None; wanted auto, exact"):
        search(items, k=3, by=None)
    with pytest.raises(InputError, match="searches a set within itself"):
        search(items, items.take(np.arange(300)), k=3, by="nn-descent")
