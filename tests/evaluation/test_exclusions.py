"""Person re-identification: each rule changes the result of a hand-made gallery, and all of them equal a plain loop."""

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings
from entourage.evaluation.exclusions import any_match
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

RE_ID = ("recall@1", "recall@5", "recall@10", "map", "map-trapezoid")


def angles(*degrees) -> np.ndarray:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


# One query, person 7 by camera 1, at 0 degrees. The gallery, from near to far:
#   2 person -1, junk;  5 person 7 by camera 1;  10 a distractor;  20 person 7 by camera 2;  30 person 9;
#   40 person 7 by camera 3;  50 person 7 by camera 1
QUERY = {"labels": [7], "cameras": [1]}
DEGREES, PERSONS, CAMERAS = (2, 5, 10, 20, 30, 40, 50), [-1, 7, 0, 7, 9, 7, 7], [1, 1, 1, 2, 1, 3, 1]


def scores(*, cameras=True, junk=-1) -> dict:
    queries = Embeddings.from_vectors(angles(0), labels=QUERY["labels"], cameras=QUERY["cameras"] if cameras else None)
    gallery = Embeddings.from_vectors(angles(*DEGREES), labels=PERSONS, cameras=CAMERAS if cameras else None)
    return evaluate_embeddings(queries, gallery, junk=junk, nmi=False).metrics


def test_every_rule_changes_the_result():
    """Left are 10 wrong, 20 right, 30 wrong, 40 right: R = 2, hits at ranks 2 and 4."""
    both = scores()
    assert [both[name] for name in ("recall@1", "recall@2")] == [0, 1]
    assert both["map"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert both["map-trapezoid"] == pytest.approx(((0 + 1 / 2) / 2 + (1 / 3 + 2 / 4) / 2) / 2)
    # With junk ranked as wrong, everything stands one place further back.
    assert scores(junk=None)["map"] == pytest.approx((1 / 3 + 2 / 5) / 2)
    # Without the rule of cameras 5 and 50 are right: hits at 1, 3, 5, 6 of R = 4.
    same_camera = scores(cameras=False)
    assert same_camera["recall@1"] == 1
    assert same_camera["map@1000"] == pytest.approx((1 + 2 / 3 + 3 / 5 + 4 / 6) / 4)
    assert "map" not in same_camera and "recall@5" not in same_camera


def test_the_protocol_says_which_rules_were_applied():
    queries = Embeddings.from_vectors(angles(0), labels=["7"], cameras=[1])  # numbers match their text form
    gallery = Embeddings.from_vectors(angles(*DEGREES), labels=PERSONS, cameras=CAMERAS)
    protocol = evaluate_embeddings(queries, gallery, junk="-1", nmi=False).protocol
    assert protocol["junk"] == "1 gallery items labelled -1 left out" and protocol["gallery"] == 6
    assert protocol["same_camera"] == "items of the query's label by its own camera left out"
    assert "same_sequence" not in protocol


def test_the_querys_own_sequence_is_left_out_whatever_its_label():
    queries = Embeddings.from_vectors(angles(0), labels=["a"], sequences=["s"])
    gallery = Embeddings.from_vectors(angles(1, 2, 3, 4), labels=list("abba"), sequences=["s", "s", "t", "u"])
    metrics = evaluate_embeddings(queries, gallery, nmi=False).metrics
    assert (metrics["recall@1"], metrics["map"]) == (0, 1 / 2)  # what is left: b, a
    assert evaluate_embeddings(queries, gallery, nmi=False).protocol["same_sequence"].endswith("left out")


def test_a_query_left_without_matches_counts_as_zero_or_not_at_all():
    queries = Embeddings.from_vectors(angles(0, 90), labels=[1, 2], cameras=[1, 1])
    gallery = Embeddings.from_vectors(angles(5, 80), labels=[1, 2], cameras=[1, 2])
    zero = evaluate_embeddings(queries, gallery, nmi=False)
    assert zero.metrics["map"] == 1 / 2 and zero.protocol["queries_without_match"] == 1
    assert evaluate_embeddings(queries, gallery, no_match="drop", nmi=False).metrics["map"] == 1


# ---- against a plain loop ----------------------------------------------------------------------------------------


def by_loop(queries: Embeddings, gallery: Embeddings, junk, same_set: bool) -> dict:
    """Single-query CMC and both average precisions as person re-identification defines them, item by item."""
    cmc, standard, trapezoid = [], [], []
    for q in range(len(queries)):
        ranking = []
        for g in np.lexsort((gallery.ids, -(gallery.vectors @ queries.vectors[q]).astype(np.float64))):
            if (same_set and g == q) or str(gallery.labels[g]) == str(junk):
                continue
            same_label = queries.labels[q] == gallery.labels[g]
            if queries.cameras is not None and same_label and queries.cameras[q] == gallery.cameras[g]:
                continue
            if queries.sequences is not None and queries.sequences[q] == gallery.sequences[g]:
                continue
            ranking.append(bool(gallery.labels[g] == queries.labels[q]))
        total, found, area, before, sum_of_precisions = sum(ranking), 0, 0.0, 1.0, 0.0
        for position, right in enumerate(ranking, start=1):
            found += right
            precision = found / position
            if right:
                sum_of_precisions += precision
                area += (before + precision) / 2 / total
            before = precision
        cmc.append([any(ranking[:k]) for k in (1, 5, 10)])
        standard.append(sum_of_precisions / max(total, 1))
        trapezoid.append(area)
    return dict(zip(RE_ID, [*np.mean(cmc, axis=0), np.mean(standard), np.mean(trapezoid)], strict=True))


def people(count: int, seed: int, *, cameras=True, sequences=False, ids=None) -> Embeddings:
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 6, size=count)
    vectors = np.random.default_rng(9).normal(size=(7, 5))[labels] + rng.normal(size=(count, 5))
    return Embeddings.from_vectors(
        vectors,
        ids,
        labels,
        cameras=rng.integers(3, size=count) if cameras else None,
        sequences=rng.integers(8, size=count).astype(str) if sequences else None,
    )


@pytest.mark.parametrize(("cameras", "sequences"), [(True, False), (False, True), (True, True)])
def test_queries_in_a_gallery_as_by_a_plain_loop(cameras, sequences):
    known = {"cameras": cameras, "sequences": sequences}
    queries = people(40, seed=1, **known)
    queries = queries.take(np.flatnonzero(queries.labels >= 0))
    gallery = people(150, seed=2, ids=np.random.default_rng(3).permutation(150), **known)
    metrics = evaluate_embeddings(queries, gallery, junk=-1, nmi=False).metrics
    assert {name: metrics[name] for name in RE_ID} == pytest.approx(by_loop(queries, gallery, -1, same_set=False))


def test_one_set_searched_in_itself_as_by_a_plain_loop():
    items = people(80, seed=4, sequences=True)
    metrics = evaluate_embeddings(items, nmi=False).metrics
    assert {name: metrics[name] for name in RE_ID} == pytest.approx(by_loop(items, items, None, same_set=True))


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_cameras_on_one_side_only_are_refused():
    queries = Embeddings.from_vectors(angles(0), labels=[1], cameras=[1])
    gallery = Embeddings.from_vectors(angles(5), labels=[1])
    with pytest.raises(InputError, match="the queries have cameras and the gallery have none"):
        evaluate_embeddings(queries, gallery)


def test_a_gallery_in_which_nothing_counts_is_refused():
    queries = Embeddings.from_vectors(angles(0), labels=[1], cameras=[1])
    with pytest.raises(InputError, match="no query has a match"):
        evaluate_embeddings(queries, Embeddings.from_vectors(angles(5, 6), labels=[1, 2], cameras=[1, 2]), nmi=False)
    with pytest.raises(InputError, match="every gallery item is labelled 2, as junk"):
        evaluate_embeddings(queries, Embeddings.from_vectors(angles(5), labels=[2], cameras=[1]), junk=2)


def test_junk_among_the_queries_is_refused():
    items = people(20, seed=0)
    with pytest.raises(InputError, match="queries are labelled -1, as junk"):
        evaluate_embeddings(items, junk=-1)


@pytest.mark.parametrize(("cameras", "wanted"), [([1, 1], False), ([1, 2], True), (None, True)])
def test_whether_there_is_anything_to_find_is_known_beforehand(cameras, wanted):
    items = Embeddings.from_vectors(angles(0, 9), labels=[4, 4], cameras=cameras)
    assert any_match(items, items) is wanted
    assert not any_match(items.take([0]), Embeddings.from_vectors(angles(9), labels=[5], cameras=cameras and [3]))
