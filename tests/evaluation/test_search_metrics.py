"""Precision@k, nDCG@k, MRR and recall@k at any k: by hand, against plain loops and against scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from entourage.errors import InputError
from entourage.evaluation import evaluate, evaluate_embeddings, evaluate_ranking, metrics, names
from entourage.evaluation.bootstrap import paired_bootstraps
from entourage.evaluation.hits import Hits
from entourage.neighbors import search_blocks
from entourage.values import Embeddings

AT = (1, 3, 7)
NAMES = [f"{kind}@{k}" for kind in ("recall", "precision", "ndcg", "mrr") for k in AT]

# Three queries, their rankings of five items (1 = same label), and R.
HITS = Hits.from_ranking(np.array([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]], bool))
MATCHES = np.array([3, 2, 0])


# ---- by hand -----------------------------------------------------------------------------------------------------


def test_precision_at_k_is_divided_by_k_however_few_there_are():
    assert metrics.precision_at(HITS, 1).tolist() == [1, 0, 0]
    assert metrics.precision_at(HITS, 4).tolist() == [3 / 4, 1 / 4, 0]
    assert metrics.precision_at(HITS, 10).tolist() == [3 / 10, 1 / 10, 0], "more than were retrieved"


def test_ndcg_at_k_is_relative_to_the_best_of_min_k_and_r_places():
    place = [1 / math.log2(1 + i) for i in range(1, 6)]  # 1, 0.63, 0.5, 0.43, 0.39
    np.testing.assert_allclose(metrics.ndcg_at(HITS, MATCHES, 2), [place[0] / (place[0] + place[1]), 0, 0])
    first = (place[0] + place[2] + place[3]) / sum(place[:3])  # R = 3 of 5
    np.testing.assert_allclose(metrics.ndcg_at(HITS, MATCHES, 5), [first, place[3] / sum(place[:2]), 0])


def test_the_reciprocal_rank_is_that_of_the_first_hit_and_nothing_beyond_k():
    assert metrics.reciprocal_rank(HITS).tolist() == [1, 1 / 4, 0]
    assert metrics.reciprocal_rank(HITS, 4).tolist() == [1, 1 / 4, 0]
    assert metrics.reciprocal_rank(HITS, 3).tolist() == [1, 0, 0]


def test_at_one_they_are_all_the_same():
    values = [names.measured(f"{kind}@1", HITS, MATCHES).tolist() for kind in ("recall", "precision", "ndcg", "mrr")]
    assert values == [[1, 0, 0]] * 4


# ---- against plain loops -----------------------------------------------------------------------------------------


def by_loops(queries: Embeddings, gallery: Embeddings) -> dict[str, list[float]]:
    """Each metric of each query, from rankings that are sorted item by item."""
    values = {name: [] for name in [*NAMES, "mrr"]}
    for q in range(len(queries)):
        found = ranking(queries, gallery, q)
        n_matches = sum(found)
        first = found.index(True) + 1 if n_matches else None
        values["mrr"].append(1 / first if first else 0)
        for k in AT:
            values[f"recall@{k}"].append(float(any(found[:k])))
            values[f"precision@{k}"].append(sum(found[:k]) / k)
            values[f"mrr@{k}"].append(1 / first if first and first <= k else 0)
            gain = sum(1 / math.log2(place + 2) for place, right in enumerate(found[:k]) if right)
            best = sum(1 / math.log2(place + 2) for place in range(min(k, n_matches)))
            values[f"ndcg@{k}"].append(gain / best if n_matches else 0)
    return values


def ranking(queries: Embeddings, gallery: Embeddings, q: int) -> list[bool]:
    """Whether each item in the ranking of a query has its label: nearest first, ties by id, some left out."""
    ranked = []
    for g in range(len(gallery)):
        same = gallery.labels[g] == queries.labels[q]
        if gallery.named and queries.named and gallery.ids[g] == queries.ids[q]:
            continue
        if gallery is queries and g == q:
            continue
        if queries.cameras is not None and same and gallery.cameras[g] == queries.cameras[q]:
            continue
        if queries.sequences is not None and gallery.sequences[g] == queries.sequences[q]:
            continue
        similarity = round(float(queries.vectors[q].astype(float) @ gallery.vectors[g].astype(float)), 6)
        ranked.append((-similarity, gallery.ids[g], bool(same)))
    return [right for *_, right in sorted(ranked)]


def items(count: int, seed: int, **columns) -> Embeddings:
    """Items on few directions, so that many are copies of others; classes of one item and of many."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([[100 * seed, 100 * seed + 1], rng.integers(6, size=count - 2)])
    vectors = np.random.default_rng(7).normal(size=(12, 4))[rng.integers(12, size=count)]
    known = {name: rng.integers(high, size=count) for name, high in columns.items()}
    return Embeddings.from_vectors(vectors, ids=rng.permutation(count) + 1000 * seed, labels=labels, **known)


@pytest.mark.parametrize("columns", [{}, {"cameras": 3}, {"sequences": 9}, {"cameras": 2, "sequences": 5}])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_metric_is_that_of_a_plain_loop(columns, separate, seed):
    queries = items(40, seed, **columns)
    gallery = items(50, seed + 10, **columns) if separate else None
    scores = evaluate_embeddings(queries, gallery, at=AT, nmi=False)
    wanted = by_loops(queries, gallery or queries)
    assert set(wanted) <= set(scores.per_query)
    for name, values in wanted.items():
        np.testing.assert_allclose(scores.per_query[name], values, atol=1e-12, err_msg=name)
        assert scores.metrics[name] == pytest.approx(np.mean(values))
    assert scores.protocol["queries_without_match"] > 0, "precondition: some have nothing to find"


def test_a_query_among_the_gallery_is_not_its_own_match_and_queries_without_match_may_be_dropped():
    gallery = items(50, seed=3)
    queries = gallery.take(np.arange(0, 50, 2))
    scores = evaluate_embeddings(queries, gallery, at=AT, no_match="drop", nmi=False)
    wanted = by_loops(queries, gallery)
    possible = queries.labels < 100
    assert 0 < possible.sum() < len(queries)
    for name, values in wanted.items():
        assert scores.metrics[name] == pytest.approx(np.mean(np.array(values)[possible])), name


def test_a_ranking_that_was_made_elsewhere_scores_the_same():
    some = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(60, 5)), labels=np.arange(60) % 7)
    whole = evaluate_embeddings(some, at=(2, 10, 30), nmi=False).per_query
    scores = evaluate_ranking(some, lambda items, k: search_blocks(items, k=k), at=(2, 30))
    assert {"precision@30", "recall@10", "ndcg@2", "mrr@30", "recall@1", "map@r"} <= set(scores)
    for name, values in scores.items():
        np.testing.assert_array_equal(values, whole[name], err_msg=name)


def test_ndcg_is_that_of_scikit_learn_where_no_similarities_are_equal():
    rng = np.random.default_rng(5)
    vectors, labels = rng.normal(size=(80, 6)), np.arange(80) % 9
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    others = ~np.eye(80, dtype=bool)
    similarities, same = ((table[others]).reshape(80, 79) for table in (unit @ unit.T, labels[:, None] == labels))
    ours = evaluate(vectors, labels, at=(1, 5, 20, 79), nmi=False).metrics
    for k in (1, 5, 20, 79):
        assert ours[f"ndcg@{k}"] == pytest.approx(ndcg_score(same, similarities, k=k), abs=1e-9)


def test_they_have_intervals_like_all_metrics_of_queries():
    one, other = (evaluate_embeddings(items(40, seed), at=5, nmi=False).per_query for seed in (1, 2))
    intervals = paired_bootstraps(one, other)
    assert {"precision@5", "ndcg@5", "mrr@5", "mrr"} <= set(intervals)
    for name in one:
        assert intervals[name].difference == pytest.approx(np.mean(one[name] - other[name])), name


# ---- what is asked for ---------------------------------------------------------------------------------------------


def test_the_numbers_asked_for_replace_the_usual_ones_and_recall_at_1_stays():
    scores = evaluate_embeddings(items(40, 1), at=[10, 5], nmi=False)
    wanted = [f"{kind}@{k}" for kind in ("recall", "precision", "ndcg", "mrr") for k in (5, 10)]
    assert list(scores.metrics) == ["recall@1", *wanted, "mrr", "r-precision", "map@r", "map@1000"]
    assert scores.protocol["precision@k"] == "divided by k" and scores.protocol["mrr@k"] == "0 beyond k"
    assert list(evaluate_embeddings(items(40, 1), at=np.array([5, 10]), nmi=False).metrics) == list(scores.metrics)
    assert "recall@3" in evaluate_embeddings(items(40, 1), at=3, nmi=False).metrics


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (0, "at is 0; wanted whole numbers from 1 on"),
        ([1, -5], "at is -5; wanted whole numbers"),
        ([1, 2.5], r"at is 2\.5; wanted whole numbers"),
        ("10", "at is '10'; wanted whole numbers"),
        (True, "at is True; wanted whole numbers"),
        ([], r"at is \[\]; wanted whole numbers"),
        ([5, 1, 5], "at names 5 more than once"),
        (40, "recall@40 was asked for, but a query has only 39 items to retrieve; wanted @k with a k from 1 to 39"),
    ],
)
def test_cutoffs_that_mean_nothing_are_refused(at, message):
    some = items(40, 1)
    with pytest.raises(InputError, match=message):
        evaluate_embeddings(some, at=at, nmi=False)
    with pytest.raises(InputError, match=message):
        evaluate_ranking(some, lambda items, k: search_blocks(items, k=k), at=at)


def test_a_separate_gallery_can_be_retrieved_whole():
    queries, gallery = items(40, 1), items(50, 2)
    assert evaluate_embeddings(queries, gallery, at=50, nmi=False).metrics["recall@50"] == pytest.approx(
        evaluate_embeddings(queries, gallery, nmi=False).metrics["recall@100"]
    )
    with pytest.raises(InputError, match="only 50 items"):
        evaluate_embeddings(queries, gallery, at=51, nmi=False)


@pytest.mark.parametrize(
    "name", ["recall@10", "precision@1", "ndcg@5", "mrr@3", "map@1000", "mrr", "map@r", "r-precision"]
)
def test_metrics_are_known_by_name(name):
    assert names.check_metric(name, "the metric") == name


@pytest.mark.parametrize(
    "name", ["recall", "recall@", "recall@0", "recall@05", "recall@-1", "recall@r", "nmi", "R@1", "", 5]
)
def test_other_names_are_refused_with_those_that_are_known(name):
    known = r"the metric is .*; wanted recall@k, precision@k, .*, or one of mrr, r-precision"
    with pytest.raises(InputError, match=known):
        names.check_metric(name, "the metric")
