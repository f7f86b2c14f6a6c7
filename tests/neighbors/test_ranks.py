"""Ranks by counting against ranks read off a sorted ranking."""

import numpy as np
import pytest

from entourage.errors import InputError
from entourage.neighbors import own_gallery_rows, ranks, search_blocks
from entourage.neighbors.ranks import match_ranks
from entourage.values import Embeddings, shared_codes

pytestmark = pytest.mark.usefixtures("one_thread")


def sample(count=90, n_classes=9, copies=0, seed=0, ids=None, d=6) -> Embeddings:
    draw = np.random.default_rng(seed)
    labels = draw.integers(n_classes, size=count)
    vectors = draw.normal(size=(n_classes, d))[labels] + draw.normal(size=(count, d))
    vectors[count - copies :] = vectors[:copies]
    return Embeddings.from_vectors(vectors, ids=ids, labels=labels)


def counted(queries, gallery) -> list[list[int]]:
    """Of each query the ranks of its matches, by match_ranks."""
    found = [[] for _ in range(len(queries))]
    for block, query, rank in match_ranks(queries, gallery, *shared_codes(queries.labels, gallery.labels)):
        assert (np.diff(query) >= 0).all()
        for q, r in zip(query, rank, strict=True):
            found[block.start + q].append(int(r))
    return found


def read_off(queries, gallery) -> list[list[int]]:
    """The same from the whole ranking of each query."""
    shared = (own_gallery_rows(queries, gallery) >= 0).any()
    blocks = search_blocks(queries, gallery, k=len(gallery) - bool(shared))
    rows = np.concatenate([found.rows for _, found in blocks])
    same = gallery.labels[rows] == queries.labels[:, None]
    return [np.flatnonzero(row).tolist() for row in same]


@pytest.mark.parametrize("copies", [0, 30])
@pytest.mark.parametrize("values_at_once", [1, 90 * 7, 2**25])
def test_ranks_within_one_set(copies, values_at_once, monkeypatch):
    monkeypatch.setattr(ranks, "_TILE_VALUES", values_at_once)
    items = sample(copies=copies)
    assert counted(items, items) == read_off(items, items)


def test_ids_in_any_order_decide_ties():
    items = sample(copies=40, ids=np.random.default_rng(1).permutation(90))
    assert counted(items, items) == read_off(items, items)


@pytest.mark.parametrize("shared", [False, True])
def test_ranks_in_a_gallery_of_its_own(shared):
    gallery = sample(copies=20, ids=np.random.default_rng(2).permutation(90))
    queries = gallery.take(np.arange(5, 90, 3)) if shared else sample(30, n_classes=12, seed=3)
    assert counted(queries, gallery) == read_off(queries, gallery)


def test_one_class_of_everything_and_classes_of_one():
    items = sample(40, n_classes=1)
    assert counted(items, items) == [list(range(39))] * 40
    alone = Embeddings(items.vectors, labels=np.arange(40))
    assert counted(alone, alone) == [[]] * 40


def test_all_copies_of_one_vector_stand_in_order_of_id():
    items = Embeddings.from_vectors(np.ones((5, 3)), labels=[0, 1, 0, 1, 0])
    assert counted(items, items) == [[1, 3], [2], [0, 3], [1], [0, 2]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_form_of_the_input_does_not_matter(kind):
    vectors = np.random.default_rng(4).normal(size=(12, 60)).astype(kind).T  # not contiguous
    items = Embeddings.from_vectors(vectors, labels=np.arange(60) % 7)
    assert counted(items, items) == read_off(items, items)


def test_another_encoder_is_refused():
    with pytest.raises(InputError, match="4 dimensions and the gallery 6"):
        counted(sample(d=4), sample(d=6))


def test_near_ties_are_decided_as_by_search():
    draw = np.random.default_rng(0)
    codes = np.where(draw.random((600, 48)) < 0.5, -1.0, 1.0)  # few different similarities, each rounded in its own way
    items = Embeddings.from_vectors(codes, labels=draw.integers(20, size=600))
    assert counted(items, items) == read_off(items, items)
