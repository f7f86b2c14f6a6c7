"""Neighbours from an index elsewhere: every entry point takes them, and gives what its own search would give."""

import numpy as np
import pytest

from entourage import ContextRefiner, Embeddings, search
from entourage.errors import InputError


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 8))
    return (centres[np.arange(200) % 10] + 0.5 * rng.normal(size=(200, 8))).astype(np.float32)


def lists(queries, gallery, k):
    """What an index returns: ids and distances, with the item itself among its neighbours."""
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (queries, gallery))
    distances = 1 - a @ b.T
    ids = np.argsort(distances, axis=1)[:, :k]
    return ids, np.take_along_axis(distances, ids, axis=1)


def test_search_puts_given_neighbours_in_order_and_measures_their_recall(vectors):
    ids, distances = lists(vectors, vectors, 20)
    shuffled = np.random.default_rng(1).permuted(ids, axis=1)
    found, own = search(vectors, k=8, by=(shuffled, distances)), search(vectors, k=8)
    assert np.array_equal(found.rows, own.rows) and np.allclose(found.similarities, own.similarities, atol=1e-6)
    assert found.method.startswith("approximate (given neighbours), recall 1.000")
    worse = np.where(np.arange(20) % 2, ids, (ids + 97) % 200)
    assert "recall 1.000" not in search(vectors, k=8, by=worse).method


def test_lists_name_items_by_their_ids_and_may_be_short(vectors):
    gallery = Embeddings.from_vectors(vectors, ids=[f"item {row}" for row in range(200)])
    ids, _ = lists(vectors[:5], vectors, 12)
    named = [[f"item {row}" for row in each] for each in ids]
    named[3] = named[3][:2]  # the others of it are searched
    queries = Embeddings.from_vectors(vectors[:5], ids=[f"query {row}" for row in range(5)])
    assert np.array_equal(search(queries, gallery, 6, by=named).rows, search(queries, gallery, 6).rows)


def test_refining_by_given_neighbours_is_refining(vectors):
    items, queries = vectors[:160], vectors[160:]
    own, asked = lists(items, items, 40), lists(queries, items, 30)
    refiner = ContextRefiner().fit(items, neighbors=own)
    assert "given neighbours" in refiner.report()["protocol"]["context"]
    plain = ContextRefiner().fit(items)
    same = {"atol": 1e-6}
    assert np.allclose(ContextRefiner().fit_transform(items, neighbors=own), plain.transform(items), **same)
    assert np.allclose(refiner.transform(items, context=items, neighbors=own), plain.transform(items), **same)
    expected = plain.transform(queries, context=items)
    given = refiner.transform(queries, context=items, neighbors=asked, context_neighbors=own)
    assert np.allclose(given, expected, **same)
    both = refiner.transform_both(queries, items, neighbors=asked, gallery_neighbors=own)
    assert np.allclose(both[0], expected, **same) and np.allclose(both[1], plain.transform(items), **same)
    again = ContextRefiner().fit_transform_both(queries, items, neighbors=asked, gallery_neighbors=own)
    assert np.allclose(again[0], expected, **same)
    assert np.allclose(refiner.serve(items, neighbors=own).transform(queries), expected, **same)


def test_copies_are_found_among_given_neighbours_too(vectors):
    items = np.concatenate([vectors, vectors[:30], vectors[:30]])
    own = lists(items, items, 50)
    assert np.allclose(
        ContextRefiner().fit_transform(items, neighbors=own), ContextRefiner().fit_transform(items), atol=1e-5
    )


def test_a_paper_refiner_takes_them_too(vectors):
    pytest.importorskip("torch")
    from entourage import PaperRefiner

    labels = np.arange(200) % 10
    refiner = PaperRefiner(n_neighbors=6, n_blocks=1, epochs=1).fit(vectors, labels)
    own = lists(vectors, vectors, 20)
    assert np.array_equal(
        refiner.transform(vectors, context=vectors, neighbors=own), refiner.transform(vectors, context=vectors)
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda v, ids: search(v, k=8, by=ids[:5]), "by are 5 lists for 200 items"),
        (lambda v, ids: search(v, k=30, by=ids), "most lists name 19 neighbours; ask your index for more"),
        (lambda v, ids: search(v, k=8, by=ids + 9), "which is not in the gallery; wanted rows from 0 to 199"),
        (lambda v, ids: search(v, k=8, by=ids * 0.5), "hold float64; wanted ids"),
        (lambda v, ids: search(v, k=8, by=list(ids * 0.5)), "hold float64; wanted ids"),
        (lambda v, ids: search(v, k=8, by=(ids, ids[:, :3])), "differ in length"),
        (lambda v, ids: search(v, k=8, by=ids.astype(str)), "the gallery has no ids; give rows"),
        (lambda v, ids: ContextRefiner().fit(v, np.arange(200) % 10, neighbors=ids), "leave them out here"),
        (lambda v, ids: ContextRefiner().fit(v, neighbors=ids[:, :6]), "name 5 others; wanted at least 12"),
        (
            lambda v, ids: ContextRefiner().fit(v).transform(v, context=v, context_neighbors=ids),
            "give neighbors alone",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(vectors, call, said):
    with pytest.raises(InputError, match=said):
        call(vectors, lists(vectors, vectors, 20)[0])


def test_the_command_takes_files_of_lists(vectors, tmp_path, monkeypatch):
    import json

    from typer.testing import CliRunner

    from entourage.cli import app

    monkeypatch.chdir(tmp_path)
    items, queries = vectors[:160], vectors[160:]
    np.save("items.npy", items)
    np.save("queries.npy", queries)
    for name, given in {"own": lists(items, items, 40), "asked": lists(queries, items, 30)}.items():
        np.savez(f"{name}.npz", ids=given[0], scores=given[1])

    def refined(*options):
        outcome = CliRunner().invoke(app, ["refine", *options, "--out", "out.npy", "--overwrite", "--json"])
        assert outcome.exit_code == 0, outcome.stderr
        return np.load("out.npy"), json.loads(outcome.stdout)

    given, report = refined("items.npy", "--results", "own.npz")
    assert np.allclose(given, refined("items.npy")[0], atol=1e-6)
    assert "given neighbours" in report["protocol"]["neighbors"]
    gallery = ("queries.npy", "--context", "items.npy")
    given, _ = refined(*gallery, "--results", "asked.npz", "--context-results", "own.npz")
    assert np.allclose(given, refined(*gallery)[0], atol=1e-6)
    refused = CliRunner().invoke(app, ["refine", "items.npy", "--context-results", "own.npz", "--out", "b.npy"])
    assert refused.exit_code == 2 and "there is no gallery; add --context" in refused.stderr
