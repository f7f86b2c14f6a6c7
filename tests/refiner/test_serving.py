"""A served gallery gives queries what the gallery as context gives them, and does the gallery's work once."""

import pickle
import warnings

import numpy as np
import pytest
from tests.refiner.samples import clusters

from entourage.errors import EntourageWarning, ModelError
from entourage.neighbors import index, search
from entourage.refiner import ContextRefiner, network
from entourage.refiner import context as relational
from entourage.refiner.paper import network as paper
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

QUERY = np.arange(360) % 4 == 0
PAPER = {"n_neighbors": 5, "n_blocks": 3, "epochs": 1, "batch_classes": 8}


@pytest.fixture(scope="module", params=["relational", "paper", "paper with a head"])
def refiner(request, untaught):
    if request.param == "relational":
        return untaught
    return PaperRefiner(**PAPER, out_dim=9 if "head" in request.param else None).fit(*clusters(seed=0))


@pytest.fixture(scope="module")
def vectors():
    return clusters(seed=1)[0]


def test_queries_get_what_the_gallery_as_context_gives_them(refiner, vectors):
    queries, gallery = vectors[QUERY], vectors[~QUERY]
    served = refiner.serve(gallery)
    refined = served.transform(queries)
    np.testing.assert_allclose(refined, refiner.transform(queries, gallery), atol=1e-6)
    np.testing.assert_allclose(served.refined_gallery, refiner.transform(gallery, context=gallery), atol=1e-6)
    for batch in (slice(0, 1), slice(7, 20)):
        np.testing.assert_allclose(served.transform(queries[batch]), refined[batch], atol=1e-6)


def test_both_at_once_are_what_they_are_one_by_one(refiner, vectors):
    queries, gallery = vectors[QUERY], vectors[~QUERY]
    refined, refined_gallery = refiner.transform_both(queries, gallery)
    np.testing.assert_allclose(refined, refiner.transform(queries, gallery), atol=1e-6)
    np.testing.assert_allclose(refined_gallery, refiner.transform(gallery, context=gallery), atol=1e-6)
    for same in refiner.transform_both(gallery, gallery):
        np.testing.assert_allclose(same, refined_gallery, atol=1e-6)
        assert same.flags.writeable


def test_queries_of_the_gallery_by_id_or_as_copies_get_the_same_too(refiner, vectors):
    gallery = Embeddings.from_vectors(np.vstack([vectors, vectors[:20]]), ids=[f"{i:03}" for i in range(380)])
    served = refiner.serve(gallery)
    moved = Embeddings.from_vectors(vectors[5:9] + 0.3, ids=gallery.ids[5:9])  # another view of the same items
    for queries in (gallery.take(np.arange(0, 380, 7)), moved, vectors[:30]):
        np.testing.assert_allclose(served.transform(queries), refiner.transform(queries, gallery), atol=1e-6)
    np.testing.assert_allclose(served.transform(gallery), served.refined_gallery, atol=1e-6)


def test_nothing_of_the_gallery_is_done_twice(refiner, vectors, monkeypatch):
    ids = np.array([f"{i:03}" for i in range(360)])
    served = refiner.serve(Embeddings.from_vectors(vectors[~QUERY], ids=ids[~QUERY][::-1]))
    queries = Embeddings.from_vectors(vectors[QUERY], ids=ids[QUERY])
    served.transform(queries)

    def again(*arguments, **options):
        raise AssertionError("done before")

    monkeypatch.setattr(index, "groups_of_equal_vectors", again)
    monkeypatch.setattr(network, "build_graph", again)
    monkeypatch.setattr(relational.Surroundings, "of", again)
    monkeypatch.setattr(relational.WeightedGraph, "steps", again)
    monkeypatch.setattr(relational, "trust", again)
    monkeypatch.setattr(paper.CrossAttention, "offer", again)
    monkeypatch.setattr(vars(index.SearchIndex)["by_id"], "func", again)
    served.transform(queries.take(np.arange(5)))
    served.refined_gallery  # noqa: B018
    monkeypatch.setattr(type(served._prepared), "refined", again)
    served.refined_gallery  # noqa: B018


def test_what_comes_back_is_the_callers_own(refiner, vectors):
    served = refiner.serve(vectors[~QUERY])
    first = served.transform(vectors[QUERY])
    copy = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(served.transform(vectors[QUERY]), copy)


def test_vectors_of_another_encoder_are_refused(refiner, vectors):
    with pytest.raises(ModelError, match="the gallery has 31 features"):
        refiner.serve(vectors[:, :31])
    with pytest.raises(ModelError, match="X has 31 features"):
        refiner.serve(vectors).transform(vectors[:, :31])


def test_a_served_gallery_can_be_pickled(refiner, vectors):
    served = refiner.serve(vectors[~QUERY])
    again = pickle.loads(pickle.dumps(served))
    np.testing.assert_array_equal(again.transform(vectors[QUERY]), served.transform(vectors[QUERY]))
    np.testing.assert_array_equal(again.refined_gallery, served.refined_gallery)


def test_the_first_serving_warns_that_refined_queries_are_not_for_the_index(refiner, vectors, monkeypatch):
    monkeypatch.setattr("entourage.runtime.warnings._said", set())
    with pytest.warns(EntourageWarning, match="do not add them to it") as seen:
        refiner.serve(vectors)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refiner.serve(vectors)


def precision_at_10(arrivals, gallery, labels, known_labels) -> float:
    """Of arrivals searched among gallery and arrivals; labels of both."""
    everything, of_all = np.vstack([arrivals, gallery]), np.concatenate([labels, known_labels])
    found = search(Embeddings.from_vectors(everything), k=10).rows[: len(arrivals)]
    return float((of_all[found] == labels[:, None]).mean())


def test_new_classes_belong_into_the_gallery_that_is_served():
    """What the warning and the documentation say: as queries they end up worse than raw, served anew better."""
    vectors, labels = clusters(seed=4, n_classes=40, per_class=15, noise=1.2)
    new = labels >= 30
    gallery, arrivals = vectors[~new], vectors[new]
    raw = precision_at_10(arrivals, gallery, labels[new], labels[~new])
    served = ContextRefiner().fit(gallery).serve(gallery)
    as_queries = precision_at_10(served.transform(arrivals), served.refined_gallery, labels[new], labels[~new])
    anew = ContextRefiner().fit(vectors).serve(vectors).refined_gallery
    served_anew = precision_at_10(anew[new], anew[~new], labels[new], labels[~new])
    assert as_queries < raw < served_anew


@pytest.mark.parametrize("gallery", [np.ones((1, 4)), np.ones((20, 4))], ids=["one item", "copies of one"])
def test_a_gallery_of_one_is_served_as_it_is(gallery):
    served = ContextRefiner().fit(gallery).serve(gallery)
    np.testing.assert_allclose(served.refined_gallery, gallery / 2)
    np.testing.assert_allclose(served.transform([[1.0, 0, 0, 0]]), [[1.0, 0, 0, 0]])
