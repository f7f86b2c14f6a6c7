"""Metrics against rankings worked out by hand, and against pytorch-metric-learning."""

import numpy as np
import pytest
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN

from entourage.errors import InputError
from entourage.evaluation import evaluate, metrics
from entourage.evaluation.hits import Hits, count_matches

# Four queries, their rankings of five items (1 = same label), and R, how many matches each could have found.
RANKING = np.array(
    [
        [1, 0, 1, 1, 0],  # R = 3: hits at ranks 1, 3, 4
        [0, 1, 0, 0, 1],  # R = 2: hits at ranks 2, 5
        [1, 1, 1, 1, 1],  # R = 8: more matches than the ranking is long
        [0, 0, 0, 0, 0],  # R = 0: nothing to find
    ],
    dtype=bool,
)
HITS = Hits.from_ranking(RANKING)
MATCHES = np.array([3, 2, 8, 0])


# ---- by hand -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "wanted"), [(1, [1, 0, 1, 0]), (2, [1, 1, 1, 0]), (5, [1, 1, 1, 0]), (99, [1, 1, 1, 0])])
def test_recall_at_k_asks_for_one_hit_among_the_first_k(k, wanted):
    assert metrics.recall_at(HITS, k).tolist() == wanted


def test_r_precision_is_the_share_of_hits_among_the_first_r():
    # R = 3: ranks 1..3 hold 2 hits -> 2/3.  R = 2: ranks 1..2 hold 1 -> 1/2.  R = 8: 5 hits seen -> 5/8.  R = 0 -> 0.
    np.testing.assert_allclose(metrics.r_precision(HITS, MATCHES), [2 / 3, 1 / 2, 5 / 8, 0], rtol=1e-15)


def test_map_at_r_sums_precision_at_hits_within_r_and_divides_by_r():
    wanted = [
        (1 / 1 + 2 / 3) / 3,  # hits at ranks 1 and 3; the one at rank 4 lies beyond R = 3
        (1 / 2) / 2,  # a hit at rank 2; the one at rank 5 lies beyond R = 2
        (1 + 1 + 1 + 1 + 1) / 8,
        0,
    ]
    np.testing.assert_allclose(metrics.average_precision_at_r(HITS, MATCHES), wanted, rtol=1e-15)


def test_map_at_k_divides_by_the_smaller_of_k_and_r():
    at_four = [
        (1 / 1 + 2 / 3 + 3 / 4) / 3,  # min(4, 3) = 3
        (1 / 2) / 2,  # min(4, 2) = 2; the hit at rank 5 is not seen
        (1 + 1 + 1 + 1) / 4,  # min(4, 8) = 4
        0,
    ]
    np.testing.assert_allclose(metrics.average_precision_at(HITS, MATCHES, 4), at_four, rtol=1e-15)
    at_a_thousand = [(1 / 1 + 2 / 3 + 3 / 4) / 3, (1 / 2 + 2 / 5) / 2, 5 / 8, 0]
    np.testing.assert_allclose(metrics.average_precision_at(HITS, MATCHES, 1000), at_a_thousand, rtol=1e-15)


def test_queries_without_a_match_count_as_zero_or_are_dropped():
    recall = metrics.recall_at(HITS, 1)  # 1, 0, 1 and, without a match, 0
    assert metrics.mean(recall, MATCHES) == 2 / 4
    assert metrics.mean(recall, MATCHES, "zero") == 2 / 4
    assert metrics.mean(recall, MATCHES, "drop") == 2 / 3
    with pytest.raises(InputError, match="no query has a match"):
        metrics.mean(recall[3:], MATCHES[3:], "drop")


def test_an_unknown_rule_for_queries_without_a_match_is_refused():
    with pytest.raises(InputError, match="'skip'"):
        metrics.mean(np.ones(1), np.ones(1), "skip")


def test_matches_are_counted_without_the_query_itself():
    codes = np.array([0, 0, 0, 1, 1, 2])
    assert count_matches(codes, codes, np.arange(6)).tolist() == [2, 2, 2, 1, 1, 0]


def test_matches_in_a_separate_gallery():
    # Label 0 twice, label 1 once, label 3 (the last query's) not at all.
    queries, gallery = np.array([0, 0, 1, 1, 3]), np.array([0, 1, 0, 2])
    nobody = np.full(5, -1)
    assert count_matches(queries, gallery, nobody).tolist() == [2, 2, 1, 1, 0]
    # The first query is gallery row 2 and the third row 1; the fourth shares an id with a row of another label.
    assert count_matches(queries, gallery, np.array([2, -1, 1, 0, -1])).tolist() == [1, 2, 0, 1, 0]


def test_nmi_by_hand():
    # Clusters split each class in two: H(labels) = log 2, H(clusters) = log 4, I = log 2 -> 2 log 2 / (3 log 2).
    labels, clusters = [0, 0, 1, 1], [0, 1, 2, 3]
    assert metrics.normalized_mutual_information(labels, clusters) == pytest.approx(2 / 3)
    assert metrics.normalized_mutual_information(labels, [5, 5, 4, 4]) == pytest.approx(1)
    assert metrics.normalized_mutual_information(labels, [0, 1, 0, 1]) == pytest.approx(0, abs=1e-12)


# ---- against pytorch-metric-learning -----------------------------------------------------------------------------
# It leaves queries without a match out of every mean: our no_match="drop".

PAIRS = {
    "precision_at_1": "recall@1",  # with one item retrieved, precision and recall in the papers' sense coincide
    "r_precision": "r-precision",
    "mean_average_precision_at_r": "map@r",
    "mean_average_precision": "map@1000",  # both divide by R as long as R <= k; see the last test
}


def their_scores(*arguments, k=None) -> dict[str, float]:
    calculator = AccuracyCalculator(
        include=tuple(PAIRS), k=k, device=torch.device("cpu"), knn_func=CustomKNN(CosineSimilarity())
    )
    return calculator.get_accuracy(*arguments)


def labelled_vectors(count: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=count)
    centres = np.random.default_rng(99).normal(size=(n_classes, 8))
    return (centres[labels] + 0.8 * rng.normal(size=(count, 8))).astype(np.float32), labels


@pytest.mark.parametrize("seed", range(3))
def test_scores_within_one_set_agree(seed):
    vectors, labels = labelled_vectors(200, 25, seed)
    labels[:3] = [100, 101, 102]  # three classes with a single item
    theirs = their_scores(vectors, labels)
    ours = evaluate(vectors, labels, no_match="drop", nmi=False).metrics
    assert 0.1 < ours["map@r"] < 0.9, "precondition: neither trivial nor perfect"
    for their_name, our_name in PAIRS.items():
        assert ours[our_name] == pytest.approx(theirs[their_name], abs=1e-9), their_name


def test_papers_count_single_items_as_misses_which_lowers_the_mean_by_their_share():
    vectors, labels = labelled_vectors(200, 25, seed=0)
    labels[:3] = [100, 101, 102]
    theirs = their_scores(vectors, labels)
    ours = evaluate(vectors, labels, no_match="zero", nmi=False).metrics
    for their_name, our_name in PAIRS.items():
        assert ours[our_name] == pytest.approx(theirs[their_name] * 197 / 200, abs=1e-9), their_name


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_queries_against_references_agree(seed):
    queries, query_labels = labelled_vectors(80, 25, seed)
    references, reference_labels = labelled_vectors(150, 25, seed + 100)
    reference_labels[reference_labels == query_labels[0]] = 200  # the first query's class has no reference
    theirs = their_scores(queries, query_labels, references, reference_labels)
    ours = evaluate(
        queries, query_labels, gallery=references, gallery_labels=reference_labels, no_match="drop", nmi=False
    )
    assert ours.protocol["queries_without_match"] > 0
    for their_name, our_name in PAIRS.items():
        assert ours.metrics[our_name] == pytest.approx(theirs[their_name], abs=1e-9), their_name


def test_map_at_k_differs_from_theirs_where_a_class_has_more_than_k_matches():
    """Theirs divides by R even when only k < R items are looked at, so a perfect ranking scores k / R; ours by
    min(k, R), so it scores 1. Times min(k, R) / R, ours is theirs."""
    vectors, labels = labelled_vectors(100, 3, seed=5)
    k = 10
    order = np.argsort(-_cosines(vectors) + 9 * np.eye(100), axis=1)[:, :k]
    hits = Hits.from_ranking(labels[order] == labels[:, None])
    matches = count_matches(labels, labels, np.arange(100))
    assert (matches > k).all()
    ours = metrics.average_precision_at(hits, matches, k)
    calculator = AccuracyCalculator(
        include=("mean_average_precision",), k=k, device=torch.device("cpu"), knn_func=CustomKNN(CosineSimilarity())
    )
    theirs = calculator.get_accuracy(vectors, labels)["mean_average_precision"]
    assert (ours * k / matches).mean() == pytest.approx(theirs, abs=1e-9)
    assert ours.mean() > theirs + 0.1


def _cosines(vectors) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T
