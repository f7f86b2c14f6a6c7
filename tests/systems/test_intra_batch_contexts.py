"""Contexts against their definitions, item by item: who is in a group, and where its anchor stands."""

from functools import partial

import numpy as np
import pytest
from tests.refiner.samples import clusters

from entourage.errors import InputError
from entourage.systems.intra_batch.clusters import CLUSTERINGS, cluster
from entourage.systems.intra_batch.contexts import (
    CONTEXTS,
    Contexts,
    cluster_contexts,
    find_contexts,
    nearest_contexts,
    reciprocal_contexts,
)
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def sample(count=60, copies=0, seed=0) -> Embeddings:
    vectors, _ = clusters(seed, n_classes=count // 6, per_class=6, noise=0.8, dim=8)
    vectors[:copies] = vectors[-1]
    return Embeddings.from_vectors(vectors, ids=[f"item {row:03}" for row in range(count)])


def ranking(items) -> list[list[int]]:
    """All others of each item, nearest first, equal ones by id."""
    similarity = items.vectors.astype(np.float64) @ items.vectors.T
    similarity = similarity.astype(np.float32).round(6)
    rows = range(len(items))
    return [sorted((j for j in rows if j != i), key=lambda j: (-similarity[i, j], items.ids[j])) for i in rows]


def by_definition(items, size, k) -> list[set[int]]:
    order = ranking(items)

    def mutual(i, k):
        return {i} | {j for j in order[i][:k] if i in order[j][:k]}

    groups = []
    for i in range(len(items)):
        members = set(mutual(i, k))
        for j in mutual(i, k):
            candidate = mutual(j, round(k / 2))
            if len(candidate & mutual(i, k)) >= 2 / 3 * len(candidate):
                members |= candidate
        near_first = [j for j in order[i] if j in members]
        filling = [j for j in order[i] if j not in members]
        groups.append({i, *[*near_first, *filling][: size - 1]})
    return groups


@pytest.mark.parametrize("copies", [0, 4])
@pytest.mark.parametrize(("size", "k1"), [(7, 30), (7, 4), (3, 10), (20, 5), (60, 30), (100, 100), (1, 3)])
def test_reciprocal_groups_are_those_of_the_definition(size, k1, copies):
    items = sample(copies=copies)
    contexts = reciprocal_contexts(items, size, k1)
    assert contexts.groups.shape == (60, min(size, 60))
    assert [set(group) for group in contexts.groups.tolist()] == by_definition(items, min(size, 60), k1)


@pytest.mark.parametrize(("size", "n"), [(5, 4), (5, 7), (1, 3), (99, 2), (3, 1), (2, 100)])
def test_nearest_groups_are_chunks_of_an_item_and_its_nearest(size, n):
    """60 chunks, n to a group; where n does not divide them, the last group is filled with chunks of others."""
    items = sample(copies=3)
    contexts = nearest_contexts(items, size, n)
    wanted = [{i, *order[: size - 1]} for i, order in enumerate(ranking(items))]
    size, n = min(size, 60), min(n, 60)
    assert contexts.groups.shape == (-(-60 // n), n * size)
    chunks = contexts.groups.reshape(-1, size)
    assert all(set(chunk) == wanted[chunk[0]] for chunk in chunks.tolist())  # its anchor comes first
    assert sorted(chunks[:60, 0].tolist()) == list(range(60))
    assert contexts.group_of[chunks[:60, 0]].tolist() == [place // n for place in range(60)]


def test_anchors_are_found_wherever_they_stand_in_their_group():
    groups = np.array([[2, 0], [1, 0], [1, 2]])
    assert Contexts(groups, np.arange(3)).anchors.tolist() == [[1], [0], [1]]
    assert Contexts(groups, np.array([0, 2, 2])).anchors.tolist() == [[1, 0], [0, 1], [0, 1]]  # at most two to a group
    assert Contexts(np.array([[1, 0, 1], [2, 2, 1]]), np.array([0, 0, 1])).anchors.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(InputError, match="item 0 is not in its own group"):
        Contexts(groups, np.array([2, 1, 2]))


def test_places_where_an_item_stands_again_are_known():
    groups = np.random.default_rng(0).integers(0, 6, (40, 9))
    groups[:, :6] = np.arange(6)  # all are everywhere
    wanted = [[row in group[:place] for place, row in enumerate(group)] for group in groups.tolist()]
    assert Contexts(groups, np.zeros(6, int)).repeated.tolist() == wanted


# ---- clusters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", sorted(CLUSTERINGS))
def test_clusters_of_well_separated_classes_are_the_classes(by):
    vectors, labels = clusters(0, n_classes=6, per_class=10, noise=0.05)
    codes = cluster(Embeddings.from_vectors(vectors).vectors, by, 6)
    assert len(np.unique(codes)) == 6
    assert all(len(np.unique(codes[labels == label])) == 1 for label in range(6))


@pytest.mark.parametrize("n_clusters", [1, 11, 12, 1000])
@pytest.mark.parametrize("by", sorted({*CLUSTERINGS} - {"dbscan", "optics"}))
def test_as_many_clusters_as_items_or_more_are_one_for_each(by, n_clusters):
    codes = cluster(sample(12).vectors, by, n_clusters)
    found = len(np.unique(codes))
    assert found == 12 if n_clusters >= 12 else found <= n_clusters


@pytest.mark.parametrize("by", sorted(CLUSTERINGS))
def test_two_items_can_be_clustered(by):
    assert cluster(np.eye(2, dtype=np.float32), by).shape == (2,)


def test_noise_is_a_cluster_by_itself():
    codes = cluster(np.eye(6, dtype=np.float32), "dbscan")
    assert sorted(codes.tolist()) == list(range(6))


@pytest.mark.parametrize(("n", "p"), [(3, 4), (2, 6), (1, 5), (50, 7), (4, 100)])
def test_groups_of_clusters_are_chunks_of_one_cluster_each(n, p):
    items = sample()
    codes = np.arange(60) % 7 // 2  # clusters of 18, 18, 16 and 8
    contexts = cluster_contexts(items, codes, n, p)
    chunk = min(p, 60)
    chunks = contexts.groups.reshape(-1, chunk)
    assert all(row in contexts.groups[contexts.group_of[row]] for row in range(60))
    assert contexts.groups.shape[1] % chunk == 0
    counts = np.bincount(codes)
    for rows in chunks:  # filled with others of its cluster, then with items of other clusters
        assert len(set(rows.tolist())) == chunk
        assert (codes[rows] == codes[rows[0]]).sum() >= min(chunk, counts[codes[rows[0]]])


def test_a_cluster_too_small_for_a_chunk_is_filled_with_the_nearest():
    items = sample()
    codes = np.zeros(60, int)
    codes[7] = 1
    contexts = cluster_contexts(items, codes, 2, 5)
    (lonely,) = [rows for rows in contexts.groups.reshape(-1, 5).tolist() if rows[0] == 7]
    assert lonely == [7, *ranking(items)[7][:4]]


def test_the_seed_decides_the_groups():
    items, codes = sample(), np.arange(60) % 5
    for found in (partial(cluster_contexts, items, codes, 2, 3), partial(nearest_contexts, items, 3, 4)):
        first, same, other = (found(seed=seed).groups for seed in (0, 0, 1))
        assert np.array_equal(first, same) and not np.array_equal(first, other)


# ---- by name -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", CONTEXTS)
def test_every_context_has_its_name(by):
    size = {"size": 4} if by in ("reciprocal", "nearest") else {}
    contexts = find_contexts(sample(), by, **size, k1=5, batch=(2, 3), n_clusters=10)
    assert contexts.groups.shape[1] == {"reciprocal": 4, "nearest": 2 * 4}.get(by, 2 * 3)
    assert find_contexts(sample(12), by).group_of.shape == (12,)  # fewer items than are asked for


@pytest.mark.parametrize(
    ("by", "options", "said"),
    [
        ("friends", {}, "the context is 'friends'; wanted one of reciprocal, nearest, birch"),
        ("reciprocal", {"size": 1}, "size is 1; wanted 2 or more"),
        ("kmeans", {"size": 9}, "size is 9 but groups by kmeans have the size of training, 10 chunks of 7 items"),
        ("reciprocal", {"k1": 0}, "k1 is 0; wanted 1 or more"),
        ("kmeans", {"n_clusters": -1}, "n_clusters is -1; wanted 1 or more"),
    ],
)
def test_what_cannot_be_a_context_is_refused(by, options, said):
    with pytest.raises(InputError, match=said):
        find_contexts(sample(), by, **options)


def test_one_item_has_no_context():
    with pytest.raises(InputError, match="there is 1 item; wanted two or more"):
        find_contexts(Embeddings.from_vectors([[1.0, 0.0]]))
