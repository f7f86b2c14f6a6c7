"""The relational recipe: its steps against loops, what it is for, how it is chosen and when it holds back."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.refiner.samples import clusters, scores, unit

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.refiner import network as module
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.graph import build_graph
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.relations import relation_features
from entourage.refiner.universal import universal_network
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def disturbed_clusters(seed: int, n_classes=20) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of which the first eight dimensions carry nothing but strong noise: there is a map to learn."""
    vectors, labels = clusters(seed, n_classes, noise=0.6)
    vectors[:, :8] = 2 * np.random.default_rng(seed + 1000).normal(size=(len(labels), 8))
    return vectors, labels


def cosines(left, right) -> np.ndarray:
    return (left * right).sum(axis=1)


@pytest.fixture(scope="module")
def taught():
    """Learned from labels with everything there is to choose from."""
    return ContextRefiner().fit(*disturbed_clusters(seed=0))


@pytest.fixture(scope="module")
def short_rehearsals(taught, short_rehearsals):
    """As elsewhere, but only once `taught` has had the long ones."""


@pytest.fixture(scope="module", params=["taught", "untaught"])
def case(request):
    """A refiner with unseen vectors of its encoder and their classes."""
    refiner = request.getfixturevalue(request.param)
    return refiner, *(disturbed_clusters(seed=1) if request.param == "taught" else clusters(seed=1))


# ---- the step ----------------------------------------------------------------------------------------------------


def refined_by_loops(network: RelationalNetwork, vectors, k: int, n_steps: int) -> tuple[list, np.ndarray]:
    """e^0..e^T by softmax attention over the item and its neighbours, logits 0 and s log w; and w^s (N, k)."""
    x = Embeddings.from_vectors(vectors)
    if network.base_map is not None:
        x = Embeddings.from_vectors(x.vectors.astype(np.float64) @ network.base_map.astype(np.float64))
    found = search(x, k=k)
    p = network.scorer.probabilities(relation_features(found)).astype(np.float64)
    back = np.array([[p[j][found.rows[j] == i].sum() for j in row] for i, row in enumerate(found.rows)])
    trust = 0.85 * p + 0.15 * back
    sharpness, blend = network.sharpness, network.blend
    z = x.vectors.astype(np.float64)
    states = [z]
    for _ in range(n_steps):
        moved = []
        for i, row in enumerate(found.rows):
            logits = [0.0] + [sharpness * math.log(trust[i, rank]) for rank in range(k)]
            total = sum(map(math.exp, logits))
            attention = [math.exp(logit) / total for logit in logits]
            seen = sum(a * value for a, value in zip(attention, [z[i], *z[row]], strict=True))
            moved.append(seen / np.linalg.norm(seen))
        z = np.array(moved)
        y = blend * states[0] + (1 - blend) * z
        y /= np.linalg.norm(y, axis=1)[:, None]
        e = y.copy()
        for i, row in enumerate(found.rows):
            for rank, j in enumerate(row):
                nearer = (2 - 2 * found.similarities[i, 0] + 1e-3) / (2 - 2 * found.similarities[i, rank] + 1e-3)
                e[i] += network.pull * trust[i, rank] ** 2 * nearer**16 * y[j]
        states.append(e / np.linalg.norm(e, axis=1)[:, None])
    return states, trust**sharpness


def test_a_step_is_softmax_attention_over_the_item_and_its_neighbours(case):
    refiner, vectors, _ = case
    k = min(refiner.n_neighbors_, len(vectors) // 4)
    states, weights = refined_by_loops(refiner.network_, vectors, k, refiner.n_steps_)
    trajectory, attention = refiner.trajectory(vectors, context=vectors), refiner.attention(vectors, context=vectors)
    for t, expected in enumerate(states):
        np.testing.assert_allclose(trajectory[t], expected, atol=1e-5)
    shares = weights / weights.sum(axis=1, keepdims=True)
    assert attention.weights.shape == (refiner.n_steps_, *shares.shape)
    for of_step in attention.weights:
        np.testing.assert_allclose(of_step, shares, atol=1e-5)


def test_trajectory_attention_and_transform_are_of_one_piece(case):
    refiner, vectors, _ = case
    trajectory = refiner.trajectory(vectors)
    assert len(trajectory) == refiner.n_steps_ + 1 == 6
    for t in range(6):
        np.testing.assert_array_equal(trajectory[t], refiner.transform(vectors, steps=t))
    np.testing.assert_array_equal(trajectory[5], refiner.transform(vectors))
    np.testing.assert_allclose(refiner.attention(vectors).weights.sum(axis=2), 1, atol=1e-5)


def test_no_steps_are_the_input_through_the_base_map(taught, untaught):
    vectors = disturbed_clusters(seed=1)[0]
    assert taught.network_.base_map is not None and untaught.network_.base_map is None
    mapped = unit(unit(vectors).astype(np.float64) @ taught.network_.base_map)
    np.testing.assert_allclose(taught.transform(vectors, steps=0), mapped, atol=1e-6)
    np.testing.assert_array_equal(untaught.transform(vectors, steps=0), unit(vectors))


def test_an_item_that_trusts_nobody_stays_where_it_is():
    network = replace(universal_network(), sharpness=1e4, pull=0.0)
    items = Embeddings.from_vectors(clusters(seed=2)[0])
    *_, (e, _, _) = network.refine(items, items, 8, 3)
    np.testing.assert_allclose(e, items.vectors, atol=1e-6)


# ---- what it is for ----------------------------------------------------------------------------------------------


def test_unseen_classes_are_found_clearly_better_and_the_first_hit_no_worse(case):
    refiner, vectors, labels = case
    (raw_first, raw), (first, refined) = scores(vectors, labels), scores(refiner.transform(vectors), labels)
    assert raw < 0.6
    assert refined > raw + 0.2
    assert first >= raw_first
    assert refiner.report()["warnings"] == []


def test_the_report_of_a_fit_tells_what_was_chosen_and_how_it_did(taught):
    report = taught.report()
    metrics, protocol = report["metrics"], report["protocol"]
    assert metrics["rehearsal_map@r_refined"] > metrics["rehearsal_map@r_raw"] + 0.2
    assert metrics["rehearsal_recall@1_refined"] >= metrics["rehearsal_recall@1_raw"] - 0.002
    assert protocol["neighbors"] == taught.n_neighbors_ and protocol["steps"] == taught.n_steps_ == 5
    assert protocol["base_map"].startswith("within-class whitening, shrinkage")
    assert (protocol["sharpness"], protocol["blend"]) == (taught.network_.sharpness, taught.network_.blend)


# ---- queries and galleries ---------------------------------------------------------------------------------------


def test_refined_queries_belong_to_the_refined_gallery(case):
    refiner, vectors, labels = case
    query = np.arange(len(vectors)) % 3 == 0
    queries, gallery, of_gallery = vectors[query], vectors[~query], labels[~query]
    refined, searched = refiner.transform_both(queries, gallery)
    (raw_first, raw), (first, both), (_, one_sided), (_, other_side) = (
        scores(q, labels[query], g, of_gallery)
        for q, g in ((queries, gallery), (refined, searched), (refined, gallery), (queries, searched))
    )
    assert both > raw + 0.15 and first >= raw_first
    assert both > max(one_sided, other_side)


def test_queries_that_are_in_the_gallery_by_id_get_what_the_gallery_gets(case):
    refiner, vectors, _ = case
    items = Embeddings.from_vectors(vectors, ids=[f"{i:04}" for i in range(len(vectors))])
    some = items.take(np.arange(5, len(vectors), 7))
    refined, inside = refiner.transform(some, context=items), refiner.transform(items, context=items)
    np.testing.assert_allclose(refined.vectors, inside.vectors[5::7], atol=1e-6)
    seen, among = refiner.attention(some, context=items), refiner.attention(items, context=items)
    np.testing.assert_array_equal(seen.neighbor_ids, among.neighbor_ids[5::7])


def test_a_query_without_an_id_that_equals_a_gallery_vector_is_recognised_as_its_copy(case):
    refiner, vectors, _ = case
    np.testing.assert_allclose(
        refiner.transform(vectors[::9], context=vectors.copy()),
        refiner.transform(vectors, context=vectors)[::9],
        atol=1e-6,
    )


def test_a_query_from_outside_gets_nearly_what_it_would_get_inside(case):
    refiner, vectors, labels = case
    query = np.arange(len(vectors)) % 12 == 0
    gallery, of_gallery = vectors[~query], labels[~query]
    refined, searched = refiner.transform_both(vectors[query], gallery)
    added = np.stack([refiner.transform(np.vstack([gallery, one[None]]))[-1] for one in vectors[query]])
    near = cosines(refined, added)
    assert near.mean() > 0.97 and near.min() > 0.8
    (first, from_outside), (added_first, from_inside) = (
        scores(q, labels[query], searched, of_gallery) for q in (refined, added)
    )
    assert from_outside > from_inside - 0.04 and first > added_first - 0.08


# ---- copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0, 1e-3])
def test_copies_change_nothing_for_the_originals(case, noise):
    refiner, vectors, labels = case
    five = np.repeat(vectors, 5, axis=0)
    moves = np.random.default_rng(5).normal(size=five.shape) / math.sqrt(five.shape[1])
    five = five + noise * np.linalg.norm(five, axis=1)[:, None] * moves
    alone, among_copies = refiner.transform(five[::5]), refiner.transform(five)[::5]
    near = cosines(alone, among_copies)
    assert near.min() > 0.99 and np.mean(near > 0.9999) > 0.9
    if not noise:
        np.testing.assert_allclose(among_copies, alone, atol=1e-5)
    first, refined = scores(refiner.transform(five), np.repeat(labels, 5))
    raw_first, raw = scores(five, np.repeat(labels, 5))
    assert first >= raw_first and refined > raw + 0.15


def test_copies_attend_to_others_and_not_to_each_other(untaught):
    vectors = np.repeat(clusters(seed=3, n_classes=10)[0], 3, axis=0)
    attention = untaught.attention(vectors, context=vectors)
    assert not (attention.neighbor_ids // 3 == np.arange(len(vectors))[:, None] // 3).any()
    assert all(len(set((row // 3).tolist())) == len(row) for row in attention.neighbor_ids)


# ---- sparse galleries --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taught_dense(short_rehearsals):
    return ContextRefiner().fit(*clusters(seed=0, n_classes=20, per_class=40, noise=0.8))


def test_what_was_learned_from_large_classes_does_no_harm_where_classes_are_pairs(taught_dense):
    changes = []
    for seed in range(10, 13):
        vectors, labels = clusters(seed, n_classes=200, per_class=2, noise=0.8)
        changes.append(scores(taught_dense.transform(vectors, context=vectors), labels)[1] - scores(vectors, labels)[1])
    assert np.mean(changes) > -0.01


def test_the_fallback_takes_over_by_degrees():
    fallback, rng = universal_network(), np.random.default_rng(0)
    arrays = fallback.scorer.to_arrays()
    other = type(fallback.scorer).from_arrays(arrays | {"layers.4.bias": arrays["layers.4.bias"] + 2})
    own = RelationalNetwork(other, None, 48, 1.0, 0.1, 0.0, fallback=fallback, usual_purity=0.6)
    assert own.manner() == own.manner(1.0) == (other, 48, 1.0, 0.1, 0.0)
    assert own.manner(0.0) == fallback.manner()
    middle = own.manner(0.5)
    assert middle[1:] == (24, pytest.approx(3.5**0.5), pytest.approx(0.3), pytest.approx(0.5))
    relations = rng.normal(size=(5, 22)).astype(np.float32)
    mean = (other.probabilities(relations) + fallback.scorer.probabilities(relations)) / 2
    np.testing.assert_allclose(middle.scorer.probabilities(relations), mean, rtol=1e-6)


def test_how_far_a_network_suits_a_gallery_is_its_purity_out_of_the_usual():
    graph = build_graph(Embeddings.from_vectors(clusters(seed=3)[0]), 12)
    fallback = universal_network()
    purity = module.estimated_purity(fallback.scorer, graph, 12)
    for ratio, share in ((0.4, 0.0), (0.5, 0.0), (0.675, 0.5), (0.85, 1.0), (1.2, 1.0)):
        network = replace(fallback, fallback=fallback, usual_purity=purity / ratio)
        assert network.share_in(graph) == pytest.approx(share, abs=0.006)
    assert fallback.share_in(graph) == 1


# ---- on disk -----------------------------------------------------------------------------------------------------


def test_both_kinds_come_back_from_disk_as_they_were(tmp_path, case):
    refiner, vectors, _ = case
    refiner.save(tmp_path / "model")
    loaded = ContextRefiner.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.transform(vectors, context=vectors), refiner.transform(vectors, context=vectors)
    )
    np.testing.assert_array_equal(loaded.transform(vectors[::3], vectors), refiner.transform(vectors[::3], vectors))
    assert loaded.report() == refiner.report() and loaded.n_parameters_ == refiner.n_parameters_
    kept = ContextRefiner().fit(vectors[:5])
    kept.save(tmp_path / "nothing")
    np.testing.assert_array_equal(
        ContextRefiner.load(tmp_path / "nothing").transform(vectors, context=vectors), unit(vectors)
    )


def test_a_network_comes_back_from_its_arrays_with_map_and_fallback(taught):
    universal = universal_network()
    network = replace(taught.network_, fallback=replace(universal, n_neighbors=9), usual_purity=0.7)
    again = RelationalNetwork.from_arrays(network.to_arrays())
    assert (again.n_neighbors, again.sharpness, again.blend) == (network.n_neighbors, network.sharpness, network.blend)
    assert again.usual_purity == 0.7 and again.fallback.n_neighbors == 9 and again.fallback.fallback is None
    np.testing.assert_array_equal(again.base_map, network.base_map)
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, network.to_arrays()[name], name)
    assert network.n_parameters == 1825 + 32 * 32 and universal.n_parameters == 1825


def test_arrays_that_are_missing_or_unknown_are_refused():
    arrays = universal_network().to_arrays()
    with pytest.raises(ValueError, match="missing or unknown: blend"):
        RelationalNetwork.from_arrays({name: array for name, array in arrays.items() if name != "blend"})
    with pytest.raises(ValueError, match="missing or unknown: cautious"):
        RelationalNetwork.from_arrays(arrays | {"cautious.blend": arrays["blend"]})
    with pytest.raises(ValueError, match=r"the base map has shape \(3,\); wanted \(d, d\)"):
        replace(universal_network(), base_map=np.ones(3))


# ---- a graph that is known already -------------------------------------------------------------------------------


@pytest.mark.parametrize("last_only", [False, True])
def test_with_its_graph_given_a_gallery_is_refined_as_without(case, last_only, monkeypatch):
    network, items = case[0].network_, Embeddings.from_vectors(case[1])
    graph = build_graph(apply_base_map(items, network.base_map), network.n_neighbors)
    queries = Embeddings.from_vectors(case[1][::5] + 0.1)
    wanted = [
        list(network.refine(given, items, network.n_neighbors, 3, last_only=last_only)) for given in (items, queries)
    ]
    network = replace(network, fallback=None)
    monkeypatch.setattr(module, "build_graph", None)  # would fail if called
    for given, steps in zip((items, queries), wanted, strict=True):
        found = list(network.refine(given, items, network.n_neighbors, 3, last_only=last_only, graph=graph))
        assert len(found) == len(steps) == (1 if last_only else 4)
        for one, other in zip(found, steps, strict=True):
            for value, expected in zip(one, other, strict=True):
                np.testing.assert_array_equal(value, expected)


def test_the_graph_of_another_gallery_is_refused():
    items = Embeddings.from_vectors(clusters(seed=2)[0])
    graph = build_graph(items.take(np.arange(100)), 12)
    with pytest.raises(InputError, match="the graph is of 100 items and the gallery has 360; give the graph of this"):
        list(universal_network().refine(items, items, 12, 1, graph=graph))


# ---- a much sparser gallery --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("usual_purity", "takes_over"), [(0.0, False), (10.0, True)])
def test_the_fallback_refines_galleries_that_are_much_less_pure(usual_purity, takes_over):
    items = Embeddings.from_vectors(clusters(seed=2)[0])
    universal = universal_network()
    sharp = replace(universal, n_neighbors=20, sharpness=9.0, blend=0.5)
    network = replace(sharp, fallback=universal, usual_purity=usual_purity)
    *_, (found, _, rows) = network.refine(items, items, 20, 2)
    *_, (wanted, _, wanted_rows) = (universal if takes_over else sharp).refine(
        items, items, 12 if takes_over else 20, 2
    )
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(rows, wanted_rows)
