import numpy as np
import pytest

from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.runs.figures.choosing import (
    DRIFTING,
    choose_changed,
    choose_drifting,
    choose_row,
    choose_rows,
    first,
    most_changed,
    sheet_size,
)
from entourage.values import Embeddings, Neighbors


def items(count: int, labels=None) -> Embeddings:
    return Embeddings(np.ones((count, 1), np.float32), [f"id {row}" for row in range(count)], labels)


def neighbors(rows) -> Neighbors:
    return Neighbors(rows, np.zeros(np.shape(rows)))


def test_whole_classes_are_chosen_and_the_last_is_cut():
    labelled = items(40, np.tile(np.arange(8), 5))
    rows = choose_rows(labelled, 22, seed=0)
    counts = np.bincount(labelled.labels[rows], minlength=8)
    assert sorted(counts.tolist()) == [0, 0, 0, 2, 5, 5, 5, 5] and (np.diff(rows) > 0).all()
    assert choose_rows(labelled, 22, seed=0).tolist() == rows.tolist() != choose_rows(labelled, 22, seed=1).tolist()


def test_without_labels_any_items_are_chosen():
    rows = choose_rows(items(40), 11, seed=0)
    assert len(set(rows.tolist())) == 11 and rows.max() < 40


@pytest.mark.parametrize("points", [None, 40, 90])
def test_all_are_taken_where_there_is_room(points):
    assert choose_rows(items(40), points, seed=0) is None


def test_a_picture_of_one_item_is_refused():
    with pytest.raises(InputError, match="points is 1; wanted 2 or more"):
        choose_rows(items(40), 1, seed=0)


def drawn(labels, points=None, seed=0) -> dict:
    """How many items of each class a drift shows."""
    rows = choose_drifting(items(len(labels), labels), points, seed)
    assert (np.diff(rows) > 0).all()
    return dict(zip(*(each.tolist() for each in np.unique(np.asarray(labels)[rows], return_counts=True)), strict=True))


def test_a_drift_takes_the_most_frequent_classes_and_as_many_of_each():
    labels = np.repeat(np.arange(100), np.arange(1, 101))  # the last are the most frequent
    chosen = drawn(labels)
    assert chosen == {code: 20 for code in range(76, 100)}
    few = np.repeat(["long", "a", "b"], [2000, 300, 5])
    assert drawn(few) == {"long": 238, "a": 237, "b": 5}


def test_of_classes_that_are_equally_frequent_the_seed_takes_some():
    labels = np.repeat(np.arange(100), 30)
    chosen = [drawn(labels, seed=seed) for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2] and all(set(some.values()) == {20} for some in chosen)
    assert sorted(chosen[0]) != list(range(24))


def test_no_class_of_a_drift_goes_without_a_name_unless_more_items_are_asked_for():
    pairs = np.repeat(np.arange(1000), 2)
    assert sum(drawn(pairs).values()) == 48
    asked = drawn(pairs, points=100)
    assert sum(asked.values()) == 100 and set(asked.values()) == {2}
    assert sum(drawn(pairs, points=1001).values()) == 1001
    assert len(choose_drifting(items(2000, pairs), 2000, 0)) == 2000


def test_few_items_of_a_drift_are_of_few_classes():
    assert list(drawn(np.repeat(np.arange(50), 40), points=30).values()) == [10, 10, 10]


def test_without_labels_a_drift_takes_any_items_and_of_few_all():
    assert len(choose_drifting(items(2000), None, 0)) == DRIFTING
    assert choose_drifting(items(DRIFTING), None, 0).tolist() == list(range(DRIFTING))
    with pytest.raises(InputError, match="points is 1; wanted 2 or more"):
        choose_drifting(items(40), 1, 0)


def test_a_query_is_chosen_by_its_id():
    assert choose_row(items(40), "id 7") == 7
    with pytest.raises(InputError, match="which is not an id of the 40 items; wanted one like id 0, id 1 or id 2"):
        choose_row(items(40), "7")
    with pytest.raises(InputError, match=r"the query is '7', which is not an id of the 1 items; wanted one like id 0$"):
        choose_row(items(1), "7")


def test_gains_and_losses_are_chosen_or_what_changed_or_anything():
    before, after = neighbors([[1, 2], [2, 3], [3, 0], [0, 1]]), neighbors([[2, 1], [0, 3], [1, 4], [0, 1]])
    assert choose_changed(np.array([0.1, -0.2, 0.4, 0.3]), before, after, 3).tolist() == [2, 1]
    assert choose_changed(np.zeros(4), before, after, 3).tolist() == [0, 1, 2]
    alike, labels = np.array([0.5, 0.5, 0.5, 0.0]), np.array(["a", "b", "b", "b"])
    assert choose_changed(alike, before, after, 2, labels).tolist() == [1]  # of the most frequent label
    assert choose_changed(None, before, after, 2).tolist() == most_changed(before, after, 2).tolist() == [2, 1]
    assert first(before, 1).rows.tolist() == [[1], [2], [3], [0]]


def test_sheets_of_texts_are_smaller_than_those_of_pictures():
    ids = np.arange(3)
    assert sheet_size(Appearance(ids, picture=lambda row: None)) == (8, 8)
    assert sheet_size(Appearance(ids)) == sheet_size(Appearance(ids, texts=["a", "b", "c"])) == (4, 5)
