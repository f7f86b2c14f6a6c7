"""Whether a query has a match in the gallery at all: against plain loops, without labels, from raw vectors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from tests.refiner.samples import clusters, unit

from entourage import open_set_threshold
from entourage.errors import ModelError
from entourage.neighbors import SearchIndex
from entourage.neighbors.copies import search_distinct
from entourage.refiner import ContextRefiner, confidence
from entourage.refiner.confidence import GalleryConfidence
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

# Of thirty classes the gallery has twenty; queries are of all.
VECTORS, LABELS = clusters(seed=3, noise=0.6)
QUERY = np.arange(len(LABELS)) % 4 == 0
KNOWN = LABELS[QUERY] < 20
QUERIES, GALLERY = VECTORS[QUERY], VECTORS[~QUERY & (LABELS < 20)]


def confidences(queries, gallery) -> np.ndarray:
    items = gallery if isinstance(gallery, Embeddings) else Embeddings.from_vectors(gallery)
    asked = queries if isinstance(queries, Embeddings) else Embeddings.from_vectors(queries)
    return GalleryConfidence(SearchIndex(items)).of(asked)


def best_cosines(queries, gallery) -> np.ndarray:
    return (unit(queries) @ unit(gallery).T).max(axis=1)


@pytest.fixture(scope="module")
def served(untaught):
    return untaught.serve(GALLERY)


def test_it_is_the_share_of_gallery_items_with_a_farther_neighbour(served):
    cosines = unit(GALLERY) @ unit(GALLERY).T
    np.fill_diagonal(cosines, -2)
    farther = (cosines.max(axis=1)[None, :] < best_cosines(QUERIES, GALLERY)[:, None]).mean(axis=1)
    found = served.confidence(QUERIES)
    assert found.shape == (len(QUERIES),) and found.min() >= 0 and found.max() <= 1
    np.testing.assert_allclose(found, farther, atol=1.5 / len(GALLERY))  # up to interpolation
    assert found[KNOWN].std() > 0.1  # not all alike


def test_it_grows_wherever_the_raw_cosine_does_inside_the_usual_range_and_beyond():
    gallery = Embeddings.from_vectors([[np.cos(a), np.sin(a)] for a in (0.0, 0.3, 0.7, 1.2)])
    angles = np.linspace(0, np.pi, 500)  # away from the first item, on the side where no other is
    found = confidences([[np.cos(a), -np.sin(a)] for a in angles], gallery)
    nearest = best_cosines([[np.cos(a), -np.sin(a)] for a in angles], gallery.vectors)
    order = np.argsort(nearest)
    assert (np.diff(found[order])[np.diff(nearest[order]) > 1e-6] > 0).all()  # and not by rounding alone
    assert found.min() < 0.02 and found[0] > 0.99  # the share is 0 at one end, 1 at the other


def test_it_separates_known_from_unknown_as_the_raw_cosine_does_and_refined_cosines_do_not(served):
    raw = roc_auc_score(KNOWN, best_cosines(QUERIES, GALLERY))
    assert roc_auc_score(KNOWN, served.confidence(QUERIES)) == pytest.approx(raw)
    refined = best_cosines(served.transform(QUERIES), served.refined_gallery)
    assert np.median(refined[~KNOWN]) > np.median(best_cosines(QUERIES, GALLERY)[~KNOWN]) + 0.1


def test_of_known_queries_about_the_share_is_below_a_confidence_that_it_says():
    vectors, labels = clusters(seed=5, n_classes=60, per_class=40)
    asked = np.arange(len(labels)) % 5 == 0
    found = confidences(vectors[asked], vectors[~asked])
    for share in (0.05, 0.25, 0.5, 0.75):
        assert (found < share).mean() == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize("recipe", ["relational", "with labels", "paper"])
def test_every_recipe_serves_it_from_raw_vectors(recipe, untaught, short_rehearsals):
    refiner = untaught
    if recipe == "with labels":
        refiner = ContextRefiner().fit(*clusters(seed=0))
    elif recipe == "paper":
        refiner = PaperRefiner(n_neighbors=5, n_blocks=2, epochs=1, batch_classes=8).fit(*clusters(seed=0))
    np.testing.assert_allclose(refiner.serve(GALLERY).confidence(QUERIES), confidences(QUERIES, GALLERY), atol=1e-6)


def test_a_gallery_item_is_judged_by_its_nearest_other(served, untaught):
    alone = np.eye(32)[0] * 50  # far from everything
    ids = [f"{i:03}" for i in range(len(GALLERY) + 1)]
    named = Embeddings.from_vectors(np.vstack([GALLERY, alone]), ids=ids)
    with_ids = untaught.serve(named)
    assert with_ids.confidence(named.take([len(GALLERY)]))[0] < 0.05
    assert with_ids.confidence(alone[None])[0] > 0.99  # without an id it is a query that is found
    own = served.confidence(GALLERY)  # the same vectors are the same set, without ids too
    assert own.mean() == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(with_ids.confidence(named).mean(), 0.5, atol=0.01)


@pytest.mark.parametrize("times", [2, 15])
def test_copies_in_the_gallery_change_nothing(times):
    gallery = GALLERY[::2]
    half_a_rank = 0.5 / len(gallery)  # copies may tell apart cosines of items that are nearest to each other
    near = np.random.default_rng(0).normal(size=(times - 1, *gallery.shape)) * 1e-5
    for copies in (np.zeros_like(near), near):
        crowded = np.vstack([gallery, *(gallery + copies)])
        np.testing.assert_allclose(
            confidences(QUERIES, crowded), confidences(QUERIES, gallery), atol=half_a_rank + 1e-3
        )


def test_what_is_usual_is_what_the_graph_finds():
    gallery = Embeddings.from_vectors(np.vstack([GALLERY, GALLERY[:40], GALLERY[:10] + 1e-4]))
    _, _, found = search_distinct(gallery, 1)
    usual = GalleryConfidence(SearchIndex(gallery)).usual
    # The graph measures to the item that stands for its copies, which are up to 1e-4 from it.
    np.testing.assert_allclose(usual, np.sort(found.similarities[:, 0]), atol=2e-5)


def test_the_order_of_the_gallery_does_not_matter_nor_that_a_sample_of_it_is_looked_at(monkeypatch):
    ids = np.array([f"{i:03}" for i in range(len(GALLERY))])
    shuffled = np.random.default_rng(0).permutation(len(GALLERY))
    everything = confidences(QUERIES, GALLERY)
    monkeypatch.setattr(confidence, "_SAMPLE", 60)
    sampled, again = (
        confidences(QUERIES, Embeddings.from_vectors(GALLERY[rows], ids=ids[rows]))
        for rows in (np.arange(len(GALLERY)), shuffled)
    )
    np.testing.assert_allclose(sampled, again, atol=1e-6)
    assert 0 < np.abs(sampled - everything).max() < 0.2  # three standard errors of a share
    assert roc_auc_score(KNOWN, sampled) == pytest.approx(roc_auc_score(KNOWN, everything))


def test_galleries_with_nothing_to_compare_with():
    one = Embeddings.from_vectors([[1.0, 0.0]], ids=["a"])
    queries = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]], ids=["b", "c", "d", "a"])
    np.testing.assert_allclose(confidences(queries, one), [1, 0.5, 0, 0], atol=1e-5)
    same = Embeddings.from_vectors(np.ones((30, 2)))  # copies of one item
    np.testing.assert_allclose(confidences([[1.0, 1.0], [-1.0, -1.0]], same), [1, 0], atol=1e-5)


def test_the_gallery_is_looked_at_once(untaught, monkeypatch):
    served = untaught.serve(GALLERY)
    first = served.confidence(QUERIES)
    monkeypatch.setattr(confidence, "_nearest_others", lambda gallery: pytest.fail("done before"))
    np.testing.assert_array_equal(served.confidence(pd.DataFrame(QUERIES)), first)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(served)).confidence(QUERIES), first)


def test_vectors_of_another_encoder_are_refused(served):
    with pytest.raises(ModelError, match="X has 31 features"):
        served.confidence(QUERIES[:, :31])


def test_a_threshold_from_a_sample_keeps_the_known_and_says_how_many_unknown_pass(served):
    found = served.confidence(QUERIES)
    threshold = open_set_threshold(found[KNOWN][::2], found[~KNOWN][::2], tpr=0.9)
    assert threshold.tpr >= 0.9 > (found[KNOWN][::2] > threshold.value).mean()
    assert (found[KNOWN][1::2] >= threshold.value).mean() > 0.75  # on the others of the known queries
    assert threshold.fpr < 0.2
