"""How the relational recipe is learned: what is held out, what is chosen, and that nothing is learned from it."""

import numpy as np
import pytest
from tests.refiner.samples import clusters, scores, unit

from entourage.refiner import learning, rehearsal
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.learning import Scored, best_of
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


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

    def score(gallery):
        if len(raw) < 3:  # the raw galleries are scored first
            raw.append(gallery)
        return (0.8, 0.5) if any(gallery is other for other in raw) else (0.7, 0.4)

    monkeypatch.setattr(learning, "score", score)
    vectors, labels = clusters(seed=0, n_classes=12)
    refiner = ContextRefiner().fit(vectors, labels)
    assert refiner.network_.base_map is None and refiner.network_.blend == 1
    np.testing.assert_array_equal(refiner.transform(vectors), unit(vectors))
    assert refiner.report()["warnings"] == [
        "in the rehearsals nothing was better than the raw vectors: they are returned as they are"
    ]
    assert refiner.report()["protocol"]["base_map"] == "none"


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_mean_nothing_do_no_harm(short_rehearsals, seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(15), 12)
    refiner = ContextRefiner(random_state=seed).fit(rng.normal(size=(180, 32)), labels)
    noise = rng.normal(size=(180, 32))
    raw, refined = scores(noise, labels)[1], scores(refiner.transform(noise), labels)[1]
    assert refiner.report()["warnings"] or refined > raw - 0.01
    vectors, known = clusters(seed=seed + 10)
    assert scores(refiner.transform(vectors), known)[1] > scores(vectors, known)[1] - 0.01


# ---- rehearsals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("purity", [0.9, 0.7, 0.5])
@pytest.mark.parametrize("noise", [0.5, 0.9])
def test_a_held_out_fold_is_made_as_hard_as_asked(purity, noise):
    vectors, labels = clusters(seed=4, n_classes=10, noise=noise)
    items = Embeddings.from_vectors(vectors, labels=labels)
    before = rehearsal._purity(items)
    harder = rehearsal._as_hard_as(items, purity)
    assert before > purity
    assert rehearsal._purity(harder) == pytest.approx(purity, abs=0.05)
    np.testing.assert_array_equal(harder.labels, labels)
    np.testing.assert_array_equal(harder.ids, items.ids)


def test_a_held_out_fold_is_never_made_purer():
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


def test_what_is_held_out_is_never_taught(monkeypatch, short_rehearsals):
    """Neither the maps nor the scorers of a fold have met an item of its classes."""
    vectors, labels = clusters(seed=6, n_classes=13)
    original = unit(vectors)
    held_out, taught_maps, taught_scorers = [], [], []
    rehearsals_of, maps_of, adapted_to = learning.make_rehearsals, learning.learn_base_maps, learning._adapted

    def rehearsals(*arguments):
        result = rehearsals_of(*arguments)
        held_out.extend(set(r.held_out.labels.tolist()) for r in result)
        return result

    def maps(given, codes, *arguments):
        taught_maps.append({row.tobytes() for row in given})
        return maps_of(given, codes, *arguments)

    def adapted(universal, dense, sparse, *arguments):
        queries = [graph.gallery.items.labels[graph.gallery.is_query] for graph in (*dense, *sparse)]
        taught_scorers.append(set(np.concatenate(queries).tolist()))
        return adapted_to(universal, dense, sparse, *arguments)

    monkeypatch.setattr(learning, "make_rehearsals", rehearsals)
    monkeypatch.setattr(learning, "learn_base_maps", maps)
    monkeypatch.setattr(learning, "_adapted", adapted)
    ContextRefiner().fit(vectors, labels)
    assert sorted(label for fold in held_out for label in fold) == list(range(13)), "every class is held out once"
    for fold in range(3):
        rows = np.isin(labels, list(held_out[fold]))
        assert taught_maps[fold] == {row.tobytes() for row in original[~rows]}
        assert taught_scorers[fold] == set(range(13)) - held_out[fold]


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


@pytest.mark.parametrize("distinct", [1, 2])
def test_copies_with_labels_are_no_obstacle(short_rehearsals, distinct):
    vectors = np.random.default_rng(0).normal(size=(distinct, 8))[np.arange(24) % distinct]
    refiner = ContextRefiner().fit(vectors, np.arange(24) % 6)
    np.testing.assert_allclose(refiner.transform(vectors), unit(vectors), atol=1e-6)
