"""A gallery that is searched again and again: the same neighbours as without an index, with less work."""

from itertools import pairwise

import numpy as np
import pytest

from entourage.neighbors import SearchIndex, index, own_gallery_rows, search
from entourage.neighbors.index import groups_of_equal_vectors
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(90, 6))
COPIES = np.concatenate([VECTORS[:60], VECTORS[20:50]])
SHUFFLED = RNG.permutation(90)
GALLERIES = {
    "rows": Embeddings.from_vectors(VECTORS),
    "shuffled": Embeddings.from_vectors(VECTORS, ids=SHUFFLED),
    "texts": Embeddings.from_vectors(VECTORS, ids=[f"id {i}" for i in SHUFFLED]),
    "copies": Embeddings.from_vectors(COPIES, ids=SHUFFLED),
    "one direction": Embeddings.from_vectors(np.ones((90, 6)), ids=SHUFFLED),
}


@pytest.fixture(params=GALLERIES)
def gallery(request):
    return GALLERIES[request.param]


def test_an_index_finds_what_its_items_find(gallery):
    ready = SearchIndex(gallery)
    strangers = Embeddings.from_vectors(RNG.normal(size=(7, 6)))
    for queries in (gallery, gallery.take(np.arange(0, 90, 9)), strangers, strangers.take([3])):
        found, wanted = search(queries, ready, 8), search(queries, gallery, 8)
        np.testing.assert_array_equal(found.rows, wanted.rows)
        np.testing.assert_array_equal(found.similarities, wanted.similarities)
        np.testing.assert_array_equal(own_gallery_rows(queries, ready), own_gallery_rows(queries, gallery))


def test_what_is_the_gallerys_own_is_computed_once(gallery, monkeypatch):
    ready = SearchIndex(gallery)
    ready.make_ready()
    wanted = search(gallery.take([4]), ready, 8)

    def again(*arguments):
        raise AssertionError("done before")

    monkeypatch.setattr(index, "groups_of_equal_vectors", again)
    for name in ("by_id", "groups", "group_of_row", "vectors"):
        monkeypatch.setattr(vars(SearchIndex)[name], "func", again)
    np.testing.assert_array_equal(search(gallery.take([4]), ready, 8).rows, wanted.rows)


def test_vectors_in_order_of_id_are_not_copied():
    assert SearchIndex(GALLERIES["rows"]).vectors is GALLERIES["rows"].vectors
    np.testing.assert_array_equal(
        SearchIndex(GALLERIES["shuffled"]).vectors, GALLERIES["shuffled"].vectors[np.argsort(SHUFFLED)]
    )


@pytest.mark.parametrize(
    ("known", "asked", "rows"),
    [
        ([30, 10, 20], [10, 20, 30, 40, 5], [1, 2, 0, -1, -1]),
        (["b", "a", "ccc"], ["ccc", "", "a", "cccc"], [2, -1, 1, -1]),
        (["7", "30", "8"], [30, 7, 9], [1, 0, -1]),
        (np.array([3, 2**63], np.uint64), [3, -(2**63)], [0, -1]),
    ],
)
def test_items_are_found_by_id(known, asked, rows):
    found = SearchIndex(Embeddings.from_vectors(np.eye(len(known)) + 1, ids=known)).rows_of(np.asarray(asked))
    assert found.tolist() == rows


def grouped_by_a_loop(vectors: np.ndarray, by_id: np.ndarray) -> list[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for row in by_id:
        groups.setdefault(vectors[row].tobytes(), []).append(int(row))
    return list(groups.values())


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("values", [2, 3, 1000])
def test_equal_vectors_are_grouped_as_by_a_loop(d, values):
    """With two or three values many rows begin alike, equal or not."""
    rng = np.random.default_rng(d)
    vectors = rng.integers(values, size=(300, d)).astype(np.float32)
    vectors[:, 4:] *= rng.integers(2, size=(300, 1))
    by_id = rng.permutation(300)
    members, starts = groups_of_equal_vectors(vectors, by_id)
    groups = [members[start:stop].tolist() for start, stop in pairwise(starts)]
    assert groups == grouped_by_a_loop(vectors, by_id)


def test_rows_whose_heads_become_one_number_are_still_told_apart(monkeypatch):
    monkeypatch.setattr(index, "_shares_its_head", lambda vectors: np.ones(len(vectors), bool))
    members, starts = groups_of_equal_vectors(VECTORS.astype(np.float32), np.arange(90))
    assert members.tolist() == list(range(90)) and starts.tolist() == list(range(91))
