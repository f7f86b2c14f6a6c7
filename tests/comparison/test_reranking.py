"""Raw search with its first results re-ranked, as a method of comparison."""

import numpy as np
from tests.refiner.samples import clusters

from entourage import rerank, search
from entourage.comparison.measuring import compare
from entourage.comparison.methods import METHODS
from entourage.comparison.reranking import RerankedSearch
from entourage.values import Embeddings

X, LABELS = clusters(seed=5, n_classes=12)
ITEMS = Embeddings.from_vectors(X)


def ranked(method, k):
    (found,) = [found for _, found in method.fit(ITEMS).rank(ITEMS, k)]
    return found


def test_the_first_are_those_of_rerank_and_the_others_stay():
    raw, found = search(ITEMS, k=60), ranked(RerankedSearch(candidates=25), 60)
    for query in (0, 17, 143):
        first = raw.rows[query, :25]
        expected = first[rerank(X[query], X[first], ids=first).rows]
        np.testing.assert_array_equal(found.rows[query], np.concatenate([expected, raw.rows[query, 25:]]))
    assert (found.rows[:, :25] != raw.rows[:, :25]).any()


def test_candidates_beyond_the_list_take_part_and_small_sets_are_ranked_whole():
    np.testing.assert_array_equal(
        ranked(RerankedSearch(candidates=25), 5).rows, ranked(RerankedSearch(candidates=25), 60).rows[:, :5]
    )
    assert ranked(RerankedSearch(candidates=1000), 3).rows.shape == (len(X), 3)


def test_it_is_a_row_of_the_comparison_and_sees_no_labels():
    row = METHODS["rerank-100"]
    assert row.learns_with is None and row.fixed == {"candidates": 100, "universal": True}
    comparison = compare(X, LABELS, ["rerank-100"])
    raw, reranked = comparison.document()["methods"]
    assert reranked["method"] == "rerank-100" and reranked["map@r"] > raw["map@r"]


def test_a_fitted_refiner_reranks_by_what_it_learned(short_rehearsals, one_thread):
    method = RerankedSearch(candidates=25, universal=False).fit(Embeddings.from_vectors(X, labels=LABELS))
    assert method.n_parameters_ >= RerankedSearch().fit(ITEMS).n_parameters_
    assert len(next(iter(method.rank(ITEMS, 5)))[1]) == len(X)
