"""Keys that sort as neighbours do, and functions that are compiled once."""

import numpy as np
import pytest

from entourage.neighbors.kernels import Candidates


def best_of(similarities, k: int, margin: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The k best of one row of similarities, which are what the items are: products with the vector 1."""
    row = np.array([similarities], np.float32)
    candidates = Candidates(1, k, margin)
    candidates.meet(row.copy(), 0, np.full(1, -1))
    candidates.settle(slice(None), np.ones((1, 1), np.float32), row.T.copy())
    items, values = candidates.best(slice(None))
    return items[0], values[0]


@pytest.mark.parametrize("k", [1, 4, 9])
def test_keys_sort_by_similarity_and_then_by_position(k):
    row = [0.5, -1.0, 0.0, -0.0, 1.0, 0.5, -0.25, 1.0, -1.0]
    items, values = best_of(row, k)
    assert items.tolist() == [4, 7, 0, 5, 2, 3, 6, 1, 8][:k]
    assert values.tolist() == sorted(row, reverse=True)[:k]


@pytest.mark.parametrize("margin", [0.0, 1e-6])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (1000, 1), (1000, 40), (1000, 999), (257, 16)])
def test_the_best_are_those_of_a_sort(n, k, margin):
    row = np.random.default_rng(n + k).normal(size=n).astype(np.float32)
    items, values = best_of(row, k, margin)
    assert items.tolist() == np.argsort(-row, kind="stable")[:k].tolist()
    np.testing.assert_array_equal(values, row[items])


@pytest.mark.parametrize("order", [1, -1])
def test_items_that_come_in_order_of_similarity(order):
    row = np.linspace(-1, 1, 3000)[::order]
    assert best_of(row, 7)[0].tolist() == np.argsort(-row, kind="stable")[:7].tolist()


def test_a_crowd_at_the_last_place_is_reported():
    def unsettled(row) -> list[int]:
        candidates = Candidates(1, 2, 1e-3)
        candidates.meet(np.array([row], np.float32), 0, np.full(1, -1))
        candidates.settle(slice(None), np.ones((1, 1), np.float32), np.array([row], np.float32).T.copy())
        return candidates.unsettled().tolist()

    assert unsettled([0.5] * 100) == [0]
    assert unsettled([*[0.1] * 100, 0.9, 0.8]) == [], "the crowd is left behind"
    assert unsettled(np.linspace(0, 1, 100)) == []
