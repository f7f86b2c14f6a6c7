"""The universal scorer, which needs no labels: what it is for, when it holds back, and that nobody changes it."""

import subprocess
import sys

import numpy as np
import pytest
from tests.refiner.samples import clusters, scores, unit

from entourage.neighbors.copies import search_distinct
from entourage.refiner import graph as graph_module
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.settings import RefinerSettings
from entourage.refiner.universal import LEAST_ITEMS, fit_universal, forecast, universal_network
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def assert_same_arrays(left: RelationalNetwork, right: RelationalNetwork) -> None:
    left, right = left.to_arrays(), right.to_arrays()
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], name)


@pytest.mark.parametrize(("dim", "noise"), [(12, 0.7), (64, 1.6), (300, 2.4)])
def test_the_universal_scorer_helps_vectors_of_any_size(dim, noise):
    vectors, labels = clusters(seed=11, dim=dim, noise=noise)
    refiner = ContextRefiner().fit(vectors)
    refined = refiner.transform(vectors)
    assert refined.shape == vectors.shape and refiner.n_features_in_ == dim
    assert refiner.report()["protocol"]["labels"] == "none: the universal scorer"
    (raw_first, raw), (first, after) = scores(vectors, labels), scores(refined, labels)
    assert after > raw + 0.1 and first >= raw_first - 0.01
    assert_same_arrays(refiner.network_, universal_network())


@pytest.mark.parametrize("seed", range(10, 13))
@pytest.mark.parametrize("noise", [0.5, 0.8, 1.2])
def test_without_labels_pairs_come_to_no_harm(seed, noise):
    vectors, labels = clusters(seed, n_classes=200, per_class=2, noise=noise)
    assert scores(ContextRefiner().fit_transform(vectors), labels)[1] > scores(vectors, labels)[1] - 0.01


@pytest.mark.parametrize(("n", "dim"), [(30, 64), (300, 32), (300, 64), (1000, 512)])
def test_noise_is_returned_as_it_is_with_a_warning(n, dim):
    noise = np.random.default_rng(n + dim).normal(size=(n, dim))
    refiner = ContextRefiner().fit(noise)
    np.testing.assert_array_equal(refiner.transform(noise), unit(noise))
    (warning,) = refiner.report()["warnings"]
    assert warning.startswith("the vectors are only scaled to length 1: only ")
    assert refiner.report()["protocol"]["blend"] == 1


@pytest.mark.parametrize(("k", "warned"), [(20, False), (21, True), (1000, True)])
def test_more_neighbours_than_are_looked_at_are_warned_of(k, warned):
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.normal(size=(8, 32)), 10, axis=0) + 0.5 * rng.normal(size=(80, 32))
    told = f"{k} neighbours were requested, but an item attends to at most 20 of 80 distinct vectors, a quarter"
    assert ContextRefiner(k).fit(vectors).report()["warnings"] == [told] * warned


@pytest.mark.parametrize("n", [1, 2, 3, 8, LEAST_ITEMS - 1])
@pytest.mark.parametrize("identical", [False, True])
def test_a_few_vectors_are_returned_as_they_are_with_a_warning(n, identical):
    vectors = np.random.default_rng(n).normal(size=(n, 16))
    vectors = np.repeat(vectors[:1], n, axis=0) if identical else vectors
    refiner = ContextRefiner().fit(vectors)
    np.testing.assert_array_equal(refiner.transform(vectors), unit(vectors))
    distinct = 1 if identical else n
    assert f"{distinct} distinct vectors" in refiner.report()["warnings"][0]
    assert forecast(Embeddings.from_vectors(vectors)).distinct == distinct
    attention = refiner.attention(vectors)
    assert attention.weights.shape[:2] == (5, n)
    assert len(refiner.trajectory(vectors)) == 6


@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_a_refiner_at_work_leaves_one_or_identical_vectors_where_they_are(untaught, n):
    vectors = np.repeat(clusters(seed=12)[0][:1], n, axis=0)
    np.testing.assert_allclose(untaught.transform(vectors, context=vectors), unit(vectors), atol=1e-6)
    gallery = clusters(seed=12)[0]
    np.testing.assert_allclose(untaught.transform(gallery, context=vectors).shape, gallery.shape)
    assert np.isfinite(untaught.transform(vectors, context=gallery)).all()


@pytest.mark.parametrize("asked", [None, 6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_classes_are_left_to_the_universal_scorer_with_a_warning(n_classes, asked):
    vectors, labels = clusters(seed=13, n_classes=n_classes)
    refiner = ContextRefiner(asked).fit(vectors, labels)
    report = refiner.report()
    assert report["warnings"] == ["too few classes to rehearse with: the universal scorer is used as it is"]
    assert (report["protocol"]["scorer"], report["protocol"]["base_map"]) == ("universal", "none")
    assert refiner.n_neighbors_ == (asked or universal_network().n_neighbors)
    items = Embeddings.from_vectors(vectors)
    *_, (expected, _, _) = universal_network().refine(items, items, refiner.n_neighbors_, 5)
    np.testing.assert_array_equal(refiner.transform(vectors, context=vectors), expected)


def test_the_shipped_scorer_is_not_changed_by_learning(short_rehearsals):
    before = {name: array.copy() for name, array in universal_network().to_arrays().items()}
    ContextRefiner(n_neighbors=7).fit(*clusters(seed=14, n_classes=12))
    ContextRefiner(n_neighbors=7).fit(clusters(seed=14)[0][:10])
    assert_same_arrays(universal_network(), RelationalNetwork.from_arrays(before))
    for array in (universal_network().scorer.centre, *universal_network().scorer.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


# ---- one graph for forecast and refinement -------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [None, 12, 5, 20])
def test_the_graph_of_the_forecast_is_the_one_that_refinement_needs(asked, monkeypatch):
    items, searches = Embeddings.from_vectors(clusters(seed=16)[0]), []

    def counted(*arguments, **options):
        searches.append(arguments)
        return search_distinct(*arguments, **options)

    monkeypatch.setattr(graph_module, "search_distinct", counted)
    network, report, graph = fit_universal(RefinerSettings(n_neighbors=asked), items)
    *_, (found, _, _) = network.refine(items, items, network.n_neighbors, 5, graph=graph)
    assert len(searches) == 1
    *_, (wanted, _, _) = network.refine(items, items, network.n_neighbors, 5)
    np.testing.assert_array_equal(found, wanted)
    assert report["metrics"]["estimated_purity"] == pytest.approx(forecast(items).purity, abs=1e-7)


@pytest.mark.parametrize(("asked", "known"), [(None, True), (20, True), (5, False)])
def test_among_copies_shorter_lists_are_searched_for_again(asked, known):
    """Which items are copies depends on how far one looks; what is refined must not."""
    items = Embeddings.from_vectors(np.repeat(clusters(seed=16)[0], 3, axis=0))
    network, _, graph = fit_universal(RefinerSettings(n_neighbors=asked), items)
    assert (graph is not None) == known
    *_, (found, _, _) = network.refine(items, items, network.n_neighbors, 5, graph=graph)
    *_, (wanted, _, _) = network.refine(items, items, network.n_neighbors, 5)
    np.testing.assert_array_equal(found, wanted)


# ---- no torch ------------------------------------------------------------------------------------------------------

NO_TORCH = """
import sys
import importlib
for name in {names}:
    importlib.import_module("entourage.refiner." + name)
assert "torch" not in sys.modules
"""


def test_what_applies_does_not_import_torch():
    names = ["network", "universal", "graph", "serving", "scorer", "context", "relations", "gathering", "rehearsal"]
    subprocess.run([sys.executable, "-c", NO_TORCH.format(names=names)], check=True)
