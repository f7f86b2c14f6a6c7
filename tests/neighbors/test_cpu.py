"""The search by tiles and threads against one product and a sort: the same neighbours, whatever the tiles."""

import threading

import numpy as np
import pytest
import torch

from entourage.neighbors import cpu, exact, search, search_blocks
from entourage.runtime.threads import _libraries
from entourage.values import Embeddings


def unit_vectors(n: int, d: int = 24, seed: int = 0) -> np.ndarray:
    return Embeddings.from_vectors(np.random.default_rng(seed).normal(size=(n, d))).vectors


def signs(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Distinct vectors of ±1/√d: similarities take few values, so that most are tied."""
    return Embeddings.from_vectors(
        np.unique(np.random.default_rng(seed).choice([-1.0, 1.0], size=(2 * n, d)), axis=0)[:n]
    ).vectors


def one_hot_and_others(n: int) -> np.ndarray:
    """Similarities that are almost all exactly 0, on either side of a few that are not."""
    return np.concatenate([np.eye(n, dtype=np.float32)[: n // 2], -np.eye(n, dtype=np.float32)[: n - n // 2]])


def positive(n: int, d: int = 32) -> np.ndarray:
    return Embeddings.from_vectors(np.abs(np.random.default_rng(3).normal(size=(n, d))) + 2).vectors


SETS = {
    "random": unit_vectors(300),
    "close together": positive(300),
    "tied, exact in float32": signs(300, 16),
    "tied, rounded in float32": signs(300, 300),
    "almost all tied at 0": one_hot_and_others(300),
}


def simple(queries, items, hidden, k) -> tuple[np.ndarray, np.ndarray]:
    """One product in double precision, rounded once; a stable sort leaves ties in order of position."""
    scores = (queries.astype(np.float64) @ items.T.astype(np.float64)).astype(np.float32)
    hiding = np.flatnonzero(hidden >= 0)
    scores[hiding, hidden[hiding]] = -2
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def of_gallery(queries, items, hidden, k, rows=64, columns=50) -> tuple[np.ndarray, np.ndarray]:
    found = list(cpu.best_of_gallery(queries, items, hidden, k, rows, columns))
    return tuple(np.concatenate([parts[column] for parts in found]) for column in (1, 2))


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


# ---- against the simple form -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 9, 150, 299])
@pytest.mark.parametrize("name", list(SETS))
def test_items_among_each_other_are_found_as_by_one_product_and_a_sort(threads, name, k):
    items, hidden = SETS[name], np.arange(300)
    wanted, similarities = simple(items, items, hidden, k)
    for side in (7, 128, 1024):
        found = cpu.best_among_each_other(items, hidden, k, side).best(np.arange(300))
        np.testing.assert_array_equal(found[0], wanted)
        np.testing.assert_allclose(found[1], similarities, atol=1e-6)


@pytest.mark.parametrize("k", [1, 9, 150, 299])
@pytest.mark.parametrize("name", list(SETS))
def test_a_gallery_is_ranked_as_by_one_product_and_a_sort(threads, name, k):
    items = SETS[name]
    queries, hidden = items[100:], np.where(np.arange(200) % 3, np.arange(100, 300), -1)
    wanted, similarities = simple(queries, items, hidden, k)
    for shape in ((200, 300), (1, 7), (64, 128)):
        found = of_gallery(queries, items, hidden, k, *shape)
        np.testing.assert_array_equal(found[0], wanted)
        np.testing.assert_allclose(found[1], similarities, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 17])
def test_fewer_items_than_anything_holds(n):
    items, hidden = unit_vectors(n, d=4), np.arange(n)
    wanted = simple(items, items, hidden, n)[0]  # all, and last the item itself
    np.testing.assert_array_equal(cpu.best_among_each_other(items, hidden, n, 1024).best(np.arange(n))[0], wanted)
    np.testing.assert_array_equal(of_gallery(items, items, hidden, n)[0], wanted)


def test_long_rankings_that_start_with_a_guessed_bar(monkeypatch):
    items, hidden = unit_vectors(3000, d=32), np.arange(3000)
    sample, rank = cpu._sample(items, 200)
    assert len(sample) == 93 and 0 < rank < 93, "precondition: a bar is guessed"
    wanted = simple(items, items, hidden, 200)[0]
    np.testing.assert_array_equal(cpu.best_among_each_other(items, hidden, 200, 512).best(hidden)[0], wanted)
    np.testing.assert_array_equal(of_gallery(items, items, hidden, 200, 512, 512)[0], wanted)


def test_a_guess_that_was_too_high_is_noticed_and_the_item_searched_again(monkeypatch):
    items, hidden = unit_vectors(1000, d=16), np.arange(1000)
    monkeypatch.setattr(cpu, "_sample", lambda items, k: (items[:500], 3))  # beaten by about 6 of all
    wanted = simple(items, items, hidden, 20)[0]
    np.testing.assert_array_equal(cpu.best_among_each_other(items, hidden, 20, 300).best(hidden)[0], wanted)
    np.testing.assert_array_equal(of_gallery(items, items, hidden, 20)[0], wanted)


# ---- what the rounding of products must not change ---------------------------------------------------------------


def test_the_two_forms_find_the_same(monkeypatch):
    items = Embeddings.from_vectors(signs(700, 300), ids=np.random.default_rng(1).permutation(700))
    for k in (1, 10, 699):
        together = search(items, k=k)
        with monkeypatch.context() as patch:
            patch.setattr(exact, "_MOST_CANDIDATES", 0)
            one_by_one = search(items, k=k)
        np.testing.assert_array_equal(together.rows, one_by_one.rows)


def test_different_vectors_that_are_equally_near_are_in_order_of_id():
    """±1/√300 has to be rounded, and products add it up in different orders: yet equal is equal."""
    items = Embeddings.from_vectors(signs(500, 300), ids=np.random.default_rng(2).permutation(500))
    agreements = np.rint(items.vectors @ items.vectors.T * 150).astype(int)  # exact: whole numbers
    for row, found in enumerate(search(items, k=40).rows):
        pairs = list(zip(-agreements[row, found], items.ids[found], strict=True))
        assert pairs == sorted(pairs)


def test_neighbours_do_not_depend_on_the_number_of_threads():
    items, found = Embeddings.from_vectors(signs(900, 300)), []
    before = torch.get_num_threads()
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        found.append(search(items, k=12).rows)
    torch.set_num_threads(before)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


# ---- threads -----------------------------------------------------------------------------------------------------


def blas_threads() -> list[int]:
    return [library.get_num_threads() for library in _libraries()]


def test_numpy_multiplies_on_one_thread_during_the_search_and_as_before_after_it(threads, monkeypatch):
    items, during = Embeddings.from_vectors(unit_vectors(600)), []
    product = cpu._Memory.product
    monkeypatch.setattr(cpu._Memory, "product", lambda *args: during.extend(blas_threads()) or product(*args))
    before = blas_threads()
    search(items, k=3)
    for _ in search_blocks(items, Embeddings.from_vectors(unit_vectors(50)), k=3):
        pass
    assert set(during) <= {1}
    assert blas_threads() == before


def test_the_threads_of_numpy_are_restored_when_nobody_reads_on(threads):
    before, running = blas_threads(), set(threading.enumerate())  # other tests may have left threads of libraries
    blocks = search_blocks(Embeddings.from_vectors(unit_vectors(4000)), Embeddings.from_vectors(unit_vectors(50)), k=3)
    next(blocks)
    blocks.close()
    assert blas_threads() == before
    for thread in set(threading.enumerate()) - running:  # those of the search end by themselves
        thread.join(timeout=20)
    assert not set(threading.enumerate()) - running


def test_searches_side_by_side_do_not_disturb_each_other(threads):
    items = Embeddings.from_vectors(unit_vectors(1500))
    alone, found, before = search(items, k=5).rows, [], blas_threads()
    several = [threading.Thread(target=lambda: found.append(search(items, k=5).rows)) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert len(found) == 4 and all((rows == alone).all() for rows in found)
    assert blas_threads() == before
