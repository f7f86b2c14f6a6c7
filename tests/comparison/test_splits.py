"""Which items are learned from: those of half of the classes, or those a column names."""

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.comparison.measuring import compare, compare_split
from entourage.comparison.splits import judged, queries_given, split_given, split_half
from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def test_half_is_the_first_half_of_the_sorted_classes():
    items = Embeddings.from_vectors(np.eye(5), labels=["9", "10", "7", "7", "8"])
    training, test = split_half(items)
    assert (training.ids.tolist(), test.ids.tolist()) == ([2, 3, 4], [0, 1])  # 7 and 8 as numbers, not as text
    training, test = split_half(Embeddings.from_vectors(np.eye(5), labels=["b", "c", "a", "a", "10"]))
    assert training.labels.tolist() == ["a", "a", "10"]
    with pytest.raises(InputError, match=r"all items \(\d\) are of one class"):
        split_half(Embeddings.from_vectors(np.eye(2), labels=[1, 1]))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["train", "test"], r"2 entries for 3 vectors"),
        (["train", "test", "val"], "entry 2 of the split is 'val'"),
        ([0, 1, 1], "entry 0 of the split is '0'"),
        ([True, False, True], "neither 'train' nor 'test'"),
        (["train"] * 3, "no entry of the split is 'test'"),
        (["train", "query", "query"], "marks items as query; wanted test alone, or both query and gallery"),
        (["test", "query", "gallery"], "marks items as gallery, query, test; wanted test alone"),
        (["test"] * 3, "no entry of the split is 'train'"),
    ],
)
def test_a_split_that_says_anything_else_is_refused(parts, message):
    with pytest.raises(InputError, match=message):
        split_given(Embeddings.from_vectors(np.eye(3), labels=[0, 1, 2]), parts)


def test_queries_and_gallery_are_test_items_that_are_told_apart():
    items = clusters()
    words = np.where(items.labels < 5, "train", np.where(np.arange(len(items)) % 4, "gallery", "query"))
    training, test = split_given(items, words)
    asking = queries_given(words)
    assert np.isin(items.labels, training.labels).tolist() == (words == "train").tolist()
    queries, gallery = judged(items, words)
    assert test.ids[asking].tolist() == queries.ids.tolist() and test.ids[~asking].tolist() == gallery.ids.tolist()
    comparison = compare(items, methods=["raw"], split=words, at=3)
    assert comparison.protocol["protocol"] == "served" and comparison.protocol["queries"] == len(queries)
    wanted = f"as the split says: {len(queries)} queries, {len(gallery)} gallery items of 5 classes"
    assert comparison.protocol["drawn"] == wanted and wanted in str(comparison)
    (raw,) = comparison.document()["methods"]
    scores = evaluate_embeddings(queries, gallery, at=(1, 3), nmi=False).metrics
    measured = ("recall@1", "recall@3", "precision@3", "map@r")
    assert [raw[name] for name in measured] == pytest.approx([scores[name] for name in measured])
    together = compare(items, methods=["raw"], split=words, protocol="together").document()["methods"][0]
    assert together["map@r"] == pytest.approx(evaluate_embeddings(test, nmi=False).metrics["map@r"])
    with pytest.raises(InputError, match="no query has an item of its class in the gallery"):
        alone = np.where(items.labels < 5, "train", np.where(items.labels == 5, "query", "gallery"))
        compare(items, methods=["raw"], split=alone)
    with pytest.raises(InputError, match="every entry of the split is 'train'"):
        judged(items, ["train"] * len(items))


def test_overlapping_classes_are_a_warning():
    items = clusters()
    training, test = split_given(items, np.where(np.arange(len(items)) % 2, "train", "test"))
    comparison = compare_split(training, test, ["raw"])
    assert comparison.warnings == (
        "10 of the test classes are training classes too: this is not a zero-shot comparison",
    )
    assert comparison.protocol["test_classes_seen_in_training"] == 10
