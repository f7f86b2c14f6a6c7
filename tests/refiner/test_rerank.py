"""Candidates of one query in another order: what is kept, what decides, what is refused, and that it helps."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.refiner.samples import clusters, unit

from entourage import ContextRefiner, Embeddings, EntourageWarning, PaperRefiner, Reranker, rerank, search
from entourage.errors import InputError, ModelError, NotFittedError
from entourage.refiner import rerank as module
from entourage.refiner.context import WeightedGraph
from entourage.refiner.graph import build_graph
from entourage.refiner.universal import universal_network

X, LABELS = clusters(seed=3, noise=1.3)
FOUND = search(X, k=60).rows


def found_by(query: int, **options):
    return rerank(X[query], X[FOUND[query]], **options)


# ---- what comes back -----------------------------------------------------------------------------------------------


def test_it_is_a_permutation_with_scores_that_never_increase():
    done = found_by(0)
    assert len(done) == 60 and sorted(done.rows) == list(range(60))
    assert done.scores.dtype == np.float32 and (np.diff(done.scores) <= 0).all()
    np.testing.assert_array_equal(done.ids, done.rows)
    assert done.given_scores is None and (done.rows != np.arange(60)).any()
    with pytest.raises(ValueError, match="read-only"):
        done.rows[0] = 1


def test_ids_and_scores_go_with_their_candidates():
    ids, scores = np.array([f"item {row}" for row in FOUND[0]]), np.arange(60) / 7
    done = found_by(0, ids=ids, scores=scores)
    np.testing.assert_array_equal(done.ids, ids[done.rows])
    np.testing.assert_array_equal(done.given_scores, scores[done.rows])
    other = found_by(0, ids=ids, scores=-scores)
    np.testing.assert_array_equal(other.rows, done.rows)  # they decide nothing


def test_the_order_of_the_candidates_decides_nothing():
    shuffled = np.random.default_rng(0).permutation(60)
    straight = rerank(X[0], X[FOUND[0]], ids=FOUND[0])
    mixed = rerank(X[0], X[FOUND[0][shuffled]], ids=FOUND[0][shuffled])
    np.testing.assert_array_equal(mixed.ids, straight.ids)
    np.testing.assert_array_equal(mixed.scores, straight.scores)
    np.testing.assert_array_equal(shuffled[mixed.rows], straight.rows)


def test_the_scores_are_those_of_the_equation():
    x = Embeddings.from_vectors(X[[0, *FOUND[0]]])
    network = universal_network()
    weighted = WeightedGraph(build_graph(x, module.N_NEIGHBORS), network.scorer, module.SHARPNESS, module.BLEND)
    z, weights, rows = x.vectors.astype(float), weighted.weights, weighted.graph.neighbors.rows
    for _ in range(module.N_STEPS):
        z = z + np.einsum("nk,nkd->nd", weights, z[rows])
        z /= np.linalg.norm(z, axis=1, keepdims=True)
    e = module.BLEND * x.vectors + (1 - module.BLEND) * z
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    refined, raw = e[1:] @ e[0], x.vectors[1:] @ x.vectors[0]
    expected, cautious = ((1 - a) * refined + a * raw for a in (module.RAW_SHARE, module.RAW_SHARE_OF_FIRST))
    expected[np.argmax(cautious)] = expected.max()
    done = found_by(0)
    assert done.rows[0] == np.argmax(cautious)
    np.testing.assert_allclose(done.scores, expected[done.rows], atol=1e-5)


def test_the_first_place_is_given_with_more_caution():
    firsts = [(found_by(query).rows[0], query) for query in range(0, len(X), 3)]
    assert any(first != 0 for first, _ in firsts)  # cautious, not stubborn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RAW_SHARE_OF_FIRST", module.RAW_SHARE)
        bold = [found_by(query).rows[0] for _, query in firsts]
    assert sum(first == 0 for first, _ in firsts) > sum(first == 0 for first in bold)


@pytest.mark.parametrize("copies", [2, 30])
def test_equal_candidates_have_equal_scores_and_stand_in_order_of_id(copies):
    vectors = np.concatenate([np.repeat(X[FOUND[0][5]][None], copies, axis=0), X[FOUND[0]]])
    ids = np.arange(len(vectors))[::-1]  # the first has the highest
    done = rerank(X[0], vectors, ids=ids)
    same = np.isin(done.rows, [*range(copies), copies + 5])
    assert len(set(done.scores[same].tolist())) == 1
    assert (np.diff(done.ids[same]) > 0).all()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_few_candidates_are_ranked_too(count):
    done = rerank(X[0], X[FOUND[0][:count]])
    assert sorted(done.rows) == list(range(count)) and np.isfinite(done.scores).all()


def test_no_candidates_are_no_error():
    for nothing in ([], np.empty((0, 32)), pd.DataFrame()):
        done = rerank(X[0], nothing)
        assert len(done) == len(done.scores) == len(done.ids) == 0 and done.given_scores is None
    assert len(rerank(X[0], [], ids=[], scores=[], query_id=3).given_scores) == 0


# ---- the query among its candidates --------------------------------------------------------------------------------


def test_a_query_among_its_candidates_comes_first_unless_it_is_named():
    rows = np.concatenate([FOUND[0][:30], [0], FOUND[0][30:]])
    kept = rerank(X[0], X[rows], ids=rows)
    assert kept.ids[0] == 0 and len(kept) == 61
    left_out = rerank(X[0], X[rows], ids=rows, query_id=0)
    np.testing.assert_array_equal(left_out.ids, rerank(X[0], X[FOUND[0]], ids=FOUND[0]).ids)
    assert len(rerank(X[0], X[rows], ids=rows.astype(str), query_id=0)) == 60  # the number 0 and the text "0"
    assert len(rerank(X[0], X[rows], ids=rows, query_id=10**6)) == 61
    assert len(rerank(X[0], X[:1], ids=[7], query_id=7)) == 0


def test_embeddings_with_ids_recognise_the_query():
    items = Embeddings.from_vectors(X, ids=np.arange(len(X)))
    candidates = items.take([0, *FOUND[0]])
    assert 0 not in rerank(items.take([0]), candidates).ids
    assert 0 in rerank(X[0], candidates).ids
    nameless = Embeddings.from_vectors(X[[0, *FOUND[0]]])
    assert len(rerank(items.take([0]), nameless)) == 61


# ---- kinds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        list,
        torch.tensor,
        pd.DataFrame,
        pl.DataFrame,
        lambda vectors: pd.Series(list(vectors)),
        Embeddings.from_vectors,
        lambda vectors: (1000 * vectors).astype(np.float64),
    ],
)
def test_candidates_of_every_kind(kind):
    vectors = X[FOUND[0]].astype(np.float32)
    np.testing.assert_array_equal(rerank(X[0], kind(vectors)).rows, rerank(X[0], vectors).rows)


@pytest.mark.parametrize(
    "kind",
    [list, torch.tensor, pd.Series, pl.Series, lambda v: v[None], lambda v: pd.DataFrame(v[None]), lambda v: 1e-30 * v],
)
def test_a_query_of_every_kind(kind):
    query = X[0].astype(np.float64)
    np.testing.assert_array_equal(rerank(kind(query), X[FOUND[0]]).rows, found_by(0).rows)


def test_half_precision():
    half = rerank(X[0].astype(np.float16), X[FOUND[0]].astype(np.float16))
    assert half.scores.dtype == np.float32
    order = found_by(0)
    np.testing.assert_allclose(half.scores, order.scores, atol=0.02)


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "candidates", "options", "message"),
    [
        (X[0, :5], X[:9], {}, "the query has 5 dimensions and the candidates 32"),
        (X[:2], X[:9], {}, "the query is 2 vectors; wanted one"),
        (X[0], X[1], {}, r"the candidates must be a table of numbers \(N, d\)"),
        (X[0], None, {}, "the candidates must be a table.*not None"),
        (X[0], [[np.nan] * 32], {}, "the candidates: row 0 of the vectors contains NaN"),
        (np.zeros(32), X[:9], {}, "the query: row 0 of the vectors is all zeros"),
        (X[0], X[:9], {"ids": range(8)}, "8 ids for 9 candidates"),
        (X[0], X[:9], {"ids": [1] * 9}, "id 1 appears 9 times"),
        (X[0], X[:9], {"scores": [0.5]}, r"the scores are float64 of shape \(1,\); wanted one number for each of 9"),
        (X[0], X[:9], {"scores": ["a"] * 9}, "wanted one number for each of 9"),
        (X[0], X[:9], {"query_id": 3}, "query_id is 3, but the candidates have no ids"),
        (X[0], np.ones((5000, 32)), {}, "the candidates are 5000; wanted at most 4096"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_one_sentence(query, candidates, options, message):
    with pytest.raises(InputError, match=message) as caught:
        rerank(query, candidates, **options)
    assert "\n" not in str(caught.value)


def test_refiners_that_cannot_rerank_are_refused():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Reranker(ContextRefiner())
    with pytest.raises(InputError, match="the refiner is a PaperRefiner; wanted a fitted ContextRefiner"):
        Reranker(PaperRefiner())
    with pytest.raises(ModelError, match="the query has 32 dimensions, but the refiner was fitted on 5"):
        Reranker(ContextRefiner().fit(clusters(seed=1, dim=5)[0])).rerank(X[0], X[:9])


# ---- fitted, and whether it helps ----------------------------------------------------------------------------------


def test_the_universal_scorer_is_that_of_a_refiner_fitted_without_labels(untaught):
    np.testing.assert_array_equal(Reranker(untaught).rerank(X[0], X[FOUND[0]]).scores, found_by(0).scores)


def test_a_base_map_comes_first(untaught):
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(32, 32)))[0] * np.linspace(0.1, 3, 32)
    mapped = ContextRefiner().fit(clusters(seed=1)[0])
    mapped.network_ = replace(mapped.network_, base_map=turned.astype(np.float32))
    done = Reranker(mapped).rerank(X[0], X[FOUND[0]])
    by_hand = rerank(unit(X)[0] @ turned, unit(X)[FOUND[0]] @ turned)
    np.testing.assert_array_equal(done.rows, by_hand.rows)
    assert (done.rows != found_by(0).rows).any()


def test_a_base_map_that_leaves_nothing_is_a_damaged_model(untaught):
    empty = ContextRefiner().fit(clusters(seed=1)[0])
    empty.network_ = replace(empty.network_, base_map=np.zeros((32, 32), np.float32))
    with pytest.raises(ModelError, match=r"all zeros.*after the base map"):
        Reranker(empty).rerank(X[0], X[:9])


def test_a_refiner_that_leaves_vectors_alone_leaves_the_order_alone():
    with pytest.warns(EntourageWarning, match="only scaled to length 1"):
        cautious = ContextRefiner().fit(np.random.default_rng(0).normal(size=(400, 64)))
    vectors = np.random.default_rng(1).normal(size=(101, 64))
    done = Reranker(cautious).rerank(vectors[0], vectors[1:])
    np.testing.assert_array_equal(done.rows, search(vectors[:1], vectors[1:], k=100).rows[0])


def test_more_of_what_is_looked_for_comes_first():
    def score(order: np.ndarray, query: int) -> float:
        hits = LABELS[order] == LABELS[query]
        return float((hits[:11] * np.cumsum(hits[:11]) / np.arange(1, 12)).sum() / 11)

    queries = range(0, len(X), 3)
    raw = np.mean([score(FOUND[query], query) for query in queries])
    reranked = np.mean([score(FOUND[query][found_by(query).rows], query) for query in queries])
    assert reranked > raw + 0.03
