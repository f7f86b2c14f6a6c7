"""Copies counted once: who stands for whom, and the search among those who stand for themselves."""

import numpy as np
import pytest

from entourage.neighbors import search
from entourage.neighbors.copies import copy_similarity, distinct_items, search_distinct
from entourage.values import Embeddings


def vectors(seed: int, n: int, d: int = 16) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def with_noise(table, scale: float, seed: int = 9) -> np.ndarray:
    """Each vector moved by about `scale` of its length."""
    noise = np.random.default_rng(seed).normal(size=table.shape)
    return table + scale * noise * np.linalg.norm(table, axis=1)[:, None] / np.sqrt(table.shape[1])


def on_an_arc(*degrees) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def first_in_order(items: Embeddings, similarity: float) -> list[int]:
    """The row that stands for each item, by definition: in order of id, the first before it that is near enough."""
    products = items.vectors.astype(np.float64) @ items.vectors.T.astype(np.float64)
    order, stand_in = np.argsort(items.ids, kind="stable"), {}
    for position, item in enumerate(order):
        near = [o for o in order[:position] if stand_in[o] == o and products[item, o] >= similarity]
        stand_in[item] = near[0] if near else item
    return [int(stand_in[item]) for item in range(len(items))]


def check_search(items: Embeddings, k: int, exact: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """search_distinct is a plain search of the distinct items; with copies that are not exact, up to their noise."""
    rows, stands_for, found = search_distinct(items, k)
    assert rows.tolist() == sorted(set(rows.tolist())) and stands_for.shape == (len(items),)
    np.testing.assert_array_equal(stands_for[rows], np.arange(len(rows)))
    again = distinct_items(items)
    np.testing.assert_array_equal(rows, again[0])
    np.testing.assert_array_equal(stands_for, again[1])
    plain = search(items.take(rows), k=min(k, len(rows) - 1))
    assert found.rows.shape == plain.rows.shape
    assert all(len(set(row)) == found.k and i not in row for i, row in enumerate(found.rows.tolist()))
    if exact:
        np.testing.assert_array_equal(found.rows, plain.rows)
    assert (found.rows == plain.rows).mean() > 0.97
    np.testing.assert_allclose(found.similarities, plain.similarities, atol=1e-6 if exact else 3e-3)
    return rows, stands_for


def test_without_copies_everything_stands_for_itself():
    rows, stands_for = check_search(Embeddings.from_vectors(vectors(0, 60)), k=7)
    assert rows.tolist() == stands_for.tolist() == list(range(60))


@pytest.mark.parametrize("times", [2, 5, 30])
@pytest.mark.parametrize("noise", [0, 1e-3])
def test_copies_exact_or_nearly_so_count_once_however_many_there_are(times, noise):
    items = Embeddings.from_vectors(with_noise(np.repeat(vectors(1, 40), times, axis=0), noise))
    rows, stands_for = check_search(items, k=6, exact=not noise)
    assert rows.tolist() == [times * i for i in range(40)]
    np.testing.assert_array_equal(stands_for, np.repeat(np.arange(40), times))


def test_a_few_copies_need_no_second_search(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "entourage.neighbors.copies.search", lambda *args, **options: calls.append(1) or search(*args, **options)
    )
    table = vectors(2, 50)
    table[[7, 19, 33]] = table[[3, 18, 32]]
    rows, _, found = search_distinct(Embeddings.from_vectors(table), 6)
    assert (len(rows), found.rows.shape, len(calls)) == (47, (47, 6), 1)


def test_near_items_that_are_not_copies_stay():
    items = Embeddings.from_vectors(with_noise(np.repeat(vectors(3, 40), 2, axis=0), 0.3))
    assert len(check_search(items, k=6)[0]) == 80


def test_the_stand_in_is_the_first_by_id_not_by_row():
    table = vectors(4, 30)
    table[[20, 25]] = table[4]
    ids = np.arange(30)[::-1] * 10  # the last row comes first
    rows, stands_for = check_search(Embeddings.from_vectors(table, ids=ids), k=4)
    assert 25 in rows and not {4, 20} & set(rows.tolist())
    assert rows[stands_for[[4, 20, 25]]].tolist() == [25, 25, 25]


def test_the_items_chosen_do_not_depend_on_the_order_of_the_rows():
    table = with_noise(np.repeat(vectors(5, 30), 3, axis=0), 1e-3)
    items = Embeddings.from_vectors(table, ids=[f"{i:03}" for i in range(90)])
    order = np.random.default_rng(6).permutation(90)
    shuffled = items.take(order)
    (rows, stands_for), (other_rows, other_stands_for) = distinct_items(items), distinct_items(shuffled)
    assert set(items.ids[rows]) == set(shuffled.ids[other_rows])
    np.testing.assert_array_equal(shuffled.ids[other_rows][other_stands_for], items.ids[rows][stands_for][order])


def test_a_chain_does_not_pull_its_far_ends_together():
    """Each link is a copy of the next, but only neighbours on the chain are copies of each other."""
    items = Embeddings.from_vectors(on_an_arc(0, 1, 2, 3, 4, 90, 180, 270))
    rows, stands_for = distinct_items(items, np.cos(np.radians(1.5)))
    assert rows.tolist() == [0, 2, 4, 5, 6, 7]
    assert rows[stands_for].tolist() == [0, 0, 2, 2, 4, 5, 6, 7]


@pytest.mark.parametrize("seed", range(4))
def test_who_stands_for_whom_is_as_the_definition_says(seed):
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 360, 12))[:, None] + rng.uniform(0, 3, (12, 4))
    items = Embeddings.from_vectors(on_an_arc(*angles.ravel()), ids=rng.permutation(48))
    similarity = np.cos(np.radians(1.0))
    rows, stands_for = distinct_items(items, similarity, search(items, k=20))  # lists long enough for one look
    assert rows[stands_for].tolist() == first_in_order(items, similarity)


@pytest.mark.parametrize("n", [2, 3, 10, 30, 100, 300])
@pytest.mark.parametrize("d", [2, 17, 512])
def test_identical_vectors_are_one_item_without_neighbours(n, d):
    items = Embeddings.from_vectors(np.repeat(vectors(n + d, 1, d), n, axis=0))
    rows, stands_for, found = search_distinct(items, 4)
    assert (rows.tolist(), stands_for.tolist(), found.rows.shape) == ([0], [0] * n, (1, 0))


@pytest.mark.parametrize("n", [2, 5])
def test_fewer_distinct_items_than_neighbours_asked_for_give_all_others(n):
    items = Embeddings.from_vectors(np.repeat(vectors(7, n), 6, axis=0))
    assert search_distinct(items, 8)[2].rows.shape == (n, n - 1)
    check_search(items, 8)


def test_a_narrow_cone_is_no_crowd_of_copies():
    directions = vectors(8, 200, 32)
    table = np.hstack([directions / np.linalg.norm(directions, axis=1)[:, None], np.full((200, 1), 60.0)])
    items = Embeddings.from_vectors(table)
    assert (items.vectors @ items.vectors.T).min() > 0.999
    assert 0.999999 < copy_similarity(items) < 1
    assert len(check_search(items, k=8)[0]) == 200
    twice = Embeddings.from_vectors(np.repeat(table, 2, axis=0))
    assert len(check_search(twice, k=8)[0]) == 200


def test_the_similarity_of_copies_is_a_share_of_the_usual_distance():
    opposite = Embeddings.from_vectors([[1.0, 0.0], [-1.0, 0.0]])
    assert copy_similarity(opposite) == pytest.approx(1 - 0.002)
    right_angle = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]])  # mean (½, ½): 1 - |m|² = ½
    assert copy_similarity(right_angle) == pytest.approx(1 - 0.001)


def test_lists_are_those_of_a_search_among_distinct_items_alone():
    """A neighbour that is found through a copy is as similar as the one that stands for it."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 8))
    near = rng.integers(300, size=90)
    items = Embeddings.from_vectors(np.vstack([vectors, vectors[near] + 0.01 * rng.normal(size=(90, 8))]))
    rows, _, found = search_distinct(items, 9)
    expected = search(items.take(rows), k=9)
    assert len(rows) < 390
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.similarities, expected.similarities, atol=1e-6)
