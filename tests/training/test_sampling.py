"""Which items meet in a batch, and which classes are kept apart."""

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.training.sampling import (
    class_balanced_batches,
    cluster_batches,
    hold_out_classes,
    share_of_rank,
    usable_classes,
)

# Twelve classes of 2 to 13 items, shuffled, and three with a single item.
LABELS = np.random.default_rng(0).permutation(
    np.concatenate([np.repeat(np.arange(12), np.arange(2, 14)), [90, 91, 92]])
)
SINGLE = {90, 91, 92}


def batches(n_classes=5, per_class=2, seed=0, epoch=1, labels=LABELS):
    return class_balanced_batches(labels, n_classes, per_class, seed=seed, epoch=epoch)


# ---- batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "per_class"), [(5, 2), (3, 4), (12, 2), (2, 9)])
def test_every_batch_holds_as_many_items_of_each_of_its_classes(n_classes, per_class):
    drawn = batches(n_classes, per_class)
    assert drawn.shape[1] == n_classes * per_class
    for batch in drawn:
        classes, counts = np.unique(LABELS[batch], return_counts=True)
        assert len(classes) == n_classes
        assert set(counts) == {per_class}


def test_items_of_a_class_do_not_repeat_in_a_batch_if_there_are_enough():
    for epoch in range(20):
        for batch in batches(12, 4, epoch=epoch):
            for label in range(2, 12):  # classes of four items and more
                assert len(set(batch[LABELS[batch] == label])) == 4


def test_a_class_with_too_few_items_is_filled_by_repetition():
    labels = np.array([0, 0, 1, 1, 1, 1, 1])
    for batch in batches(2, 5, labels=labels):
        assert sorted(labels[batch]) == [0] * 5 + [1] * 5
        assert sorted(batch[labels[batch] == 1]) == [2, 3, 4, 5, 6]


def test_classes_with_a_single_item_are_never_drawn_and_all_others_are():
    drawn = {label for epoch in range(30) for label in LABELS[batches(epoch=epoch)].ravel().tolist()}
    assert drawn == set(LABELS.tolist()) - SINGLE


def test_every_item_of_a_usable_class_is_drawn_in_time():
    drawn = {row for epoch in range(100) for row in batches(epoch=epoch).ravel().tolist()}
    assert drawn == set(np.flatnonzero(~np.isin(LABELS, list(SINGLE))).tolist())


def test_an_epoch_draws_about_as_many_items_as_there_are():
    usable = len(LABELS) - len(SINGLE)
    assert len(batches(5, 2)) == round(usable / 10)
    assert len(batches(12, 9)) == 1  # 108 asked of 90: still one batch


def test_fewer_classes_than_asked_are_all_taken():
    for batch in batches(64, 2):
        assert len(np.unique(LABELS[batch])) == 12


def test_batches_are_decided_by_seed_and_epoch_alone():
    np.random.seed(1)
    first = batches(seed=3, epoch=4)
    np.random.seed(2)
    batches(seed=3, epoch=5)
    np.testing.assert_array_equal(batches(seed=3, epoch=4), first)
    assert not np.array_equal(batches(seed=3, epoch=5), first)
    assert not np.array_equal(batches(seed=4, epoch=4), first)
    assert not np.array_equal(batches(seed=4, epoch=3), first), "seed and epoch are not merely added"


@pytest.mark.parametrize(("labels", "seen"), [([0, 1, 2], "0 classes"), ([0, 0, 1, 2], "1 class ")])
def test_fewer_than_two_usable_classes_are_refused(labels, seen):
    with pytest.raises(InputError, match=seen):
        batches(labels=np.array(labels))


# ---- classes held out --------------------------------------------------------------------------------------------


def test_usable_classes_have_two_items_or_more():
    assert usable_classes(LABELS).tolist() == list(range(12))


@pytest.mark.parametrize(("share", "count"), [(0.25, 3), (0.5, 6), (0.01, 2), (0.99, 10)])
def test_whole_classes_are_held_out_and_at_least_two_on_either_side(share, count):
    held_out = hold_out_classes(LABELS, share, seed=0)
    inside, outside = set(LABELS[held_out].tolist()), set(LABELS[~held_out].tolist())
    assert not inside & outside
    assert len(inside) == count
    assert len(outside - SINGLE) == 12 - count
    assert outside >= SINGLE, "a single item can be judged by nobody, but serves as context"


def test_the_choice_is_seeded():
    choices = [tuple(np.unique(LABELS[hold_out_classes(LABELS, 0.25, seed)])) for seed in (0, 0, 1, 2, 3)]
    assert choices[0] == choices[1]
    assert len(set(choices)) > 1


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2, 3, 4, 5]])
def test_with_fewer_than_four_usable_classes_none_is_held_out(labels):
    assert not hold_out_classes(np.array(labels), 0.5, seed=0).any()


def test_a_share_of_zero_holds_nothing_out():
    assert not hold_out_classes(LABELS, 0, seed=0).any()


def test_four_usable_classes_are_parted_in_two_and_two():
    labels = np.repeat(np.arange(4), 2)
    assert len(np.unique(labels[hold_out_classes(labels, 0.2, seed=0)])) == 2


# ---- batches from one cluster ------------------------------------------------------------------------------------

CLUSTERS = np.random.default_rng(1).integers(0, 3, len(LABELS)) * 10  # codes need not be 0, 1, 2


def from_clusters(n_classes=3, per_class=2, seed=0, epoch=1, labels=LABELS, clusters=CLUSTERS):
    return cluster_batches(labels, clusters, n_classes, per_class, seed=seed, epoch=epoch)


def test_a_batch_comes_from_one_cluster_and_is_balanced():
    drawn = from_clusters()
    for batch in drawn:
        assert len(set(CLUSTERS[batch])) == 1
        classes, counts = np.unique(LABELS[batch], return_counts=True)
        assert len(classes) == 3 and set(counts) == {2}
    assert {CLUSTERS[batch[0]] for batch in drawn} == {0, 10, 20}


def test_a_class_with_one_item_in_a_cluster_is_skipped_there():
    labels = np.array([0, 0, 1, 1, 2, 0, 2, 2, 3, 3])
    clusters = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])  # class 2 is alone in cluster 0, class 0 in cluster 1
    for epoch in range(10):
        for batch in from_clusters(4, 2, epoch=epoch, labels=labels, clusters=clusters):
            assert set(labels[batch]) == ({0, 1} if clusters[batch[0]] == 0 else {2, 3})


def test_clusters_take_turns_as_often_as_their_size_asks():
    labels, clusters = np.tile([0, 0, 1, 1], 9), np.repeat([0, 1, 2], [24, 8, 4])
    order = [clusters[batch[0]] for batch in from_clusters(2, 2, labels=labels, clusters=clusters)]
    assert order == [0, 0, 1, 0, 2, 0, 0, 1, 0]


def test_a_cluster_without_two_usable_classes_is_left_out_and_if_none_is_left_that_is_an_error():
    labels, clusters = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 0, 1, 1])
    assert {clusters[batch[0]] for batch in from_clusters(labels=labels, clusters=clusters)} == {0}
    with pytest.raises(InputError, match=r"no cluster has 2 classes.*fewer clusters"):
        from_clusters(labels=labels, clusters=np.array([0, 0, 1, 1, 2, 2]))


def test_batches_too_small_for_all_processes_are_left_out_and_the_others_stay_as_they_are():
    labels, clusters = np.tile([0, 0, 1, 1, 2, 2], 4), np.repeat([0, 1], [12, 12])
    labels[12:][labels[12:] == 2] = 0  # cluster 0 has three classes, cluster 1 two
    every, six = (cluster_batches(labels, clusters, 3, 2, seed=0, epoch=1, at_least=at_least) for at_least in (4, 5))
    assert {len(batch) for batch in every} == {4, 6}
    np.testing.assert_array_equal(six, [batch for batch in every if len(batch) == 6])
    with pytest.raises(InputError, match=r"no cluster has 4 classes.*fewer processes"):
        cluster_batches(labels, clusters, 3, 2, seed=0, epoch=1, at_least=7)


def test_cluster_batches_are_decided_by_seed_and_epoch_alone():
    first = from_clusters(seed=3, epoch=4)
    for same, drawn in zip(first, from_clusters(seed=3, epoch=4), strict=True):
        np.testing.assert_array_equal(same, drawn)
    for seed, epoch in ((3, 5), (4, 4)):
        other = from_clusters(seed=seed, epoch=epoch)
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_one_cluster_code_per_item_is_wanted():
    with pytest.raises(InputError, match="3 cluster codes for 93 labels"):
        from_clusters(clusters=np.zeros(3, int))


# ---- several processes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 10])
def test_the_shares_of_all_processes_are_the_batch_of_one(world_size):
    for batch in batches():
        shares = [share_of_rank(batch, rank, world_size) for rank in range(world_size)]
        np.testing.assert_array_equal(np.concatenate(shares), batch)
        sizes = [len(share) for share in shares]
        assert max(sizes) - min(sizes) <= 1


def test_a_batch_that_cannot_give_every_process_an_item_is_refused():
    with pytest.raises(InputError, match="3 items for 4 processes"):
        share_of_rank(np.arange(3), 0, 4)
