"""How test items are used: who is drawn, that queries come alone, and what is measured where."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.comparison.samples import clusters

from entourage.baselines import QueryExpansion, Raw
from entourage.comparison.measuring import compare, compare_halves, compare_split
from entourage.comparison.methods import METHODS, MethodSpec
from entourage.comparison.protocols import PROTOCOLS, Task, tasks_of
from entourage.comparison.splits import split_half, split_numbered
from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings, evaluate_in_gallery
from entourage.refiner import ContextRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def uneven(seed=0):
    """Twelve training classes, and test classes of 1 to 9 items."""
    items = clusters(n_classes=24, per_class=9, seed=seed)
    kept = [row for c in range(24) for row in np.flatnonzero(items.labels == c)[: 9 if c < 12 else 1 + (c % 9)]]
    return split_half(items.take(np.array(kept)))


def tasks(protocol, seed=0):
    return {task.kind: task for task in tasks_of([protocol], *uneven(), seed)}


def counts(items):
    return np.unique(items.labels, return_counts=True)[1]


# ---- what is drawn -----------------------------------------------------------------------------------------------


def test_served_queries_are_three_in_ten_and_each_has_a_match():
    _, test = uneven()
    (task,) = tasks_of(["served"], *uneven())
    assert len(task.queries) == round(0.3 * len(test)) and len(task.queries) + len(task.gallery) == len(test)
    assert not set(task.queries.ids) & set(task.gallery.ids)
    assert set(task.queries.labels) <= set(task.gallery.labels) == set(test.labels)  # single items stay in the gallery
    again, other = (tasks_of(["served"], *uneven(), seed)[0] for seed in (0, 1))
    assert set(again.queries.ids) == set(task.queries.ids) != set(other.queries.ids)
    assert task.note == f"{len(task.queries)} queries, {len(task.gallery)} gallery items of 12 classes"


def test_where_few_can_ask_all_of_them_do():
    pairs = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(12, 3)), labels=[0, 0, *range(1, 11)])
    (task,) = tasks_of(["served"], pairs, pairs)
    assert task.queries.labels.tolist() == [0] and len(task.gallery) == 11
    with pytest.raises(InputError, match="no class of the test items has two items"):
        tasks_of(["served"], pairs, pairs.take(np.arange(1, 12)))


def test_open_has_the_served_queries_and_lacks_half_of_their_classes():
    (served,), (task,) = (tasks_of([name], *uneven()) for name in ("served", "open"))
    np.testing.assert_array_equal(task.queries.ids, served.queries.ids)
    known, unknown = set(task.queries.labels[task.known]), set(task.queries.labels[~task.known])
    assert known <= set(task.gallery.labels) and not unknown & set(task.gallery.labels)
    assert len(unknown) == len(known | unknown) // 2 and known
    with pytest.raises(InputError, match="wanted two or more, of which half become unknown"):
        tasks_of(["open"], *(clusters(n_classes=1),) * 2)


def test_sparse_galleries_have_so_many_items_of_every_class():
    _, test = uneven()
    for size in (1, 2, 3, 5):
        task = tasks("sparse")[f"{size} a class"]
        assert set(counts(task.gallery)) == {size}
        assert set(task.gallery.labels) == {label for label in set(test.labels) if (test.labels == label).sum() > size}
        assert set(task.queries.labels) == set(task.gallery.labels)
        assert not set(task.queries.ids) & set(task.gallery.ids)


def test_queries_of_a_sparse_gallery_are_limited_class_by_class(monkeypatch):
    monkeypatch.setattr("entourage.comparison.protocols.MOST_QUERIES", 24)
    task = tasks_of(["sparse"], *split_half(clusters(n_classes=24, per_class=9)))[0]
    assert counts(task.queries).tolist() == [2] * 12 and counts(task.gallery).tolist() == [1] * 12


def test_zipf_sizes_fall_as_one_over_the_rank():
    items = clusters(n_classes=24, per_class=33)
    (task,) = [each for each in tasks_of(["sparse"], *split_half(items)) if each.kind == "zipf"]
    assert sorted(counts(task.gallery), reverse=True) == [max(32 // rank, 1) for rank in range(1, 13)]
    assert (counts(tasks("sparse")["zipf"].gallery) >= 1).all()  # of classes that are too small, what there is


def test_distractors_are_training_items_as_many_as_there_are():
    training, test = uneven()
    task = tasks("sparse")["distractors"]
    own = np.isin(task.gallery.labels, test.labels.astype(str))
    assert (~own).sum() == len(training) < 10 * own.sum() and max(counts(task.gallery.take(own))) == 5
    assert f"{own.sum()} gallery items" in task.note and f"and {len(training)} distractors" in task.note
    few = training.take(np.flatnonzero(training.labels == 3))
    overlapping = tasks_of(["sparse"], training, Embeddings(few.vectors, few.ids, few.labels))
    gallery = next(each for each in overlapping if each.kind == "distractors").gallery
    assert (gallery.labels == "3").sum() == 5  # no distractor is of a test class
    many = split_half(clusters(n_classes=24, per_class=9))
    small = Embeddings.from_vectors(many[1].vectors[:6], labels=[7, 7, 8, 8, 9, 9])
    (last,) = [each for each in tasks_of(["sparse"], many[0], small) if each.kind == "distractors"]
    assert len(last.gallery) == 3 + 30  # ten times as many


def test_galleries_that_no_two_classes_can_give_are_left_out():
    pairs = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(8, 3)), labels=np.repeat(np.arange(4), 2))
    others = Embeddings.from_vectors(np.eye(3), labels=[7, 8, 9])
    assert [task.kind for task in tasks_of(["sparse"], others, pairs)] == ["1 a class", "zipf", "distractors"]
    assert [task.kind for task in tasks_of(["sparse"], pairs, pairs)] == ["1 a class", "zipf"]


# ---- what is measured --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison(one_thread):
    return compare_split(*uneven(), ["alpha-qe-8-3", "pca-whitening", "universal"], protocol=PROTOCOLS, seeds=2)


def test_every_protocol_is_there_with_its_own_numbers(comparison):
    names = [comparison.task, *(each.task for each in comparison.further)]
    sparse = ["1 a class", "2 a class", "3 a class", "5 a class", "zipf", "distractors"]
    assert names == ["together", "served", "open", *(f"sparse, {kind}" for kind in sparse)]
    document = json.loads(json.dumps(comparison.document()))
    assert document["protocol"]["protocol"] == "together" and list(document["further"]) == names[1:]
    for name, part in document["further"].items():
        assert name.startswith(part["protocol"]["protocol"]) and part["protocol"]["drawn"]
        assert [row["method"] for row in part["methods"]] == ["raw", "alpha-qe-8-3", "pca-whitening", "universal"]
        for row in part["methods"]:
            assert {"recall@1", "map@r", "recall@10", "map@r_vs_raw", "recall@10_vs_raw"} <= set(row)
            assert ("auroc" in row) == (name == "open") and len(row["seeds"]) == 2
    assert comparison.under("served").protocol["context"] == "the gallery without its labels, never another query"
    with pytest.raises(InputError, match="unknown protocol 'sparse' in this comparison"):
        comparison.under("sparse")


def test_what_is_measured_together_does_not_depend_on_the_other_protocols(comparison):
    alone = compare_split(*uneven(), ["alpha-qe-8-3", "pca-whitening", "universal"], seeds=2)
    for name in ("pca-whitening", "universal"):
        for metric, values in alone.result(name).per_query.items():
            np.testing.assert_array_equal(comparison.result(name).per_query[metric], values)


def test_served_scores_are_those_of_the_method_itself(comparison):
    (task,) = tasks_of(["served"], *uneven())
    raw = evaluate_embeddings(task.queries, task.gallery, nmi=False).per_query
    for metric in ("recall@1", "map@r", "recall@10"):
        np.testing.assert_allclose(comparison.under("served").result("raw").per_query[metric], raw[metric])
    moved = ContextRefiner().fit(task.gallery.vectors).transform_both(task.queries.vectors, task.gallery.vectors)
    queries, gallery = (
        Embeddings.from_vectors(vectors, items.ids, items.labels)
        for vectors, items in zip(moved, (task.queries, task.gallery), strict=True)
    )
    refined = evaluate_embeddings(queries, gallery, nmi=False).per_query
    np.testing.assert_allclose(comparison.under("served").result("universal").per_query["map@r"], refined["map@r"])


def test_the_relational_refiner_serves_as_its_estimator_does(short_rehearsals):
    training, _ = split = split_half(clusters(n_classes=20))
    (task,) = tasks_of(["served"], *split)
    refiner = ContextRefiner().fit(training.vectors, training.labels)
    served = refiner.serve(task.gallery.vectors)
    wanted = served.transform(task.queries.vectors) @ served.refined_gallery.T
    method = METHODS["relational"].build(recipe="relational").fit(training)
    found = np.concatenate([part.similarities for _, part in method.rank_in(task.queries, task.gallery, 5)])
    np.testing.assert_allclose(found, -np.sort(-wanted, axis=1)[:, :5], atol=1e-5)


def test_unknown_queries_are_judged_by_confidence_and_known_ones_scored(comparison):
    (task,) = tasks_of(["open"], *uneven())
    part = comparison.under("open")
    assert len(part.ids) == task.known.sum() < len(task.queries)
    row = part.document()["methods"][0]
    best = (task.queries.vectors @ task.gallery.vectors.T).max(axis=1)
    assert row["auroc"] == pytest.approx(roc_auc_score(task.known, best))
    assert row["auroc_vs_raw"] == {"difference": 0, "low": 0, "high": 0}
    scores, _ = evaluate_in_gallery(task.queries, task.gallery, QueryExpansion(k=8, alpha=3.0).rank_in)
    np.testing.assert_allclose(part.result("alpha-qe-8-3").per_query["recall@1"], scores["recall@1"][task.known])


def test_refiners_know_unknown_queries_as_well_as_raw_vectors_do(comparison):
    rows = {row["method"]: row for row in comparison.under("open").document()["methods"]}
    assert 0.5 < rows["raw"]["auroc"] < 1
    assert rows["universal"]["auroc"] == pytest.approx(rows["raw"]["auroc"])
    assert rows["universal"]["fpr@95tpr"] == pytest.approx(rows["raw"]["fpr@95tpr"])


@pytest.mark.parametrize("name", ["universal", "relational", "paper"])
def test_the_confidence_of_a_refiner_is_that_of_its_served_gallery(name):
    (task,) = tasks_of(["open"], *uneven())
    method = METHODS[name].build(**METHODS[name].fixed)  # nothing that was learned plays a part
    served = ContextRefiner().fit(task.gallery.vectors).serve(task.gallery.vectors)
    found = method.confidence(task.queries, task.gallery, np.zeros(len(task.queries)))
    np.testing.assert_allclose(found, served.confidence(task.queries.vectors), atol=1e-6)


def test_a_confidence_of_ones_own_is_what_counts():
    class Sure(Raw):
        def confidence(self, queries, gallery, best):
            assert queries.labels is None and gallery.labels is None
            return -best

    part = compare_split(*uneven(), [MethodSpec("sure", Sure)], protocol="open")
    raw, sure = (row["auroc"] for row in part.document()["methods"])
    assert sure == pytest.approx(1 - raw)


def test_tables_have_a_column_for_each_protocol_and_a_line_for_each_gallery(comparison):
    text = comparison.table()
    header = text.splitlines()[0]
    assert "served, R@1 / MAP@R / R@10" in header and "open, AUROC / R@1" in header
    assert sum(line.startswith("distractors ") for line in text.splitlines()) == 4
    assert "AUROC, %" in text and "FPR at 95 % TPR, %" in text and "gallery items of" in text
    assert repr(comparison).endswith("sparse, zipf, sparse, distractors)")


def test_a_method_without_a_form_for_queries_is_left_out_there_alone():
    class Together(Raw):
        def _moved_both(self, queries, gallery):
            raise InputError("it cannot")

    part = compare_split(*uneven(), [MethodSpec("spare", Together)], protocol=["together", "served"])
    assert part.result("spare") and part.further[0].results[1].skipped == "it cannot"
    assert "skipped" in part.table()


def test_protocols_that_are_not_there_are_refused():
    for protocol, message in (("serve", "unknown protocol 'serve'"), ((), "no protocol was named")):
        with pytest.raises(InputError, match=message):
            compare_split(*uneven(), "raw", protocol=protocol)
    with pytest.raises(InputError, match="recall@200 was asked for"):
        compare_split(*uneven(), "raw", protocol=["together", "served"], at=200)


# ---- several class splits ----------------------------------------------------------------------------------------


def test_the_first_split_is_half_and_the_others_are_drawn():
    items = clusters(n_classes=9)
    first, again = split_half(items), split_numbered(items, 0)
    assert [part.ids.tolist() for part in first] == [part.ids.tolist() for part in again]
    drawn = [set(split_numbered(items, number)[0].labels) for number in (1, 2, 3)]
    assert all(len(classes) == 4 for classes in drawn) and len({tuple(sorted(each)) for each in drawn}) > 1
    training, test = split_numbered(items, 1)
    assert not set(training.labels) & set(test.labels) and len(training) + len(test) == len(items)


def test_splits_are_pooled_query_by_query():
    items = clusters(n_classes=13, per_class=6, spread=1.5)
    whole = compare_halves(items, ["pca-whitening"], splits=3, seeds=2, protocol=["together", "open"])
    parts = [
        compare_split(
            *split_numbered(items, number), ["pca-whitening"], seeds=2, number=number, protocol=PROTOCOLS[:3:2]
        )
        for number in range(3)
    ]
    own = whole.result("pca-whitening").per_query["map@r"]
    np.testing.assert_array_equal(own, np.concatenate([p.result("pca-whitening").per_query["map@r"] for p in parts]))
    np.testing.assert_array_equal(whole.labels, np.concatenate([part.labels for part in parts]))
    row = whole.document()["methods"][1]
    assert [(entry["split"], entry["seed"]) for entry in row["seeds"]] == [
        (s, seed) for s in range(3) for seed in (0, 1)
    ]
    assert row["map@r"] == pytest.approx(own.mean()) and len(row["settings"]) == 6
    opened = [part.under("open").document()["methods"][1]["auroc"] for part in parts]
    assert whole.under("open").document()["methods"][1]["auroc"] == pytest.approx(np.mean(opened))
    assert whole.protocol["splits"] == 3 and len(whole.protocol["by_split"]) == 3
    assert whole.protocol["split"] == "the first half of the classes and 2 random halves"


def test_one_split_is_as_before_and_a_given_split_has_no_others():
    items = clusters(n_classes=8)
    one = compare(items, methods=["alpha-qe-8-3"], splits=1).document()
    assert "splits" not in one["protocol"] and one["protocol"]["split"] == "half of the classes"
    words = np.where(items.labels < 4, "train", "test")
    with pytest.raises(InputError, match="splits is 2, but the split is given"):
        compare(items, methods="raw", split=words, splits=2)
    with pytest.raises(InputError, match="splits is 0; wanted"):
        compare(items, methods="raw", splits=0)


def test_a_task_is_named_by_its_protocol_and_kind():
    items = clusters()
    assert (Task("served", items, items).name, Task("sparse", items, items, "zipf").name) == ("served", "sparse, zipf")
    assert (Task("together", items).depth, Task("served", items, items).depth) == (79, 80)
