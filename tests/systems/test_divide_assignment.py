"""Which learner goes on with which cluster: the direction of the permutation, and clusters that come and go."""

from itertools import permutations

import numpy as np
import pytest

from entourage.systems.divide_and_conquer.assignment import as_learners, overlaps

BEFORE = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])


@pytest.mark.parametrize("renamed", list(permutations(range(3))), ids=str)
def test_the_same_clusters_under_other_names_change_nothing(renamed):
    """Two of the six are 3-cycles, which differ from their inverses; the first is the unchanged clustering."""
    after = np.array(renamed)[BEFORE]
    assert as_learners(BEFORE, after, 3).tolist() == BEFORE.tolist()


def test_a_few_items_that_moved_follow_their_new_cluster():
    after = np.array([2, 2, 0, 0, 0, 1, 1, 1, 0])  # the 3-cycle 0 -> 2 -> 1 -> 0, items 2 and 8 moved to cluster 0
    assert as_learners(BEFORE, after, 3).tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 1]


def test_an_empty_cluster_leaves_a_learner_without_items():
    after = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0])  # none in cluster 2
    assert as_learners(BEFORE, after, 3).tolist() == [0, 0, 0, 0, 0, 2, 2, 2, 2]


def test_a_learner_whose_cluster_had_vanished_gets_what_no_other_goes_on_with():
    before = np.array([0, 0, 0, 0, 2, 2])  # learner 1 had none
    after = np.array([0, 0, 0, 1, 2, 2])
    assert as_learners(before, after, 3).tolist() == [0, 0, 0, 1, 2, 2]


def test_overlaps_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    before, after = rng.integers(4, size=50), rng.integers(5, size=50)
    found = overlaps(before, after, 6)  # some clusters are empty on both sides
    for i in range(6):
        for j in range(6):
            left, right = set(np.flatnonzero(before == i)), set(np.flatnonzero(after == j))
            assert found[i, j] == (len(left & right) / len(left | right) if left | right else 0)


def test_the_pairing_is_the_best_of_all():
    rng = np.random.default_rng(1)
    for _ in range(20):
        before, after = rng.integers(4, size=30), rng.integers(4, size=30)
        iou = overlaps(before, after, 4)
        learners = as_learners(before, after, 4)
        learner_of = {int(cluster): int(learner) for cluster, learner in zip(after, learners, strict=True)}
        assert len(set(learner_of.values())) == len(learner_of)
        best = max(sum(iou[one[j], j] for j in range(4)) for one in permutations(range(4)))
        assert sum(iou[learner, cluster] for cluster, learner in learner_of.items()) == pytest.approx(best)
