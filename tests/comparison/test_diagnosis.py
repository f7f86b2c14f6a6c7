"""The doctor: every number against a direct computation, and verdicts against what refinement then does."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from entourage import ContextRefiner, Embeddings, evaluate
from entourage.comparison.diagnosis import examine
from entourage.comparison.findings import Diagnosis, Finding
from entourage.comparison.verdict import verdict
from entourage.evaluation import mean_average_precision_at_r
from entourage.refiner.universal import forecast

pytestmark = pytest.mark.usefixtures("one_thread")


def clusters(classes: int, per_class: int, noise: float, dim: int = 32, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    return rng.normal(size=(classes, dim))[labels] + noise * rng.normal(size=(len(labels), dim)), labels


def outcome(diagnosis: Diagnosis) -> str:
    return diagnosis.verdict.partition(":")[0].removeprefix("refinement ")


def values(diagnosis: Diagnosis) -> dict:
    return {found.name: found.value for found in diagnosis.findings}


@pytest.fixture(scope="module")
def items() -> Embeddings:
    """Classes of uneven size with an exact copy, a near copy of another label, and an item alone in its class."""
    vectors, labels = clusters(12, 9, 1.0, seed=3)
    vectors, labels = vectors[:-4], labels[:-4].copy()
    vectors[10], vectors[50] = vectors[9], vectors[3] + 1e-4
    labels[70] = 99
    return Embeddings.from_vectors(vectors, [f"item {row:03}" for row in range(len(labels))], labels)


@pytest.fixture(scope="module")
def seen(items) -> dict:
    return values(examine(items))


@pytest.fixture(scope="module")
def distinct(items):
    """Similarities and labels of the distinct items, and their neighbours nearest first, by hand."""
    kept = np.delete(np.arange(len(items)), [10, 50])
    similarities = items.vectors[kept] @ items.vectors[kept].T
    np.fill_diagonal(similarities, -np.inf)
    return items.labels[kept], np.argsort(-similarities, axis=1)


# ---- each number against a direct computation ----------------------------------------------------------------------


def test_copies(items, seen):
    assert seen["distinct_items"] == len(items) - 2
    assert (seen["exact_copies"], seen["near_copies"]) == (2, 4)
    assert seen["copies_across_labels"] == 1
    assert seen["copies_to_check"] == [["item 003", "item 050"]]


def test_pairs_of_copies_are_counted_one_by_one():
    vectors, _ = clusters(30, 1, 1.0)
    crowd = np.repeat(np.arange(30), [4, 3, *[1] * 28])
    labels = np.array([0, 0, 1, 2, 5, 5, 6, *range(10, 38)])
    found = values(examine(Embeddings.from_vectors(vectors[crowd], labels=labels)))
    pairs = [(i, j) for i in range(35) for j in range(i) if crowd[i] == crowd[j] and labels[i] != labels[j]]
    assert found["copies_across_labels"] == len(pairs) == 7
    assert found["copies_to_check"] == [[0, 2], [2, 3], [4, 6]]
    assert (found["exact_copies"], found["near_copies"], found["distinct_items"]) == (7, 7, 30)


def test_the_estimate_is_that_of_the_refiner(items, seen):
    assert seen["estimated_purity"] == pytest.approx(forecast(items).purity, abs=1e-7)


@pytest.mark.parametrize("size", [7, 9, 11])
@pytest.mark.parametrize("noise", [0.3, 0.6])
def test_the_neighbours_of_the_same_class_are_how_many_others_a_compact_class_has(size, noise):
    found = values(examine(Embeddings.from_vectors(clusters(40, size, noise)[0])))
    assert found["same_class_neighbors"] == pytest.approx(size - 1, abs=1.5)


def test_the_structure_is_one_for_random_vectors_and_small_for_groups():
    rng = np.random.default_rng(0)
    unstructured = {
        "normal": rng.normal(size=(1500, 32)),
        "uneven": rng.normal(size=(1500, 32)) * np.linspace(3, 0.1, 32),
        "heavy tails": rng.standard_t(3, size=(1500, 32)),
        "a cone": rng.normal(size=(1500, 32)) + 3,
    }
    for name, vectors in unstructured.items():
        assert 0.9 < values(examine(Embeddings.from_vectors(vectors)))["structure"] < 1.1, name
    grouped = [values(examine(Embeddings.from_vectors(clusters(10, 150, noise)[0])))["structure"] for noise in (0.3, 1)]
    assert grouped[0] < grouped[1] < 0.85


def test_hubness(seen, distinct):
    _, ranking = distinct
    listed = np.array([(ranking[:, :10] == item).any(axis=1).sum() for item in range(len(ranking))])
    skewness = np.mean(((listed - listed.mean()) / listed.std()) ** 3)
    assert seen["hubness"] == pytest.approx(skewness)
    assert seen["never_listed"] == (listed == 0).mean()
    assert seen["most_listed"] == listed.max()


def test_a_hub_is_pointed_out():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 300))
    vectors[:4] = vectors.mean(axis=0) + 0.01 * vectors[:4]  # in the middle of everything
    note = {found.name: found.note for found in examine(Embeddings.from_vectors(vectors)).findings}["hubness"]
    assert "far too many" in note


def test_mean_cosine(items, seen):
    similarities = items.vectors.astype(np.float64) @ items.vectors.T.astype(np.float64)
    assert seen["mean_cosine"] == pytest.approx(similarities[~np.eye(len(items), dtype=bool)].mean(), abs=1e-6)


def test_a_narrow_cone_is_pointed_out():
    vectors, _ = clusters(10, 6, 1.0)
    notes = {found.name: found.note for found in examine(Embeddings.from_vectors(vectors + 5)).findings}
    assert "narrow cone" in notes["mean_cosine"]


def test_purity(seen, distinct):
    labels, ranking = distinct
    nearest, everyone = labels[ranking[:, :8]], labels[ranking[:, :-1]]
    same = (everyone == labels[:, None]).sum(axis=1)
    true, chance = (nearest == labels[:, None]).mean(), same.mean() / (len(labels) - 1)
    possible = np.mean([min(count, 8) / 8 for count in same])
    assert seen["true_purity"] == pytest.approx(true)
    assert seen["chance_purity"] == pytest.approx(chance)
    assert seen["possible_purity"] == pytest.approx(possible)
    assert seen["above_chance"] == pytest.approx((true - chance) / (possible - chance))
    assert seen["room"] == pytest.approx(1 - true / possible)


def test_scores_are_those_of_evaluate(items, seen):
    scores = evaluate(items.vectors, items.labels, nmi=False).metrics
    assert seen["recall@1"] == pytest.approx(scores["recall@1"])
    assert seen["map@r"] == pytest.approx(scores["map@r"])
    assert seen["possible_map@r"] == pytest.approx(1 - 1 / len(items))


def test_refined_scores_are_those_of_what_refinement_without_labels_returns(items, seen):
    refined = ContextRefiner().fit_transform(Embeddings(items.vectors, items.ids))
    scores = evaluate(refined.vectors, items.labels, nmi=False).metrics
    assert seen["refined_recall@1"] == pytest.approx(scores["recall@1"])
    assert seen["refined_recall@10"] == pytest.approx(scores["recall@10"])
    assert seen["refined_map@r"] == pytest.approx(scores["map@r"])
    assert seen["refined_map@r"] > seen["map@r"]


def test_class_sizes(items, seen):
    sizes = np.array([(items.labels == label).sum() for label in set(items.labels.tolist())])
    assert (seen["smallest_class"], seen["largest_class"]) == (1, 9)
    assert seen["median_class"] == np.median(sizes)
    assert (seen["classes_with_one_item"], seen["usable_classes"]) == (1, 12)
    assert seen["small_classes"] == (sizes <= 12).sum() == 13


def test_confusable_classes(seen, distinct):
    labels, ranking = distinct
    counts = {}
    for label, row in zip(labels, ranking[:, :8], strict=True):
        for other in labels[row]:
            if other != label:
                pair = (min(label, other), max(label, other))
                counts[pair] = counts.get(pair, 0) + 1
    most = sorted(counts, key=lambda pair: (-counts[pair], pair))[:5]
    assert [(*entry["classes"], entry["wrong_neighbors"]) for entry in seen["confusable_classes"]] == [
        (*pair, counts[pair]) for pair in most
    ]


# ---- small and odd sets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 19])
def test_a_handful_of_items(count, labelled):
    vectors = np.random.default_rng(0).normal(size=(count, 4))
    diagnosis = examine(Embeddings.from_vectors(vectors, labels=np.arange(count) // 2 if labelled else None))
    assert diagnosis.verdict.startswith(f"refinement will not help: {count} distinct vectors")
    json.dumps(diagnosis.document(), allow_nan=False)
    assert len(diagnosis.table().splitlines()) == len(diagnosis.findings)


@pytest.mark.parametrize("dim", [1, 8, 384])
def test_all_items_are_the_same(dim):
    vector = np.random.default_rng(0).normal(size=dim)
    diagnosis = examine(Embeddings.from_vectors(np.tile(vector, (50, 1)), labels=np.arange(50) % 2))
    assert diagnosis.verdict.startswith("refinement will not help: 1 distinct vector")
    found = values(diagnosis)
    assert (found["exact_copies"], found["copies_across_labels"], found["hubness"]) == (50, 625, None)
    assert "not measured" in diagnosis.table()
    json.dumps(diagnosis.document(), allow_nan=False)


def test_one_class_tells_nothing():
    diagnosis = examine(Embeddings.from_vectors(clusters(10, 6, 1.0)[0], labels=np.zeros(60, int)))
    assert outcome(diagnosis) == "cannot be judged"


def test_the_order_of_items_does_not_matter(items, seen):
    order = np.random.default_rng(0).permutation(len(items))
    again = values(examine(items.take(order)))
    for name, value in seen.items():
        assert again[name] == (pytest.approx(value, abs=1e-6) if isinstance(value, float) else value)


# ---- verdicts against what refinement does -------------------------------------------------------------------------

DIGITS = load_digits(return_X_y=True)
RANDOM = np.random.default_rng(0).normal(size=(300, 32))
# name: (vectors and labels, verdict without labels, verdict with labels)
SETS = {
    "no noise": (clusters(20, 10, 0.3), "will do little", "will do little"),
    "some noise": (clusters(20, 10, 1.0), "should help", "should help"),
    "much noise": (clusters(20, 10, 1.5), "may help", "should help"),
    "too much noise": (clusters(20, 10, 2.0), "will not help", "may help"),
    "large round classes, far apart": (clusters(10, 500, 0.4, dim=64), "cannot be judged", "will do little"),
    "large round classes": (clusters(10, 500, 1.2, dim=64), "cannot be judged", "may help"),
    "classes of two": (clusters(150, 2, 0.6), "may help", "will do little"),
    "hardly a class left": (clusters(20, 10, 3.0), "will not help", "will not help"),
    "small classes": (clusters(20, 4, 1.0), "may help", "should help"),
    "small classes, noise": (clusters(20, 4, 1.5), "may help", "should help"),
    "classes of three": (clusters(100, 3, 0.7), "should help", "should help"),
    "classes of twenty": (clusters(50, 20, 1.0), "should help", "should help"),
    "few large classes": (clusters(5, 100, 1.5), "should help", "should help"),
    "few large classes, noise": (clusters(5, 100, 2.5), "may help", "should help"),
    "few dimensions": (clusters(24, 20, 0.6, dim=8), "may help", "should help"),
    "pure noise": ((RANDOM, np.repeat(np.arange(10), 30)), "will not help", "will not help"),
    "every item alone": ((RANDOM, np.arange(300)), "will not help", "will not help"),
    "a handful": (clusters(3, 5, 0.5, dim=8), "will not help", "will not help"),
    "digits": (DIGITS, "should help", "should help"),
}


def gain(vectors, labels) -> tuple[float, bool]:
    """What refining without labels does to MAP@R, and whether it returns the vectors as they are."""
    raw = Embeddings.from_vectors(vectors).vectors
    refined = ContextRefiner().fit_transform(raw)
    before, after = (mean_average_precision_at_r(Embeddings.from_vectors(e, labels=labels)) for e in (raw, refined))
    return after - before, np.array_equal(raw, refined)


@pytest.mark.parametrize("name", SETS)
def test_verdicts_come_true(name):
    (vectors, labels), without, with_labels = SETS[name]
    assert outcome(examine(Embeddings.from_vectors(vectors))) == without
    assert outcome(examine(Embeddings.from_vectors(vectors, labels=labels))) == with_labels
    change, unchanged = gain(vectors, labels)
    assert unchanged == (without in ("will not help", "cannot be judged"))
    assert change > {"should help": 0.01}.get(with_labels, -0.05 if with_labels == "may help" else -0.002)
    assert without != "should help" or change > -0.002
    assert "will do little" not in (without, with_labels) or change < 0.03


@pytest.mark.parametrize("dim", [24, 32, 64, 128])
def test_random_vectors_are_never_said_to_gain(dim):
    """However many there are: with their number grows what the scorer takes for structure."""
    for count in (300, 2000):
        vectors = np.random.default_rng(0).normal(size=(count, dim))
        assert outcome(examine(Embeddings.from_vectors(vectors))) in ("will not help", "may help")


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("dim", [2, 5, 32])
def test_labels_that_do_not_follow_the_vectors_are_seen(classes, dim):
    """Neighbourhoods may look fine, and in few dimensions always do: only labels can tell."""
    vectors, _ = clusters(20, 20, 0.8, dim=dim)
    labels = np.random.default_rng(1).integers(classes, size=400)
    assert outcome(examine(Embeddings.from_vectors(vectors, labels=labels))) == "will not help"
    assert abs(gain(vectors, labels)[0]) < 0.005


def test_the_verdict_names_the_reason_and_what_to_do():
    fine = {"distinct_items": 500, "estimated_purity": 0.7, "structure": 0.9}
    labelled = {
        **fine,
        "chance_purity": 0.1,
        "possible_purity": 1.0,
        "above_chance": 0.6,
        "usable_classes": 20,
        "possible_map@r": 0.9,
        "map@r": 0.5,
        "recall@1": 0.8,
        "recall@10": 0.9,
        "refined_recall@10": 0.9,
        "refined_map@r": 0.6,
        "refined_recall@1": 0.8,
    }
    assert verdict(fine, 64) == (
        "refinement should help: about 70 % of the nearest neighbours seem to belong together. "
        "Next: entourage refine, or entourage fit if there are labels."
    )
    assert "even random vectors" in verdict(fine, 8)
    assert "may help" in (said := verdict(fine | {"structure": 1.01}, 64)) and "no nearer than in random" in said
    assert "will not help: only 10.0 %" in verdict(fine | {"estimated_purity": 0.1}, 64)
    assert "only 16.9 %" in verdict(fine | {"estimated_purity": 0.1699}, 64)  # and not 17 %, where 17 are enough
    assert "as in large round classes" in verdict(fine | {"estimated_purity": 0.1, "structure": 0.5}, 64)
    assert "already pure" in verdict(fine | {"estimated_purity": 0.99}, 64)
    assert verdict(labelled, 64) == (
        "refinement should help: without training, MAP@R rises from 50.0 to 60.0 % and R@1 stays at 80.0 %. "
        "Next: entourage fit."
    )
    assert verdict(labelled | {"usable_classes": 3}, 64).endswith("entourage refine, as there are few classes.")
    assert "R@1 falls from 80.0 to 78.0 %" in verdict(labelled | {"refined_recall@1": 0.78}, 64)
    assert "may help" in verdict(labelled | {"refined_recall@1": 0.78}, 64)
    assert "; R@10 falls from 90.0 to 85.0 %" in verdict(labelled | {"refined_recall@10": 0.85}, 64)
    assert "0.5 points below" in verdict(labelled | {"map@r": 0.895}, 64)
    assert "collect more items per class" in verdict(labelled | {"possible_purity": 0.0}, 64)
    nothing_gained = labelled | {"refined_map@r": 0.5}
    assert "what labels teach may" in verdict(nothing_gained, 64)
    assert "check the labels" in verdict(nothing_gained | {"above_chance": 0.1}, 64)
    assert "collect 4 classes" in verdict(nothing_gained | {"usable_classes": 3}, 64)


@pytest.mark.parametrize("estimate", [0.01, 0.1, 0.5, 0.99])
def test_with_labels_the_verdict_follows_the_labels_whatever_is_estimated(estimate):
    measured = {
        "chance_purity": 0.1,
        "possible_purity": 1.0,
        "above_chance": 0.6,
        "usable_classes": 20,
        "possible_map@r": 1.0,
        "map@r": 0.5,
        "recall@1": 0.8,
        "recall@10": 0.9,
        "refined_recall@10": 0.9,
        "refined_map@r": 0.6,
        "refined_recall@1": 0.81,
    }
    assert "should help" in verdict(measured | {"distinct_items": 500, "estimated_purity": estimate}, 64)


def test_findings_as_text():
    assert [str(Finding("x", value)) for value in (None, [1, 2], 0.5, 12345)] == [
        "not measured",
        "2",
        "0.500",
        "12,345",
    ]
    assert str(Finding("map@r", 0.625)) == "62.5 %"
