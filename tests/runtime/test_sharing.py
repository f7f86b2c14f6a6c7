"""Work done once for several callers: what is kept, of what, and for how long."""

import numpy as np

from entourage.neighbors import search
from entourage.neighbors.sharing import nearest_others
from entourage.runtime.sharing import SharedWork, shared, sharing
from entourage.values import Embeddings


def frozen(seed=0):
    array = np.random.default_rng(seed).normal(size=(4, 2))
    array.flags.writeable = False
    return array


def asked(array, calls, name="mean", **options):
    def compute():
        calls.append(name)
        return array.mean()

    return shared(name, (array,), compute, **options)


def test_a_result_is_computed_once_inside_the_block_and_every_time_outside():
    array, other, calls = frozen(), frozen(1), []
    asked(array, calls)
    with sharing(SharedWork()):
        assert asked(array, calls) == asked(array, calls) == array.mean()
        asked(other, calls)
        asked(array, calls, "sum")
    asked(array, calls)
    assert calls == ["mean", "mean", "mean", "sum", "mean"]


def test_what_could_change_is_not_kept_and_what_is_not_enough_is_replaced():
    calls, writable = [], np.ones((2, 2))
    with sharing(SharedWork()):
        asked(writable, calls)
        writable[:] = 3
        assert asked(writable, calls) == 3
        array = frozen()
        asked(array, calls)
        asked(array, calls, enough=lambda known: False)
    assert len(calls) == 4


def test_the_oldest_is_forgotten_and_no_address_is_used_twice():
    work, calls = SharedWork(most=2 * (frozen().nbytes + 8)), []
    with sharing(work):
        for seed in range(50):  # arrays that are freed, and whose place the next one may take
            array = frozen(seed)
            assert asked(array, calls) == array.mean()
        last = [frozen(seed) for seed in range(3)]
        for array in (*last, last[2], last[1], last[0]):
            asked(array, calls)
    assert len(calls) == 50 + 3 + 1


def test_neighbours_are_searched_once_for_all_numbers(monkeypatch):
    items = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(300, 6)))
    depths = []

    def watched(items, k):
        depths.append(k)
        return search(items, k=k)

    monkeypatch.setattr("entourage.neighbors.sharing.search", watched)
    with sharing(SharedWork()):
        for k in (8, 1, 130, 200, 16):
            found, alone = nearest_others(items.without_labels(), k), search(items, k=k)
            np.testing.assert_array_equal(found.rows, alone.rows)
            np.testing.assert_allclose(found.similarities, alone.similarities, atol=1e-6)
    assert depths == [130, 200]
    nearest_others(items, 5)
    assert depths[-1] == 5
