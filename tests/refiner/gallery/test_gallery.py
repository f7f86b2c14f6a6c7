"""What a gallery does, one call at a time; that any sequence of calls is right is in test_any_changes.py."""

import numpy as np
import pytest
from tests.refiner.gallery.samples import Index, assert_equals_a_rebuild, clustered, learned

from entourage import Gallery, search
from entourage.errors import EntourageError, EntourageWarning, FileError, InputError, ModelError
from entourage.refiner import ContextRefiner
from entourage.refiner.gallery.moved import Order
from entourage.refiner.gallery.state import State
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.refiner.universal import universal_network
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

X = clustered(700, dim=16, classes=40, noise=0.6)


@pytest.fixture
def gallery(tmp_path):
    with Gallery(tmp_path / "gallery", encoder="small", canaries=X[:3]) as opened:
        opened.add(X[:600], range(600))
        yield opened


def test_refined_vectors_are_those_that_serving_the_same_items_gives(gallery):
    gallery.remove(range(0, 40, 2))
    gallery.add(X[600:620], range(600, 620))
    gallery.update(X[630:635], range(51, 56))
    refiner = ContextRefiner().fit(X)
    refiner.network_ = universal_network()
    items = gallery._view.state.items
    served = refiner.serve(items)
    # A search rounds similarities differently from one shape of a table to the next, and ranks are counted of them.
    np.testing.assert_allclose(gallery.refined.vectors, served.refined_gallery.vectors, atol=2e-4)
    np.testing.assert_allclose(gallery.refine(X[640:660]), served.transform(X[640:660]), atol=2e-4)
    found, expected = gallery.search(X[640:660], 5), search(served.transform(X[640:660]), served.refined_gallery, 5)
    np.testing.assert_array_equal(found.ids, items.ids[expected.rows])
    raw = gallery.search(X[640:660], 5, refine=False)
    np.testing.assert_array_equal(raw.ids, items.ids[search(X[640:660], items.vectors, 5).rows])


@pytest.mark.parametrize("base_map", [False, True])
def test_the_confidence_of_queries_is_that_of_the_same_items_served(tmp_path, base_map):
    refiner = learned(16, base_map, fallback=True)
    queries = np.vstack([X[640:660], np.random.default_rng(9).normal(size=(20, 16))])
    with Gallery(tmp_path / "g", refiner) as gallery:
        assert gallery.search(queries, 3, confidence=True).confidence.tolist() == [0] * 40
        gallery.add(X[:500], range(500))
        gallery.remove(range(0, 40, 2))
        served = refiner.serve(gallery._view.state.items)
        found = gallery.search(queries, 3, confidence=True)
        np.testing.assert_allclose(found.confidence, served.confidence(queries), atol=1e-5)
        assert found.confidence[:20].mean() > found.confidence[20:].mean() + 0.3
        assert gallery.search(queries, 3).confidence is None


def test_several_changes_at_once_are_one_version(gallery):
    report = gallery.change(X[640:643], [3, 900, 901], remove=[5, 6, 7, 8])
    assert report[:4] == (2, 2, 1, 4) and gallery.version == 2
    assert gallery.ids.tolist() == [*range(5), *range(9, 600), 900, 901]
    np.testing.assert_array_equal(gallery.search(X[640:641], 1, refine=False).ids, [[3]])
    assert_equals_a_rebuild(gallery)
    assert gallery.change(X[650:652]).added == 2 and gallery.ids[-2:].tolist() == [902, 903]
    assert gallery.change(remove=[902, 903]).removed == 2
    with pytest.raises(InputError, match="these ids are both added and removed: 3; choose one"):
        gallery.change(X[640:641], [3], remove=[3, 9])
    with pytest.raises(InputError, match="there are no items of these ids: 5"):
        gallery.change(X[640:641], [3], remove=[5])
    assert gallery.version == 4


def test_a_change_refines_few_items_and_tells_of_fewer(tmp_path):
    vectors = clustered(3000, dim=24, classes=150, noise=0.4, seed=3)
    index = Index()
    with Gallery(tmp_path / "large") as gallery:
        gallery.add(vectors[:2990])
        index.follow(gallery)
        report = gallery.add(vectors[2990:2992])
        assert 0 < report.refined < 300 and 0 < report.moved < 300  # copies move too, and are refined as one
        assert index.follow(gallery) == report.moved
        index.assert_up_to_date(gallery)
        assert index.follow(gallery) == 0


def test_an_index_is_told_of_exactly_what_moved(gallery):
    before = dict(zip(gallery.ids.tolist(), gallery.refined.vectors, strict=True))
    version = gallery.version
    gallery.add(X[600:601], [600])
    changes = gallery.changes_since(version)
    after = dict(zip(gallery.ids.tolist(), gallery.refined.vectors, strict=True))
    moved = {each for each in after if each not in before or np.linalg.norm(after[each] - before[each]) > gallery.eps}
    assert set(changes.ids.tolist()) == moved
    gallery.remove([600])
    assert gallery.changes_since(version + 1).removed.tolist() == [600]
    gallery.add(X[600:601], [600])
    back = gallery.changes_since(version + 1)
    assert 600 in back.ids and back.removed.tolist() == []


def test_small_movements_add_up_until_they_are_told(tmp_path):
    with Gallery(tmp_path / "g", eps=0.05) as gallery:
        gallery.add(X[:300], range(300))
        index = Index()
        index.follow(gallery)
        for step in range(12):
            gallery.update((X[7] + 0.02 * (step + 1) * np.roll(X[7], 1))[None], [7])
            index.follow(gallery)
            index.assert_up_to_date(gallery)


def test_a_query_with_the_id_of_an_item_is_that_item(gallery):
    queries = Embeddings.from_vectors(X[5:8], ids=[5, 6, 7])
    found = gallery.search(queries, 4)
    assert not (found.ids == queries.ids[:, None]).any()
    assert isinstance(gallery.refine(queries), Embeddings)


def test_ids_are_numbered_on_where_none_are_given(tmp_path):
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.add(X[:3]).added == 3
        gallery.remove([2])
        gallery.add(X[3:5])
        assert gallery.ids.tolist() == [0, 1, 3, 4]  # an index elsewhere may still hold 2
    with Gallery(tmp_path / "texts") as gallery:
        gallery.add(X[:2], ["a", "b"])
        with pytest.raises(InputError, match="texts for ids"):
            gallery.add(X[2:3])


def test_ids_stay_of_one_kind_and_have_an_end(tmp_path):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:1], [2**63 - 2])
        with pytest.raises(InputError, match="no number after"):
            gallery.add(X[1:3])
        gallery.remove(gallery.ids)
        with pytest.raises(InputError, match="are whole numbers, and these are texts"):
            gallery.add(X[:1], ["a"])
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.changes_since(1).removed.tolist() == [2**63 - 2]


@pytest.mark.parametrize("first", [[1, 2], [2**53 + 1, 2**53 + 2]])
def test_numbers_of_any_kind_are_the_same_ids_when_it_is_opened_again(tmp_path, first):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:2], first)
        gallery.add(X[2:4], np.array([2**53 + 3, 2**63 - 1], np.uint64))
        gallery.add(X[4:6], np.array([-5, 3], np.int8))
        gallery.update(X[6:7], np.array([2**53 + 3], np.uint64))
        expected = sorted([*first, 2**53 + 3, 2**63 - 1, -5, 3])
        assert gallery.ids.tolist() == expected and gallery.ids.dtype == np.int64
        gallery.remove(np.array([2**63 - 1], np.uint64))
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.ids.tolist() == expected[:-1]
        assert gallery.changes_since(0).removed.tolist() == [2**63 - 1]


def test_numbers_that_no_gallery_can_hold_are_refused(tmp_path):
    with Gallery(tmp_path / "g") as gallery:
        for ids in ([5, 2**63], [2**63, 2**64 - 1]):
            with pytest.raises(InputError, match=f"the largest id is {ids[1]}; wanted at most"):
                gallery.add(X[:2], np.array(ids, np.uint64))
        gallery.add(X[:2], [1, 2])
        for act in (gallery.remove, lambda ids: gallery.update(X[:1], ids), lambda ids: gallery.rerank(X[0], ids=ids)):
            with pytest.raises(InputError):
                act(np.array([2**63 + 1], np.uint64))
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.ids.tolist() == [1, 2]


@pytest.mark.parametrize("snapshot", [False, True])
def test_an_emptied_gallery_keeps_its_number_of_dimensions(tmp_path, snapshot):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:2], [1, 2])
        gallery.remove([1, 2])
        if snapshot:
            gallery.snapshot()
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.dim == 16 and len(gallery) == 0
        with pytest.raises(ModelError, match="9 dimensions, but the gallery holds vectors of 16"):
            gallery.add(X[:2, :9])
        gallery.add(X[:2])


@pytest.mark.parametrize("ids", [None, [1, 2], ["a", "b"]])
def test_no_candidates_are_ranked_as_none(tmp_path, ids):
    with Gallery(tmp_path / "g") as gallery:
        if ids is not None:
            gallery.add(X[:2], ids)
        assert len(gallery.rerank(X[3])) == len(gallery.rerank(X[3], ids=[])) == 0


@pytest.mark.parametrize(
    "act",
    [lambda g: g.add(X[600:601]), lambda g: g.update(X[:1], [3]), lambda g: g.remove([3]), lambda g: g.snapshot()],
    ids=["add", "update", "remove", "snapshot"],
)
def test_a_closed_gallery_says_so(gallery, act):
    gallery.close()
    with pytest.raises(FileError, match="is closed and cannot be changed; open it again"):
        act(gallery)
    assert gallery.search(X[:1], 3).ids.shape == (1, 3)


def test_neighbours_are_searched_exactly_however_many_items_there_are(tmp_path, monkeypatch):
    def automatic(*sizes, **options):
        raise AssertionError("it may be approximate")

    monkeypatch.setattr("entourage.neighbors.automatic_method", automatic)
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:300], range(300))
        gallery.remove(range(0, 40))


@pytest.mark.parametrize("texts", [False, True])
def test_changes_in_parts_are_put_in_order_once(tmp_path, monkeypatch, texts):
    calls = []
    monkeypatch.setattr(Order, "of", classmethod(lambda cls, *given: calls.append(1) or _order_of(cls, *given)))
    ids = [f"item {number}" if texts else number for number in range(110)]
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:100], ids[:100])
        gallery.remove(ids[10:30])
        gallery.add(X[100:110], ids[100:])
        gallery.add(X[10:12], ids[10:12])  # back again
        whole, told, version, after, parts = gallery.changes_since(0), [], 0, None, 0
        while True:
            part = gallery.changes_since(version, after=after, limit=7)
            told.append(part)
            version, after, parts = part.version, part.after, parts + 1
            if not part.more:
                break
        assert version == gallery.version and parts == -(-110 // 7) and calls == [1]
        assert [each for part in told for each in part.ids.tolist()] == whole.ids.tolist()
        assert [each for part in told for each in part.removed.tolist()] == whole.removed.tolist() == sorted(ids[12:30])
        np.testing.assert_array_equal(np.concatenate([part.vectors for part in told]), whole.vectors)
        held = dict(zip(gallery.ids.tolist(), gallery._view.told.vectors, strict=True))
        np.testing.assert_array_equal(whole.vectors, np.stack([held[each] for each in whole.ids.tolist()]))
        assert gallery.changes_since(version, after="~" if texts else "9" * 40).ids.tolist() == []


_order_of = Order.of.__func__


def test_few_items_or_none_are_a_gallery_too(tmp_path):
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.refined is None and gallery.dim is None
        assert gallery.search(X[:2]).ids.shape == (2, 0)
        np.testing.assert_allclose(gallery.refine(X[:2]), Embeddings.from_vectors(X[:2]).vectors)
        for count in range(1, 8):
            gallery.add(X[count : count + 1], [count])
            assert gallery.search(X[:2], 3).ids.shape == (2, min(count, 3))
            assert_equals_a_rebuild(gallery)
        gallery.remove(gallery.ids)
        assert len(gallery) == 0 and gallery.changes_since(7).removed.tolist() == list(range(1, 8))
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.version == 8 and len(gallery) == 0
        gallery.add(X[:2], [3, 9])
        assert gallery.ids.tolist() == [3, 9]


@pytest.mark.parametrize(("base_map", "fallback"), [(True, False), (False, True), (True, True)])
def test_a_learned_refiner_is_kept_with_its_base_map_and_fallback(tmp_path, base_map, fallback):
    refiner = learned(16, base_map, fallback)
    rng, manners = np.random.default_rng(1), set()
    with Gallery(tmp_path / "g", refiner) as gallery:
        gallery.add(X[:200], range(200))
        for round_ in range(12):
            noise = rng.normal(size=(8, 16)) * 2
            gallery.add(X[200 + 8 * round_ : 208 + 8 * round_] + noise, replace=True, ids=200 + rng.permutation(60)[:8])
            assert_equals_a_rebuild(gallery)
            weighted = gallery._view.state.weighted
            assert weighted.pull > 0
            manners.add((weighted.blend, weighted.pull))
    with Gallery(tmp_path / "g", refiner) as gallery:
        assert_equals_a_rebuild(gallery)
    assert (len(manners) > 1) == fallback


def test_many_copies_are_one_node_and_losing_the_first_hands_over(tmp_path):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:100], range(100))
        gallery.add(np.repeat(X[50:51], 60, axis=0), range(1000, 1060))
        gallery.add(X[50] + 1e-4 * np.random.default_rng(0).normal(size=(60, 16)), range(2000, 2060))
        state = gallery._view.state
        assert (state.represented_by[100:] == 50).all()
        gallery.remove([50])
        assert (gallery._view.state.represented_by[99:] == 99).all()
        assert_equals_a_rebuild(gallery)
        gallery.add(X[50:51], [50])
        assert_equals_a_rebuild(gallery)


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda g: g.add(X[:2], [600, 5]), InputError, "there already: 5"),
        (lambda g: g.add(X[:2], ["a", "b"]), InputError, "the ids of this gallery are whole numbers"),
        (lambda g: g.add(X[:2], [700, 700]), InputError, "700"),
        (lambda g: g.add(X[:2], [700]), InputError, "ids"),
        (lambda g: g.add(X[:2, :9], [700, 701]), ModelError, "9 dimensions, but the gallery holds vectors of 16"),
        (lambda g: g.add(np.zeros((1, 16)), [700]), InputError, "all zeros"),
        (lambda g: g.update(X[:1], [700]), InputError, "no items of these ids: 700"),
        (lambda g: g.remove([5, 700]), InputError, "no items of these ids: 700"),
        (lambda g: g.remove(["5"]), InputError, "whole numbers"),
        (lambda g: g.search(X[:1], 0), InputError, "k is 0"),
        (lambda g: g.search(X[:1, :9]), ModelError, "9 dimensions"),
        (lambda g: g.changes_since(2), InputError, "version is 2"),
        (lambda g: g.check_encoder("large"), ModelError, "the encoder 'large'"),
        (lambda g: g.check_encoder(canaries=X[1:4]), ModelError, "another encoder"),
        (lambda g: g.check_encoder(canaries=X[:2]), ModelError, r"shape \(2, 16\)"),
        (lambda g: g.rerank(X[0], ids=[700]), InputError, "no items of these ids: 700"),
        (lambda g: Gallery(g._folder), FileError, "by another process"),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(gallery, act, error, says):
    with pytest.raises(error, match=says):
        act(gallery)
    assert (gallery.version, len(gallery)) == (1, 600)
    gallery.check_encoder("small", X[:3] * 1.001)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"encoder": "large"}, "the encoder 'large'"),
        ({"canaries": X[3:6]}, "another encoder"),
        ({"eps": 0.5}, "eps is 0.5"),
        ({"refiner": ContextRefiner(5, 2)}, "another refiner"),
    ],
)
def test_an_existing_gallery_is_not_opened_as_another_one(gallery, options, says):
    gallery.close()
    if "refiner" in options:
        options["refiner"].fit(X)
    with pytest.raises(EntourageError, match=says):
        Gallery(gallery._folder, **options)
    with Gallery(gallery._folder, encoder="small", canaries=X[:3], eps=1e-3) as again:
        assert len(again) == 600


def test_vectors_that_look_like_another_encoders_are_warned_of(tmp_path):
    refiner = learned(16, base_map=True, fallback=False)
    refiner.encoder_profile_ = np.square(Embeddings.from_vectors(X * np.geomspace(1, 30, 16)).vectors).mean(axis=0)
    Gallery(tmp_path / "g", refiner).close()
    with Gallery(tmp_path / "g", refiner) as gallery:
        gallery.add(X[:200] * np.geomspace(1, 30, 16), range(200))
        with pytest.warns(EntourageWarning, match="another encoder"):
            gallery.add(X[200:400] * np.geomspace(30, 1, 16), range(200, 400))


def test_other_folders_and_other_refiners_are_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(FileError, match=r"config\.json"):
        Gallery(tmp_path / "notes")
    refiner = ContextRefiner().fit(X)
    refiner.save(tmp_path / "model")
    with pytest.raises(ModelError, match="gallery"):
        Gallery(tmp_path / "model")
    with pytest.raises(InputError, match="PaperRefiner"):
        Gallery(tmp_path / "g", PaperRefiner())
    assert not (tmp_path / "g").exists()


def test_much_at_once_is_computed_from_scratch(gallery, monkeypatch):
    calls = []
    monkeypatch.setattr(State, "of", classmethod(lambda cls, *given: calls.append(1) or _of(cls, *given)))
    gallery.add(X[600:610], range(600, 610))
    assert calls == []
    gallery.remove(range(300))
    assert calls == [1]


_of = State.of.__func__


def test_a_gallery_that_begins_leaves_its_items_as_they_are_and_refines_by_degrees(tmp_path):
    vectors, gallery = clustered(60, dim=16, seed=3), Gallery(tmp_path / "gallery")
    moved = []
    for number, vector in enumerate(vectors):
        gallery.add(vector[None], [number])
        unit = vectors[: number + 1] / np.linalg.norm(vectors[: number + 1], axis=1, keepdims=True)
        moved.append(np.linalg.norm(gallery.refined.vectors - unit, axis=1).mean())
    assert max(moved[:20]) < 1e-6 and moved[-1] > 0.1
    assert np.abs(np.diff(moved)).max() < 0.3 * moved[-1]  # no leap
