"""Scores of whole sets: what is ranked, what is reported, and what must not matter."""

import json

import numpy as np
import pytest

from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import evaluate, evaluate_embeddings, mean_average_precision_at_r, names, protocol
from entourage.neighbors import ranks
from entourage.values import Embeddings

NAMES = [
    *(f"recall@{k}" for k in (1, 2, 4, 8, 10, 100)),
    *("ndcg@10", "mrr", "r-precision", "map@r", "map@1000"),
]


def angles(*degrees) -> np.ndarray:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def clusters(count=120, n_classes=12, seed=0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=count)
    return rng.normal(size=(n_classes, 8))[labels] + rng.normal(size=(count, 8)), labels


# ---- what is measured --------------------------------------------------------------------------------------------


def test_five_points_on_a_circle_by_hand():
    """Angles 0, 10, 25, 60, 100 degrees with labels a, b, a, b, a: every ranking can be read off.

    0   (a, R=2): 10 b, 25 a, 60 b, 100 a -> first hit at 2; within R: [0, 1]; all hits at 2, 4
    10  (b, R=1): 0 a, 25 a, 60 b         -> first hit at 3; within R: [0];    all hits at 3
    25  (a, R=2): 10 b, 0 a, 60 b, 100 a  -> first hit at 2; within R: [0, 1]; all hits at 2, 4
    60  (b, R=1): 25 a, 100 a, 10 b       -> first hit at 3; within R: [0];    all hits at 3
    100 (a, R=2): 60 b, 25 a, 10 b, 0 a   -> first hit at 2; within R: [0, 1]; all hits at 2, 4
    """
    scores = evaluate(angles(0, 10, 25, 60, 100), list("ababa"), nmi=False)
    assert scores.metrics["recall@1"] == 0
    assert scores.metrics["recall@2"] == 3 / 5
    assert scores.metrics["recall@4"] == 1
    assert scores.metrics["recall@100"] == 1
    assert scores.metrics["r-precision"] == pytest.approx(3 * (1 / 2) / 5)
    assert scores.metrics["map@r"] == pytest.approx(3 * (1 / 2) / 2 / 5)
    assert scores.metrics["map@1000"] == pytest.approx((3 * (1 / 2 + 2 / 4) / 2 + 2 * (1 / 3)) / 5)
    assert scores.recall_at_1.tolist() == [0] * 5
    np.testing.assert_allclose(scores.average_precision, [1 / 4, 0, 1 / 4, 0, 1 / 4])


def test_queries_are_ranked_against_a_gallery_of_their_own():
    """Queries a at 0 and b at 90, gallery b at 5, a at 20, b at 81, c at 100 degrees.

    0  (a, R=1): 5 b, 20 a, 81 b, 100 c -> hit at 2; within R: [0]
    90 (b, R=2): 81 b, 100 c, 20 a, 5 b -> hits at 1 and 4; within R: [1, 0]
    """
    scores = evaluate(angles(0, 90), ["a", "b"], gallery=angles(5, 20, 81, 100), gallery_labels=list("babc"), nmi=False)
    assert scores.metrics["recall@1"] == 1 / 2
    assert scores.metrics["recall@2"] == 1
    assert scores.metrics["map@r"] == pytest.approx((0 + 1 / 2) / 2)
    assert scores.metrics["map@1000"] == pytest.approx((1 / 2 + (1 + 2 / 4) / 2) / 2)
    assert scores.protocol["gallery"] == 4
    assert scores.protocol["gallery_is"] == "a separate set"
    assert scores.protocol["self_matches_removed_by_id"] == 0


def test_an_item_shared_by_queries_and_gallery_is_not_its_own_match():
    gallery = Embeddings.from_vectors(angles(0, 10, 50), ids=["p", "q", "r"], labels=["a", "b", "a"])
    queries = gallery.take([0])
    scores = evaluate_embeddings(queries, gallery, nmi=False)
    assert scores.metrics["recall@1"] == 0  # itself would be a hit
    assert scores.metrics["recall@2"] == 1
    assert scores.protocol["self_matches_removed_by_id"] == 1


def test_queries_without_a_match_are_zeros_or_left_out():
    vectors, labels = angles(0, 1, 90), ["a", "a", "b"]
    zero = evaluate(vectors, labels, nmi=False)
    drop = evaluate(vectors, labels, no_match="drop", nmi=False)
    assert zero.metrics["recall@1"] == 2 / 3 and drop.metrics["recall@1"] == 1
    assert zero.protocol["without_match"] == "counted as 0" and drop.protocol["without_match"] == "left out"
    assert zero.protocol["queries_without_match"] == drop.protocol["queries_without_match"] == 1
    assert zero.recall_at_1.tolist() == drop.recall_at_1.tolist() == [1, 1, 0]


def test_nmi_of_well_separated_classes_is_one_and_of_shuffled_labels_is_low():
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(5), 20)
    vectors = np.eye(5)[labels] + 0.01 * rng.normal(size=(100, 5))
    assert evaluate(vectors, labels).metrics["nmi"] == pytest.approx(1)
    assert evaluate(vectors, rng.permutation(labels)).metrics["nmi"] < 0.3


def test_the_cheap_map_at_r_is_the_same_number():
    vectors, labels = clusters()
    items = Embeddings.from_vectors(vectors, labels=labels)
    assert mean_average_precision_at_r(items) == pytest.approx(evaluate(vectors, labels, nmi=False).metrics["map@r"])


def test_a_class_larger_than_the_usual_depth_is_ranked_to_its_end(monkeypatch):
    """R may exceed the 1000 items that mAP@1000 needs: shown with smaller numbers."""
    monkeypatch.setattr(names, "MAP_AT", 3)
    monkeypatch.setattr(protocol, "MAP_AT", 3)
    monkeypatch.setattr(names, "RECALL_AT", (1, 2))
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1], [40, 10])
    vectors = np.eye(2)[labels] + 0.01 * rng.normal(size=(50, 2))
    scores = evaluate(vectors, labels, nmi=False).metrics
    assert scores["map@r"] == scores["r-precision"] == scores["map@3"] == pytest.approx(1)


# ---- what must not matter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text_ids", [False, True])
def test_the_order_of_the_rows_changes_no_score(text_ids):
    """A third of the items are exact copies of others, with labels of their own: only their ids order them."""
    rng = np.random.default_rng(3)
    vectors, labels = clusters(seed=3)
    vectors[80:] = vectors[:40]
    ids = rng.permutation(120)
    ids = np.array([f"item-{i}" for i in ids]) if text_ids else ids
    first = evaluate_embeddings(Embeddings.from_vectors(vectors, ids, labels))
    by_id = dict(zip(ids.tolist(), first.average_precision, strict=True))
    for _ in range(3):
        order = rng.permutation(120)
        again = evaluate_embeddings(Embeddings.from_vectors(vectors[order], ids[order], labels[order]))
        assert again.metrics == pytest.approx(first.metrics, abs=1e-12)  # the mean adds in another order
        assert again.average_precision.tolist() == [by_id[i] for i in ids[order].tolist()]


def test_ids_do_decide_among_copies():
    """The reverse of the above: with other ids the same vectors may score otherwise, so the order is not by row."""
    vectors, labels = angles(0, 0, 0, 90), ["a", "b", "a", "b"]
    scores = [
        evaluate_embeddings(Embeddings.from_vectors(vectors, ids, labels), nmi=False).recall_at_1.tolist()
        for ids in ([0, 1, 2, 3], [0, 2, 1, 3])
    ]
    assert scores == [[0, 0, 1, 0], [1, 0, 1, 0]]


def test_the_length_of_the_vectors_and_the_kind_of_label_change_no_score():
    vectors, labels = clusters()
    scaled = vectors * np.random.default_rng(4).uniform(0.5, 100, size=(120, 1))
    names = np.array([f"class {label}" for label in labels])
    assert evaluate(scaled, names, nmi=False).metrics == pytest.approx(evaluate(vectors, labels, nmi=False).metrics)


def test_tiles_change_no_score(monkeypatch):
    vectors, labels = clusters()
    whole = evaluate(vectors, labels, nmi=False)
    monkeypatch.setattr(ranks, "_TILE_VALUES", 7 * 120)
    seen = []
    tiled = evaluate(vectors, labels, nmi=False, progress=lambda *call: seen.append(call))
    assert tiled.metrics == pytest.approx(whole.metrics, abs=1e-12)
    assert seen[-1] == ("ranking", 120, 120) and len(seen) == 18  # 120 / 7, rounded up


def test_the_input_is_left_as_it_was():
    vectors, labels = clusters()
    before = vectors.copy()
    evaluate(vectors, labels, nmi=False)
    np.testing.assert_array_equal(vectors, before)


# ---- what is reported --------------------------------------------------------------------------------------------


def test_the_protocol_names_every_convention():
    vectors, labels = clusters()
    labels[:2] = [50, 51]
    document = evaluate(vectors, labels, seed=7).document()
    assert document["protocol"] == {
        "queries": 120,
        "gallery": 120,
        "gallery_is": "the queries themselves",
        "self_matches_removed_by_id": 120,
        "classes": 14,
        "queries_without_match": 2,
        "without_match": "counted as 0",
        "similarity": "cosine",
        "neighbors": "exact, ties by id",
        "convention": "papers",
        "ndcg@k": "binary relevance, log2 discount, relative to the best min(k, R) places",
        "mrr": "first match in the whole ranking",
        "map@r": "divided by R",
        "map@1000": "divided by min(1000, R)",
        "nmi": "k-means on the queries, 14 clusters, one greedy k-means++ start, at most 20 iterations, "
        "arithmetic mean, seed 7",
    }
    assert list(document["metrics"]) == [*NAMES, "nmi"]


def test_the_document_survives_json_and_every_metric_is_a_fraction():
    vectors, labels = clusters()
    scores = evaluate(vectors, labels)
    document = scores.document()
    assert json.loads(json.dumps(document)) == document
    means = {name: values.mean() for name, values in scores.per_query.items()}
    assert {name: value for name, value in document["metrics"].items() if name != "nmi"} == pytest.approx(means)
    perfect = evaluate(np.eye(12)[np.repeat(np.arange(12), 9)], np.repeat(np.arange(12), 9)).document()["metrics"]
    assert perfect == dict.fromkeys(document["metrics"], 1.0)


def test_nmi_can_be_skipped_and_the_protocol_says_so():
    scores = evaluate(*clusters(), nmi=False)
    assert list(scores.metrics) == NAMES
    assert scores.protocol["nmi"] == "skipped"


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate(angles(0, 1), ["a", "b"], gallery=angles(2)), "without gallery_labels"),
        (lambda: evaluate_embeddings(Embeddings.from_vectors(angles(0, 1))), "no labels"),
        (lambda: evaluate(angles(0), ["a"]), "the query is the only item to search in"),
        (lambda: evaluate(angles(0, 1), ["a", "a"], no_match="ignore", nmi=False), "'ignore'"),
        (lambda: evaluate(angles(0, 1), ["a"]), "1 labels for 2 vectors"),
    ],
)
def test_unusable_input_is_refused_with_a_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("labels, gallery_labels", [(["a", "b", "c"], None), (["a", "a", "b"], ["x", "y", "y"])])
def test_scores_that_could_only_be_zero_are_refused(labels, gallery_labels):
    vectors = np.eye(3)
    gallery = None if gallery_labels is None else vectors
    with pytest.raises(InputError, match="no query has a match"):
        evaluate(vectors, labels, gallery=gallery, gallery_labels=gallery_labels)


def test_one_class_is_worth_a_warning():
    with pytest.warns(EntourageWarning, match="one class"):
        evaluate(np.eye(3), ["a", "a", "a"], nmi=False)
