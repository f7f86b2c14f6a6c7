"""How the relational recipe is learned: what is held out, what is chosen, and that nothing is learned from it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.refiner.samples import clusters, scores, unit

from entourage.errors import InputError
from entourage.evaluation import evaluate
from entourage.refiner import base_map, choice, evaluator, learning, rehearsal
from entourage.refiner.base_map import learn_base_maps
from entourage.refiner.choice import Scored, best_of
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.rehearsal import ValidationGallery
from entourage.refiner.scorer import RelationScorer
from entourage.refiner.settings import RefinerSettings
from entourage.refiner.universal import universal_network
from entourage.runtime.sharing import SharedWork, sharing
from entourage.values import Embeddings, label_codes

pytestmark = pytest.mark.usefixtures("one_thread")


# ---- the choice --------------------------------------------------------------------------------------------------


def tried(name: str, recall: float, precision: float, **protected: float) -> Scored:
    return Scored(name, {"recall@1": recall, "map@r": precision, **protected})


def test_the_best_map_at_r_wins_among_those_that_keep_the_first_hit():
    floors = {"recall@1": 0.80}
    bold, safe, timid = tried("bold", 0.70, 0.90), tried("safe", 0.80, 0.70), tried("timid", 0.95, 0.60)
    assert best_of([bold, safe, timid], floors) is safe
    assert best_of([bold, timid], floors) is timid
    nearly = tried("nearly", 0.7985, 0.80)  # two queries in a thousand may go
    assert best_of([bold, safe, timid, nearly], floors) is nearly
    not_quite = tried("not quite", 0.7975, 0.80)
    assert best_of([bold, safe, timid, not_quite], floors) is safe
    worse = tried("worse", 0.60, 0.95)
    assert best_of([worse, bold], floors) is bold, "where all fall, the one that falls least"


def test_what_is_protected_is_guarded_as_the_first_hit_is():
    floors = {"recall@1": 0.80, "mrr": 0.90}
    bold, safe = tried("bold", 0.85, 0.90, mrr=0.897), tried("safe", 0.85, 0.70, mrr=0.8985)
    assert best_of([bold, safe], floors) is safe
    assert best_of([bold, safe], {"recall@1": 0.80}) is bold
    first, second = tried("first", 0.70, 0.90, mrr=0.95), tried("second", 0.95, 0.60, mrr=0.85)
    assert best_of([first, second], floors) is second, "where all fall, the one whose worst falls least"


def test_where_everything_is_worse_nothing_is_done(monkeypatch, short_rehearsals):
    raw = []

    def score(gallery, names):
        if len(raw) < 3:  # the raw galleries are scored first
            raw.append(gallery)
        values = (0.8, 0.5) if any(gallery is other for other in raw) else (0.7, 0.4)
        return dict(zip(names, values, strict=True))

    monkeypatch.setattr(choice, "score", score)
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


def gallery_of(vectors: np.ndarray, labels: np.ndarray) -> ValidationGallery:
    items = Embeddings.from_vectors(vectors, ids=np.arange(len(labels)), labels=labels)
    return ValidationGallery(items, np.ones(len(labels), bool))


def test_in_sparse_galleries_items_are_moved_less_where_the_universal_network_does_harm():
    universal, settings = universal_network(), RefinerSettings()
    classes = gallery_of(*clusters(seed=3, n_classes=12))
    assert learning._fallback(settings, universal, [classes]).manner() == universal.manner(), "here it helps"
    smoothing = replace(universal, scorer=RelationScorer.of_similarity(), n_neighbors=30, sharpness=0.1, blend=0.0)
    smoothing = replace(smoothing, pull=0.1)
    pairs = gallery_of(*clusters(seed=3, n_classes=60, per_class=2, noise=0.9, dim=8))
    fallback = learning._fallback(settings, smoothing, [pairs])
    assert fallback.blend >= 0.75 and fallback.scorer is smoothing.scorer, "here it brings strangers together"


def test_labels_that_teach_nothing_leave_what_is_done_without_them(monkeypatch, short_rehearsals):
    raw, unlearned = Scored("raw", {"recall@1": 0.9, "map@r": 0.4}), {"recall@1": 0.896, "map@r": 0.5}
    universal = universal_network()
    monkeypatch.setattr(learning, "_choose_base", lambda *args: (base_map.NO_MAP, [], raw, []))
    monkeypatch.setattr(learning, "_weighings", lambda *args: [])
    monkeypatch.setattr(learning, "scored", lambda candidate, *args: replace(raw, settings=candidate))
    monkeypatch.setattr(learning, "_scored_universal", lambda *args: Scored("universal", unlearned))
    monkeypatch.setattr(learning, "_network", lambda *args: "as they are")
    found = {
        loss: learning._learn(RefinerSettings(protect=protect), universal, [], None)[0]
        for loss, protect in (("allowed", ()), ("protected", ("recall@1",)))
    }
    assert found["allowed"] is universal and found["protected"] == "as they are"
    unlearned["recall@1"] = 0.894
    assert learning._learn(RefinerSettings(), universal, [], None)[0] == "as they are"


def favour(monkeypatch, **wanted) -> None:
    """Give ways to weigh that have these settings, and are harmless, nearly the highest scores there are."""
    original = evaluator.Evaluator._scores

    def favoured(self, way):
        found = original(self, way)
        scores = {metric: 0.999 if way._asdict().items() >= wanted.items() else 0.5 for metric in found.scores}
        self.harmless[:] = [replace(each, scores=scores) if each is found else each for each in self.harmless]
        return found

    monkeypatch.setattr(evaluator.Evaluator, "_scores", favoured)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_labels_choose_the_number_of_steps(monkeypatch, short_rehearsals, n_steps):
    favour(monkeypatch, n_steps=n_steps)
    vectors, labels = clusters(seed=1, n_classes=12)
    refiner = ContextRefiner().fit(vectors, labels)
    assert refiner.n_steps_ == refiner.report()["protocol"]["steps"] == n_steps
    assert len(refiner.trajectory(vectors, context=vectors)) == n_steps + 1
    asked = ContextRefiner(n_steps=4).fit(vectors, labels)
    assert asked.n_steps_ == asked.report()["protocol"]["steps"] == 4, "unless they are asked for"


@pytest.mark.parametrize("n_steps", [1, 3, 8])
def test_a_rehearsal_refines_by_as_many_steps_as_it_is_asked_for(n_steps):
    gallery = gallery_of(*clusters(seed=3, n_classes=12))
    graph, network = rehearsal.RehearsalGraph.build(gallery, 12), universal_network()
    refined = graph.refined(network.scorer, network.sharpness)
    refined(0.1, 0.0, 5)  # others before make no difference
    *_, (wanted, _, _) = network.refine(gallery.items, gallery.items, 12, n_steps, last_only=True)
    np.testing.assert_allclose(refined(network.blend, network.pull, n_steps).items.vectors, wanted, atol=1e-6)


@pytest.mark.parametrize("scorer", ["universal", "adapted", "similarity"])
def test_each_scorer_may_win(monkeypatch, short_rehearsals, scorer):
    favour(monkeypatch, scorer=scorer)
    vectors, labels = clusters(seed=1, n_classes=12)
    refiner = ContextRefiner().fit(vectors, labels)
    assert refiner.report()["protocol"]["scorer"] == scorer
    assert (refiner.network_.scorer is universal_network().scorer) == (scorer == "universal")
    refiner.transform(vectors, context=vectors)


def test_no_scorer_is_adapted_to_a_few_classes(monkeypatch, short_rehearsals):
    favour(monkeypatch, scorer="adapted")
    vectors, labels = clusters(seed=1, n_classes=11)
    assert ContextRefiner().fit(vectors, labels).report()["protocol"]["scorer"] != "adapted"


def test_of_huge_classes_some_items_are_rehearsed_with_and_no_class_is_left_out(monkeypatch):
    monkeypatch.setattr(rehearsal, "_MOST_ITEMS", 200)
    vectors, labels = clusters(seed=1, n_classes=10, per_class=50)
    items = Embeddings.from_vectors(vectors, labels=labels)
    rehearsals = rehearsal.make_rehearsals(items, label_codes(items.labels), seed=0)
    assert [np.unique(each.held_out.labels, return_counts=True)[1].tolist() for each in rehearsals] == [[20] * 5] * 2


# ---- what is protected -------------------------------------------------------------------------------------------


def test_a_rehearsal_measures_what_is_asked_for_as_evaluate_does():
    vectors, labels = clusters(seed=3, n_classes=10)
    items = Embeddings.from_vectors(vectors, ids=np.arange(len(labels)), labels=labels)
    gallery = rehearsal.ValidationGallery(items, np.ones(len(labels), bool))
    names = ["recall@1", "recall@10", "precision@5", "ndcg@10", "mrr", "mrr@3", "map@r", "r-precision", "map"]
    wanted = evaluate(vectors, labels, at=(3, 5, 10), nmi=False).metrics
    measured = rehearsal.score(gallery, names)
    assert list(measured) == names
    for name in set(names) - {"map"}:
        assert measured[name] == pytest.approx(wanted[name]), name
        assert rehearsal.score(gallery, [name]) == {name: measured[name]}, "alone, to no more than its depth"


def score_by_blend(monkeypatch, lost_below: float) -> None:
    """Make MAP@R fall and recall@3 rise with the blend: recall@3 keeps to that of the raw from a blend on."""
    blends = {}
    refined_of = rehearsal.RehearsalGraph.refined

    def refined(self, scorer, sharpness):
        def at(blend, pull, n_steps):
            gallery = refined_of(self, scorer, sharpness)(blend, pull, n_steps)
            blends[id(gallery)] = blend, gallery  # kept, so that its id stays its own
            return gallery

        return at

    def score(gallery, names):
        blend, _ = blends.get(id(gallery), (1.0, None))
        values = {"recall@1": 0.8, "map@r": 0.9 - 0.4 * blend, "recall@3": 0.95 if blend >= lost_below else 0.94}
        return {name: values[name] for name in names}

    monkeypatch.setattr(learning, "BLENDS", (0.1, 0.2, 0.35))
    monkeypatch.setattr(rehearsal.RehearsalGraph, "refined", refined)
    monkeypatch.setattr(choice, "score", score)


@pytest.mark.parametrize("recall", ["recall@3", ["recall@3"], ("recall@3", "recall@1", "recall@3")])
def test_no_setting_is_chosen_that_lowers_what_is_protected(monkeypatch, short_rehearsals, recall):
    score_by_blend(monkeypatch, lost_below=0.3)
    vectors, labels = clusters(seed=0, n_classes=12)
    assert ContextRefiner().fit(vectors, labels).network_.blend == 0.1
    refiner = ContextRefiner().fit(vectors, labels, protect=recall)
    assert refiner.network_.blend == 0.35
    report = refiner.report()
    rule = "at most 0.2 points below the raw vectors in the rehearsals"
    assert report["protocol"]["protected"].startswith("recall@3") and report["protocol"]["protected"].endswith(rule)
    metrics = {name.removeprefix("rehearsal_"): value for name, value in report["metrics"].items()}
    recalls = [metrics[f"recall@3_{state}"] for state in ("raw", "refined", "unprotected")]
    assert recalls == pytest.approx([0.95, 0.95, 0.94])
    assert metrics["map@r_refined"] == pytest.approx(0.76)
    assert metrics["map@r_unprotected"] == pytest.approx(0.86), "what it would have had otherwise"
    assert report["warnings"] == []


def test_larger_blends_are_tried_before_it_is_given_up(monkeypatch, short_rehearsals):
    score_by_blend(monkeypatch, lost_below=0.6)
    vectors, labels = clusters(seed=0, n_classes=12)
    assert ContextRefiner().fit(vectors, labels, protect="recall@3").network_.blend == 0.7


def test_where_all_settings_lower_what_is_protected_nothing_is_done(monkeypatch, short_rehearsals, tmp_path):
    score_by_blend(monkeypatch, lost_below=1.0)
    vectors, labels = clusters(seed=0, n_classes=12)
    with pytest.warns(match="to protect it"):
        refiner = ContextRefiner().fit(vectors, labels, protect="recall@3")
    np.testing.assert_array_equal(refiner.transform(vectors), unit(vectors))
    assert refiner.report()["warnings"] == [
        "whatever raised MAP@R in the rehearsals lowered recall@3: the vectors are returned as they are, to protect it"
    ]
    refiner.save(tmp_path / "model")
    assert ContextRefiner.load(tmp_path / "model").report() == refiner.report()


def test_nothing_is_reported_as_protected_unless_it_was_asked_for(short_rehearsals):
    vectors, labels = clusters(seed=0, n_classes=12)
    report = ContextRefiner().fit(vectors, labels).report()
    assert "protected" not in report["protocol"]
    rehearsed = {f"rehearsal_{m}_{v}" for m in ("recall@1", "map@r", "votes") for v in ("raw", "refined")}
    assert set(report["metrics"]) == rehearsed | {"rehearsal_votes_error"}


@pytest.mark.parametrize(
    ("protect", "message"),
    [
        ("recall", "protect is 'recall'; wanted recall@k, precision@k, ndcg@k, mrr@k or map@k"),
        (["recall@10", "nmi"], "protect is 'nmi'; wanted"),
        (10, "protect is 10; wanted"),
        ([["recall@10"]], r"protect is \['recall@10'\]; wanted recall@k"),
        (f"recall@{'9' * 5000}", "protect is recall@k with a k of 5,000 digits; wanted a k up to the number of items"),
        ("recall@5000", r"protect is recall@5000, but a query has only \d+ items to retrieve in the rehearsals"),
    ],
)
def test_what_cannot_be_protected_is_refused(short_rehearsals, protect, message):
    with pytest.raises(InputError, match=message):
        ContextRefiner().fit(*clusters(seed=0, n_classes=12), protect=protect)


def test_without_classes_to_rehearse_with_nothing_can_be_protected():
    vectors, labels = clusters(seed=0, n_classes=12)
    with pytest.raises(InputError, match="protect is recall@10, but there are no labels to rehearse with; give y"):
        ContextRefiner().fit(vectors, protect="recall@10")
    few = labels < 3
    with pytest.raises(InputError, match="but 3 classes with two items or more are too few to rehearse with; wanted 4"):
        ContextRefiner().fit_transform(vectors[few], labels[few], protect="recall@10")


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
    rehearsals_of, maps_of, adapted_to = learning.make_rehearsals, learning.learn_base_maps, evaluator.adapted_scorer

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
    monkeypatch.setattr(evaluator, "adapted_scorer", adapted)
    ContextRefiner().fit(vectors, labels)
    assert sorted(label for fold in held_out for label in fold) == list(range(13)), "every class is held out once"
    for fold in range(2):
        rows = np.isin(labels, list(held_out[fold]))
        assert taught_maps[fold] == {row.tobytes() for row in original[~rows]}
        assert taught_scorers[fold] == set(range(13)) - held_out[fold]


def test_the_order_of_the_rows_hardly_matters(short_rehearsals):
    vectors, labels = clusters(seed=7, n_classes=20)
    test, test_labels = clusters(seed=8)
    order = np.random.default_rng(0).permutation(len(labels))
    here, there = ContextRefiner().fit(vectors, labels), ContextRefiner().fit(vectors[order], labels[order])
    for name, value in here.report()["metrics"].items():
        drawn = 0.15 if "votes" in name else 0.05  # other items are held out of each class
        assert there.report()["metrics"][name] == pytest.approx(value, abs=1e-6 if name.endswith("1_raw") else drawn)
    (first, one), (other_first, other) = (scores(r.transform(test, test), test_labels) for r in (here, there))
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


def test_base_maps_that_are_shared_are_those_learned_alone(monkeypatch):
    """By content: the rivals and the refiner hold copies of the same training items."""
    vectors, labels = clusters(seed=3)
    vectors, codes = Embeddings.from_vectors(vectors).vectors, label_codes(labels)
    wanted = [(0.5, 0), (0.5, 5), (1.0, 3)]
    alone = learn_base_maps(vectors, codes, wanted, 0)
    trained = []
    original = base_map.head_maps
    monkeypatch.setattr(base_map, "head_maps", lambda *a, **options: trained.append(1) or original(*a, **options))
    with sharing(SharedWork()):
        learn_base_maps(vectors, codes, [(0.5, 5), (0.5, 0), (0.5, 8)], 0)
        together = learn_base_maps(vectors.copy(), codes.copy(), wanted, 0)
        learn_base_maps(vectors, codes, wanted, 1)
    assert len(trained) == 1 + 1 + 2  # the head of (1, 3) alone was new; another seed is another training
    for key in wanted:
        np.testing.assert_array_equal(together[key], alone[key])
