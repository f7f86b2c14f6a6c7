"""Exact search against brute force: who is found, in which order, and that nobody finds himself."""

import re

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.neighbors import exact, own_gallery_rows, search, search_blocks
from entourage.values import Embeddings


def brute_force(queries: Embeddings, gallery: Embeddings, k: int) -> np.ndarray:
    """Rows of the k best by (-similarity, id), (N, k): plain loops in float64; shared names are one item."""
    found = []
    for query_id, query in zip(queries.ids, queries.vectors.astype(np.float64), strict=True):
        ranked = []
        for row, (other_id, other) in enumerate(zip(gallery.ids, gallery.vectors.astype(np.float64), strict=True)):
            itself = query_id == other_id and (gallery is queries or (queries.named and gallery.named))
            if not itself:
                ranked.append((-np.dot(query, other), other_id, row))
        found.append([row for *_, row in sorted(ranked)[:k]])
    return np.array(found)


def sign_vectors(count: int, seed: int, dim: int = 16) -> np.ndarray:
    """Vectors of ±1: normalised to ±1/4, so every similarity is exact in float32 and most are tied."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, dim))


def few_directions(count: int, seed: int) -> np.ndarray:
    """Random choices of eight axes: many exact copies, and all else tied at 0."""
    return np.eye(8)[np.random.default_rng(seed).integers(8, size=count)]


def hypercube_corners(count: int, seed: int) -> np.ndarray:
    """Random choices of the sixteen corners of a hypercube: copies, and ties at five similarities."""
    return sign_vectors(count, seed, dim=4)


def assert_as_brute_force(queries: Embeddings, gallery: Embeddings | None, k: int) -> None:
    target = queries if gallery is None else gallery
    found = search(queries, gallery, k)
    wanted = brute_force(queries, target, k)
    assert target.ids[found.rows].tolist() == target.ids[wanted].tolist()
    similarities = np.einsum("nd,nkd->nk", queries.vectors, target.vectors[wanted])
    np.testing.assert_allclose(found.similarities, similarities, atol=1e-6)


# ---- ranking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 8, 59])
def test_distinct_vectors_are_ranked_by_similarity(k):
    items = Embeddings.from_vectors(np.random.default_rng(118).normal(size=(60, 8)))
    similarities = np.sort(items.vectors.astype(np.float64) @ items.vectors.T.astype(np.float64))
    assert np.diff(similarities).min() > 1e-5, "precondition: rounding to float32 reorders nothing"
    assert_as_brute_force(items, None, k)


@pytest.mark.parametrize("k", [1, 5, 20, 49])
def test_ties_between_different_vectors_are_decided_by_id(k):
    vectors = np.unique(sign_vectors(60, seed=0, dim=16), axis=0)[:50]
    ids = np.random.default_rng(1).permutation(1000)[:50]
    assert_as_brute_force(Embeddings.from_vectors(vectors, ids), None, k)


@pytest.mark.parametrize("k", [1, 5, 20, 49])
def test_ties_between_copies_are_decided_by_id(k):
    """Copies of a few random directions, which do not tie with each other."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(9, 5))[rng.integers(9, size=50)]
    assert_as_brute_force(Embeddings.from_vectors(vectors, rng.permutation(50)), None, k)


@pytest.mark.parametrize("k", [1, 2, 5, 20, 49])
@pytest.mark.parametrize("make", [few_directions, hypercube_corners])
def test_ties_among_copies_and_other_vectors_at_once_are_decided_by_id(make, k):
    ids = np.random.default_rng(5).permutation(50)
    assert_as_brute_force(Embeddings.from_vectors(make(50, 6), ids), None, k)


def test_a_tie_between_a_pair_of_copies_and_a_vector_whose_id_lies_between_theirs():
    vectors = np.eye(3)[[1, 2, 1, 0]]  # ids 0 and 2 are copies; to id 9 all three are equally far
    items = Embeddings.from_vectors(vectors, ids=[0, 1, 2, 9])
    assert items.ids[search(items, k=3).rows[3]].tolist() == [0, 1, 2]
    assert items.ids[search(items, k=2).rows[3]].tolist() == [0, 1]


@pytest.mark.parametrize("k", [1, 7, 39])
def test_text_ids_decide_ties_in_text_order(k):
    ids = [f"item-{number}" for number in np.random.default_rng(7).permutation(40)]  # "item-10" before "item-2"
    vectors = np.unique(sign_vectors(50, seed=8), axis=0)[:40]
    assert_as_brute_force(Embeddings.from_vectors(vectors, ids), None, k)


def test_the_ids_found_do_not_depend_on_the_order_of_the_rows():
    """Also for the one query a last tile may hold: 1025 = 1024 + 1. Entries 1/sqrt(300) round every similarity."""
    rng = np.random.default_rng(9)
    vectors, ids = sign_vectors(1025, seed=10, dim=300), rng.permutation(1025)

    def neighbours_of_each_id(order) -> np.ndarray:
        items = Embeddings.from_vectors(vectors[order], ids[order])
        return items.ids[search(items, k=10).rows][np.argsort(items.ids)]

    first, again = (neighbours_of_each_id(rng.permutation(1025)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


# ---- the item itself ---------------------------------------------------------------------------------------------


def test_an_item_missing_from_its_own_row_is_still_left_out_by_id():
    """A hundred copies and k = 8: dropping a column would drop a neighbour, or keep the item itself."""
    items = Embeddings.from_vectors(np.ones((100, 4)))
    rows = search(items, k=8).rows
    for item in range(100):
        assert rows[item].tolist() == [other for other in range(9) if other != item][:8]


@pytest.mark.parametrize("k", [1, 3, 11])
def test_the_item_itself_is_never_found_wherever_it_stands(k):
    """Ids such that an item's copies come before it, after it, and on both sides."""
    vectors = np.repeat(np.eye(4), 3, axis=0)
    items = Embeddings.from_vectors(vectors, ids=np.random.default_rng(11).permutation(12))
    assert not (search(items, k=k).rows == np.arange(12)[:, None]).any()


def test_shared_names_are_left_out_of_a_separate_gallery_and_others_are_not():
    gallery = Embeddings.from_vectors(few_directions(30, 12), ids=[f"g{i}" for i in range(30)])
    shared = gallery.take([5, 17, 20])
    strangers = Embeddings.from_vectors(few_directions(3, 13), ids=["x", "y", "z"])
    queries = Embeddings.from_vectors(
        np.concatenate([shared.vectors, strangers.vectors]), np.concatenate([shared.ids, strangers.ids])
    )
    assert own_gallery_rows(queries, gallery).tolist() == [5, 17, 20, -1, -1, -1]
    for k in (1, 6, 29):
        found = gallery.ids[search(queries, gallery, k).rows]
        assert not (found == queries.ids[:, None]).any()
    assert set(found[0]) == set(gallery.ids) - {"g5"}


@pytest.mark.parametrize("k", [1, 6, 29])
def test_a_gallery_with_some_shared_ids_is_ranked_as_by_brute_force(k):
    vectors = np.unique(sign_vectors(50, seed=14), axis=0)
    gallery = Embeddings.from_vectors(vectors[:30], ids=np.arange(30))
    queries = Embeddings.from_vectors(vectors[20:40], ids=np.arange(20, 40))
    assert_as_brute_force(queries, gallery, k)


def test_row_numbers_of_unnamed_sets_are_not_names():
    """Row 0 of one set is not row 0 of another: all of the gallery can be found, an equal vector first."""
    gallery = Embeddings.from_vectors(sign_vectors(20, seed=15))
    queries = Embeddings.from_vectors(sign_vectors(20, seed=15))
    assert_as_brute_force(queries, gallery, k=20)
    assert search(queries, gallery, k=1).rows[:, 0].tolist() == list(range(20))


def test_numbers_and_their_text_name_the_same_item():
    gallery = Embeddings.from_vectors(np.eye(3), ids=["7", "8", "9"])
    queries = Embeddings.from_vectors(np.eye(3), ids=[9, 8, 1])
    assert own_gallery_rows(queries, gallery).tolist() == [2, 1, -1]


# ---- tiles and layouts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tile_values", [1, 50, 120, 350, 2**20])  # tiles of 1, 1, 2, 7 and all 50 queries
@pytest.mark.parametrize("copies", [False, True])
def test_tile_boundaries_change_nothing(monkeypatch, tile_values, copies):
    vectors = np.unique(sign_vectors(60, seed=16), axis=0)[:50]
    if copies:
        vectors[25:] = vectors[:25]
    items = Embeddings.from_vectors(vectors, ids=np.random.default_rng(17).permutation(50))
    whole = search(items, k=6)
    monkeypatch.setattr(exact, "_TILE_VALUES", tile_values)
    tiled = search(items, k=6)
    np.testing.assert_array_equal(tiled.rows, whole.rows)
    np.testing.assert_array_equal(tiled.similarities, whole.similarities)


def test_blocks_cover_every_query_once_and_in_order(monkeypatch):
    monkeypatch.setattr(exact, "_TILE_VALUES", 7 * 50)
    items = Embeddings.from_vectors(np.random.default_rng(18).normal(size=(50, 4)))
    covered = [row for block, _ in search_blocks(items, k=3) for row in range(block.start, block.stop)]
    assert covered == list(range(50))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_float_type_finds_the_same(dtype):
    vectors = np.round(np.random.default_rng(19).normal(size=(40, 6)), 1).astype(np.float16)
    reference = search(Embeddings.from_vectors(vectors.astype(np.float64)), k=39)
    found = search(Embeddings.from_vectors(vectors.astype(dtype)), k=39)
    np.testing.assert_array_equal(found.rows, reference.rows)


def layouts() -> dict:
    plain = Embeddings.from_vectors(np.random.default_rng(20).normal(size=(40, 6))).vectors
    wide = np.zeros((80, 12), np.float32)
    wide[::2, ::2] = plain
    return {
        "plain": plain,
        "columns first": np.asfortranarray(plain),
        "every second row and column": wide[::2, ::2],
        "float16": plain.astype(np.float16),
        "float64": plain.astype(np.float64),
    }


@pytest.mark.parametrize("layout", list(layouts()))
def test_unit_vectors_of_any_layout_give_the_same_neighbours(layout):
    """Directly through Embeddings, which does not normalise; half precision may only move the similarities."""
    vectors = layouts()[layout]
    reference = search(Embeddings(layouts()["plain"]), k=39)
    items = Embeddings(vectors)
    found = search(items, k=39)
    assert items.vectors.dtype == np.float32
    np.testing.assert_allclose(found.similarities, reference.similarities, atol=2e-3 if layout == "float16" else 1e-6)
    if layout != "float16":
        np.testing.assert_array_equal(found.rows, reference.rows)


def test_vectors_in_reversed_memory_give_the_same_neighbours():
    vectors = layouts()["plain"]
    items = Embeddings(vectors[::-1])
    assert items.vectors.strides[0] > 0, "torch cannot take negative strides: it ends the process"
    assert (39 - search(items, k=5).rows[::-1]).tolist() == search(Embeddings(vectors), k=5).rows.tolist()


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2.5, "3", None, True, 0, -1, [2]])
def test_k_is_a_whole_number(k):
    with pytest.raises(InputError, match=rf"^k is {re.escape(repr(k))}; wanted a whole number, at least 1$"):
        search(np.eye(4), k=k)


@pytest.mark.parametrize("k", [4, 5, 10**13])
def test_k_must_leave_room_for_the_item_itself(k):
    items = Embeddings.from_vectors(np.eye(4))
    with pytest.raises(InputError, match=rf"k is {k}, .* wanted 1 ≤ k ≤ 3"):
        search(items, k=k)


def test_a_separate_gallery_offers_all_its_items_unless_one_is_the_query():
    gallery = Embeddings.from_vectors(np.eye(4), ids=list("abcd"))
    stranger = Embeddings.from_vectors(np.eye(4)[:1], ids=["z"])
    assert search(stranger, gallery, k=4).rows.tolist() == [[0, 1, 2, 3]]
    with pytest.raises(InputError, match="wanted 1 ≤ k ≤ 3"):
        search(gallery.take([0]), gallery, k=4)


def test_queries_and_gallery_of_different_size_are_refused():
    with pytest.raises(InputError, match="4 dimensions and the gallery 3"):
        search(Embeddings.from_vectors(np.eye(4)), Embeddings.from_vectors(np.eye(3)), k=1)


def test_progress_ends_at_the_number_of_queries(monkeypatch):
    monkeypatch.setattr(exact, "_TILE_VALUES", 4 * 10)
    seen = []
    search(Embeddings.from_vectors(few_directions(10, 21)), k=2, progress=lambda *call: seen.append(call))
    assert seen[-1] == ("searching neighbours", 10, 10)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_query_finds_the_same_alone_as_among_others():
    gallery = Embeddings.from_vectors(sign_vectors(600, seed=0, dim=300))  # similarities that float32 has to round
    queries = Embeddings.from_vectors(sign_vectors(64, seed=1, dim=300))
    together = search(queries, gallery, 10).rows
    alone = np.concatenate([search(queries.take([row]), gallery, 10).rows for row in range(64)])
    assert np.array_equal(together, alone)


def test_large_ids_of_different_integer_types_are_not_confused():
    queries = Embeddings.from_vectors(np.eye(2), ids=np.array([2**60 + 1, 7], np.uint64))
    gallery = Embeddings.from_vectors(np.eye(2), ids=np.array([2**60 + 3, 7], np.int64))
    assert own_gallery_rows(queries, gallery).tolist() == [-1, 1]


@pytest.mark.parametrize("d", [64, 256, 700])
@pytest.mark.parametrize("k", [1, 40, 299])
@pytest.mark.parametrize("apart", [False, True], ids=["one set", "a gallery"])
def test_rows_are_in_order_where_every_addition_rounds_the_same_way(d, k, apart):
    """One value outweighs the others, whose products are lost one by one in single precision."""
    rng = np.random.default_rng(d)
    tiny = rng.uniform(0.5, 1.5, (300, d - 1)) * 2.0**-12.5 * rng.choice([1, 0.98], (300, 1))
    items = Embeddings.from_vectors(np.hstack([np.ones((300, 1)), tiny]))
    found = search(items, Embeddings(items.vectors) if apart else None, k)
    exact = items.vectors.astype(np.float64) @ items.vectors.T.astype(np.float64)
    if not apart:
        np.fill_diagonal(exact, -2)
    order = np.lexsort((np.broadcast_to(np.arange(300), exact.shape), -exact.astype(np.float32)), axis=1)[:, :k]
    assert np.array_equal(found.rows, order)
