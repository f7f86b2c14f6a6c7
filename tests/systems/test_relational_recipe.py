"""The relational recipe: its steps against loops, what it is for, how it is chosen and when it holds back."""

import math

import numpy as np
import pytest
import torch

from entourage.errors import InputError
from entourage.evaluation import evaluate
from entourage.neighbors import search
from entourage.relations import relation_features
from entourage.systems.context_refiner import ContextRefiner, rehearsal
from entourage.systems.context_refiner.rehearsal import Scored, best_of
from entourage.systems.context_refiner.relational import RelationalNetwork
from entourage.systems.context_refiner.universal import LEAST_ITEMS, forecast, universal_network
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def clusters(seed: int, n_classes=30, per_class=12, noise=1.2, dim=32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    return rng.normal(size=(n_classes, dim))[labels] + noise * rng.normal(size=(len(labels), dim)), labels


def disturbed_clusters(seed: int, n_classes=20) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of which the first eight dimensions carry nothing but strong noise: there is a map to learn."""
    vectors, labels = clusters(seed, n_classes, noise=0.6)
    vectors[:, :8] = 2 * np.random.default_rng(seed + 1000).normal(size=(len(labels), 8))
    return vectors, labels


def unit(vectors) -> np.ndarray:
    return Embeddings.from_vectors(vectors).vectors


def scores(vectors, labels, gallery=None, gallery_labels=None) -> tuple[float, float]:
    """R@1 and MAP@R."""
    metrics = evaluate(vectors, labels, gallery=gallery, gallery_labels=gallery_labels, nmi=False).metrics
    return metrics["recall@1"], metrics["map@r"]


def cosines(left, right) -> np.ndarray:
    return (left * right).sum(axis=1)


@pytest.fixture(scope="module")
def taught():
    """Learned from labels with everything there is to choose from."""
    return ContextRefiner().fit(*disturbed_clusters(seed=0))


@pytest.fixture(scope="module")
def short_rehearsals(taught, short_rehearsals):
    """As elsewhere, but only once `taught` has had the long ones."""


@pytest.fixture(scope="module")
def untaught():
    return ContextRefiner().fit(clusters(seed=1)[0])


@pytest.fixture(scope="module", params=["taught", "untaught"])
def case(request):
    """A refiner with unseen vectors of its encoder and their classes."""
    refiner = request.getfixturevalue(request.param)
    return refiner, *(disturbed_clusters(seed=1) if request.param == "taught" else clusters(seed=1))


# ---- the step ----------------------------------------------------------------------------------------------------


def refined_by_loops(network: RelationalNetwork, vectors, k: int, n_steps: int) -> tuple[list, np.ndarray]:
    """e^0..e^T by softmax attention over the item and its neighbours, logits 0 and s log p; and p^s (N, k)."""
    x = Embeddings.from_vectors(vectors)
    if network.base is not None:
        x = Embeddings.from_vectors(x.vectors.astype(np.float64) @ network.base.numpy().astype(np.float64))
    found = search(x, k=k)
    p = network.scorer.probabilities(relation_features(found)).astype(np.float64)
    sharpness, blend = float(network.sharpness), float(network.blend)
    z = x.vectors.astype(np.float64)
    states = [z]
    for _ in range(n_steps):
        moved = []
        for i, row in enumerate(found.rows):
            logits = [0.0] + [sharpness * math.log(p[i, rank]) for rank in range(k)]
            total = sum(map(math.exp, logits))
            attention = [math.exp(logit) / total for logit in logits]
            seen = sum(a * value for a, value in zip(attention, [z[i], *z[row]], strict=True))
            moved.append(seen / np.linalg.norm(seen))
        z = np.array(moved)
        e = blend * states[0] + (1 - blend) * z
        states.append(e / np.linalg.norm(e, axis=1)[:, None])
    return states, p**sharpness


def test_a_step_is_softmax_attention_over_the_item_and_its_neighbours(case):
    refiner, vectors, _ = case
    k = min(refiner.n_neighbors_, len(vectors) // 4)
    states, weights = refined_by_loops(refiner.network_, vectors, k, refiner.n_blocks_)
    trajectory, attention = refiner.trajectory(vectors), refiner.attention(vectors)
    for t, expected in enumerate(states):
        np.testing.assert_allclose(trajectory[t], expected, atol=1e-5)
    shares = weights / weights.sum(axis=1, keepdims=True)
    assert attention.weights.shape == (refiner.n_blocks_, *shares.shape)
    for of_step in attention.weights:
        np.testing.assert_allclose(of_step, shares, atol=1e-5)


def test_trajectory_attention_and_transform_are_of_one_piece(case):
    refiner, vectors, _ = case
    trajectory = refiner.trajectory(vectors)
    assert len(trajectory) == refiner.n_blocks_ + 1 == 6
    for t in range(6):
        np.testing.assert_array_equal(trajectory[t], refiner.transform(vectors, steps=t))
    np.testing.assert_array_equal(trajectory[5], refiner.transform(vectors))
    np.testing.assert_allclose(refiner.attention(vectors).weights.sum(axis=2), 1, atol=1e-5)


def test_no_steps_are_the_input_through_the_base_map(taught, untaught):
    vectors = disturbed_clusters(seed=1)[0]
    assert taught.network_.base is not None and untaught.network_.base is None
    mapped = unit(unit(vectors).astype(np.float64) @ taught.network_.base.numpy())
    np.testing.assert_allclose(taught.transform(vectors, steps=0), mapped, atol=1e-6)
    np.testing.assert_array_equal(untaught.transform(vectors, steps=0), unit(vectors))


def test_an_item_that_trusts_nobody_stays_where_it_is():
    network = universal_network()
    network.sharpness.fill_(1e4)
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
    assert protocol["neighbors"] == taught.n_neighbors_ and protocol["steps"] == taught.n_blocks_ == 5
    assert protocol["base_map"].startswith("within-class whitening, shrinkage")
    assert (protocol["sharpness"], protocol["blend"]) == pytest.approx(
        (float(taught.network_.sharpness), float(taught.network_.blend))
    )
    assert taught.history_ is None


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
    assert both > max(one_sided, other_side) + 0.01


def test_queries_that_are_in_the_gallery_by_id_get_what_the_gallery_gets(case):
    refiner, vectors, _ = case
    items = Embeddings.from_vectors(vectors, ids=[f"{i:04}" for i in range(len(vectors))])
    some = items.take(np.arange(5, len(vectors), 7))
    refined = refiner.transform(some, context=items)
    np.testing.assert_allclose(refined, refiner.transform(items)[5::7], atol=1e-6)
    seen, among = refiner.attention(some, context=items), refiner.attention(items)
    np.testing.assert_array_equal(seen.neighbor_ids, among.neighbor_ids[5::7])


def test_a_query_without_an_id_that_equals_a_gallery_vector_is_recognised_as_its_copy(case):
    refiner, vectors, _ = case
    np.testing.assert_allclose(
        refiner.transform(vectors[::9], context=vectors.copy()), refiner.transform(vectors)[::9], atol=1e-6
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
    assert from_outside > from_inside - 0.03 and first > added_first - 0.05


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
    attention = untaught.attention(vectors)
    assert not (attention.neighbor_ids // 3 == np.arange(len(vectors))[:, None] // 3).any()
    assert all(len(set((row // 3).tolist())) == len(row) for row in attention.neighbor_ids)


# ---- the choice --------------------------------------------------------------------------------------------------


def test_the_best_map_at_r_wins_among_those_that_keep_the_first_hit():
    nothing = Scored("nothing", 0.80, 0.50)
    bold, safe, timid = Scored("bold", 0.70, 0.90), Scored("safe", 0.80, 0.70), Scored("timid", 0.95, 0.60)
    assert best_of([bold, safe, timid], nothing) is safe
    assert best_of([bold, timid], nothing) is timid
    nearly = Scored("nearly", 0.7985, 0.80)  # two queries in a thousand may go
    assert best_of([bold, safe, timid, nearly], nothing) is nearly
    not_quite = Scored("not quite", 0.7975, 0.80)
    assert best_of([bold, safe, timid, not_quite], nothing) is safe
    worse = Scored("worse", 0.60, 0.95)
    assert best_of([worse, bold], nothing) is bold, "where all fall, the one that falls least"


def test_where_everything_is_worse_nothing_is_done(monkeypatch, short_rehearsals):
    raw = []

    def score(stage):
        if len(raw) < 3:  # the raw stages are scored first
            raw.append(stage)
        return (0.8, 0.5) if any(stage is other for other in raw) else (0.7, 0.4)

    monkeypatch.setattr(rehearsal, "_score", score)
    vectors, labels = clusters(seed=0, n_classes=12)
    refiner = ContextRefiner().fit(vectors, labels)
    assert refiner.network_.base is None and float(refiner.network_.blend) == 1
    np.testing.assert_array_equal(refiner.transform(vectors), unit(vectors))
    assert refiner.report()["warnings"] == [
        "in the rehearsals nothing was better than the raw vectors: they are returned as they are"
    ]
    assert refiner.report()["protocol"]["base_map"] == "none"


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_mean_nothing_do_no_harm(short_rehearsals, seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(15), 12)
    refiner = ContextRefiner(seed=seed).fit(rng.normal(size=(180, 32)), labels)
    noise = rng.normal(size=(180, 32))
    raw, refined = scores(noise, labels)[1], scores(refiner.transform(noise), labels)[1]
    assert refiner.report()["warnings"] or refined > raw - 0.01
    vectors, known = clusters(seed=seed + 10)
    assert scores(refiner.transform(vectors), known)[1] > scores(vectors, known)[1] - 0.01


# ---- rehearsals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("purity", [0.9, 0.7, 0.5])
@pytest.mark.parametrize("noise", [0.5, 0.9])
def test_a_stage_is_made_as_hard_as_asked(purity, noise):
    vectors, labels = clusters(seed=4, n_classes=10, noise=noise)
    items = Embeddings.from_vectors(vectors, labels=labels)
    before = rehearsal._purity(items)
    harder = rehearsal._as_hard_as(items, purity)
    assert before > purity
    assert rehearsal._purity(harder) == pytest.approx(purity, abs=0.05)
    np.testing.assert_array_equal(harder.labels, labels)
    np.testing.assert_array_equal(harder.ids, items.ids)


def test_a_stage_is_never_made_purer():
    vectors, labels = clusters(seed=5, n_classes=10)
    items = Embeddings.from_vectors(vectors, labels=labels)
    before = rehearsal._purity(items)
    assert rehearsal._as_hard_as(items, before) is items
    assert rehearsal._as_hard_as(items, 1.0) is items
    for asked in (before - 0.01, before / 2, 0.0):  # the last cannot be reached
        assert rehearsal._purity(rehearsal._as_hard_as(items, asked)) <= before


def test_purity_is_out_of_what_is_possible():
    items = Embeddings.from_vectors(
        np.repeat(np.eye(6), [2, 3, 4, 5, 6, 12], axis=0), labels=np.repeat(np.arange(6), [2, 3, 4, 5, 6, 12])
    )
    assert rehearsal._purity(items) == 1


def test_what_is_played_is_never_taught(monkeypatch, short_rehearsals):
    """Neither the maps nor the scorers of a fold have met an item of its classes."""
    vectors, labels = clusters(seed=6, n_classes=13)
    original = unit(vectors)
    played, taught_maps, taught_scorers = [], [], []
    rehearsals_of, maps_of, adapted_to = rehearsal._rehearsals, rehearsal.base_maps, rehearsal._adapted

    def rehearsals(*arguments):
        result = rehearsals_of(*arguments)
        played.extend(set(r.stage.labels.tolist()) for r in result)
        return result

    def maps(given, codes, *arguments):
        taught_maps.append({row.tobytes() for row in given})
        return maps_of(given, codes, *arguments)

    def adapted(universal, dense, sparse, *arguments):
        asked = [trial.stage.items.labels[trial.stage.asked] for trial in (*dense, *sparse)]
        taught_scorers.append(set(np.concatenate(asked).tolist()))
        return adapted_to(universal, dense, sparse, *arguments)

    monkeypatch.setattr(rehearsal, "_rehearsals", rehearsals)
    monkeypatch.setattr(rehearsal, "base_maps", maps)
    monkeypatch.setattr(rehearsal, "_adapted", adapted)
    ContextRefiner().fit(vectors, labels)
    assert sorted(label for fold in played for label in fold) == list(range(13)), "every class is played once"
    for fold in range(3):
        rows = np.isin(labels, list(played[fold]))
        assert taught_maps[fold] == {row.tobytes() for row in original[~rows]}
        assert taught_scorers[fold] == set(range(13)) - played[fold]


def test_the_order_of_the_rows_hardly_matters(short_rehearsals):
    vectors, labels = clusters(seed=7, n_classes=20)
    test, test_labels = clusters(seed=8)
    order = np.random.default_rng(0).permutation(len(labels))
    here, there = ContextRefiner().fit(vectors, labels), ContextRefiner().fit(vectors[order], labels[order])
    for name, value in here.report()["metrics"].items():
        assert there.report()["metrics"][name] == pytest.approx(value, abs=1e-6 if "raw" in name else 0.05)
    (first, one), (other_first, other) = (scores(r.transform(test), test_labels) for r in (here, there))
    assert (first, one) == pytest.approx((other_first, other), abs=0.03)


def test_classes_of_one_item_and_of_one_vector_are_no_obstacle(short_rehearsals):
    vectors, labels = clusters(seed=9, n_classes=12)
    labels[:3] = 100, 101, 102
    report = ContextRefiner().fit(vectors, labels).report()
    assert (report["protocol"]["classes"], report["protocol"]["classes_with_one_item"]) == (15, 3)
    perfect, of_one_vector = np.repeat(np.eye(12), 8, axis=0), np.repeat(np.arange(12), 8)
    refiner = ContextRefiner().fit(perfect, of_one_vector)
    assert scores(refiner.transform(perfect), of_one_vector) == (1, 1)


# ---- sparse galleries --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taught_dense(short_rehearsals):
    return ContextRefiner().fit(*clusters(seed=0, n_classes=20, per_class=40, noise=0.8))


def test_what_was_learned_from_large_classes_does_no_harm_where_classes_are_pairs(taught_dense):
    changes = []
    for seed in range(10, 13):
        vectors, labels = clusters(seed, n_classes=200, per_class=2, noise=0.8)
        changes.append(scores(taught_dense.transform(vectors), labels)[1] - scores(vectors, labels)[1])
    assert np.mean(changes) > -0.01


@pytest.mark.parametrize("seed", range(10, 13))
@pytest.mark.parametrize("noise", [0.5, 0.8, 1.2])
def test_without_labels_pairs_come_to_no_harm(seed, noise):
    vectors, labels = clusters(seed, n_classes=200, per_class=2, noise=noise)
    assert scores(ContextRefiner().fit_transform(vectors), labels)[1] > scores(vectors, labels)[1] - 0.01


# ---- without labels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "noise"), [(12, 0.7), (64, 1.6), (300, 2.4)])
def test_the_universal_scorer_helps_vectors_of_any_size(dim, noise):
    vectors, labels = clusters(seed=11, dim=dim, noise=noise)
    refiner = ContextRefiner().fit(vectors)
    refined = refiner.transform(vectors)
    assert refined.shape == vectors.shape and refiner.n_features_in_ == dim
    assert refiner.report()["protocol"]["labels"] == "none: the universal scorer"
    (raw_first, raw), (first, after) = scores(vectors, labels), scores(refined, labels)
    assert after > raw + 0.1 and first >= raw_first - 0.01
    shipped = universal_network().state_dict()
    assert all(torch.equal(value, shipped[name]) for name, value in refiner.network_.state_dict().items())


@pytest.mark.parametrize(("n", "dim"), [(30, 64), (300, 32), (300, 64), (1000, 512)])
def test_noise_is_returned_as_it_is_with_a_warning(n, dim):
    noise = np.random.default_rng(n + dim).normal(size=(n, dim))
    refiner = ContextRefiner().fit(noise)
    np.testing.assert_array_equal(refiner.transform(noise), unit(noise))
    (warning,) = refiner.report()["warnings"]
    assert warning.startswith("the vectors are only scaled to length 1: only ")
    assert refiner.report()["protocol"]["blend"] == 1


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
    np.testing.assert_allclose(untaught.transform(vectors), unit(vectors), atol=1e-6)
    gallery = clusters(seed=12)[0]
    np.testing.assert_allclose(untaught.transform(gallery, context=vectors).shape, gallery.shape)
    assert np.isfinite(untaught.transform(vectors, context=gallery)).all()


@pytest.mark.parametrize("asked", [None, 6])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_few_classes_are_left_to_the_universal_scorer_with_a_warning(n_classes, asked):
    vectors, labels = clusters(seed=13, n_classes=n_classes)
    refiner = ContextRefiner(asked).fit(vectors, labels)
    report = refiner.report()
    assert report["warnings"] == ["too few classes to rehearse with: the universal scorer is used as it is"]
    assert (report["protocol"]["scorer"], report["protocol"]["base_map"]) == ("universal", "none")
    assert refiner.n_neighbors_ == (asked or int(universal_network().n_neighbors))
    items = Embeddings.from_vectors(vectors)
    *_, (expected, _, _) = universal_network().refine(items, items, refiner.n_neighbors_, 5)
    np.testing.assert_array_equal(refiner.transform(vectors), expected)


def test_both_kinds_come_back_from_disk_as_they_were(tmp_path, case):
    refiner, vectors, _ = case
    refiner.save(tmp_path / "model")
    loaded = ContextRefiner.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(vectors), refiner.transform(vectors))
    np.testing.assert_array_equal(loaded.transform(vectors[::3], vectors), refiner.transform(vectors[::3], vectors))
    assert loaded.report() == refiner.report() and loaded.n_parameters_ == refiner.n_parameters_
    kept = ContextRefiner().fit(vectors[:5])
    kept.save(tmp_path / "nothing")
    np.testing.assert_array_equal(ContextRefiner.load(tmp_path / "nothing").transform(vectors), unit(vectors))


def test_the_shipped_scorer_is_not_changed_by_learning(short_rehearsals):
    before = {name: value.clone() for name, value in universal_network().state_dict().items()}
    ContextRefiner(n_neighbors=7).fit(*clusters(seed=14, n_classes=12))
    ContextRefiner(n_neighbors=7).fit(clusters(seed=14)[0][:10])
    after = universal_network().state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


# ---- what is refused ---------------------------------------------------------------------------------------------

OF_THE_PAPER = {
    "out_dim": 8,
    "alpha": 3.0,
    "beta": 50.0,
    "threshold": 0.4,
    "loss_form": "printed",
    "learning_rate": 1e-3,
    "batch_classes": 8,
    "batch_per_class": 3,
    "epochs": 2,
    "patience": 2,
    "validation_share": 0.1,
}


@pytest.mark.parametrize(("name", "value"), OF_THE_PAPER.items())
def test_what_only_the_paper_uses_is_refused_in_one_sentence(name, value):
    vectors, labels = clusters(seed=15, n_classes=6)
    for given in ((vectors, labels), (vectors,)):
        with pytest.raises(InputError, match=f'^{name} is {value!r} but only recipe="paper" uses it; leave it out'):
            ContextRefiner(**{name: value}).fit(*given)


def test_there_is_nothing_to_checkpoint(tmp_path):
    vectors, labels = clusters(seed=15, n_classes=6)
    for asked in ({"checkpoint": tmp_path / "checkpoint"}, {"resume": True}):
        with pytest.raises(InputError, match="the relational recipe keeps no checkpoint; leave"):
            ContextRefiner().fit(vectors, labels, **asked)
    assert list(tmp_path.iterdir()) == []
