"""k-means: its steps against plain loops, its results against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from entourage.evaluation import clustering
from entourage.evaluation.clustering import MOST_ITERATIONS, _means, _nearest, _start, few_clusters, kmeans
from entourage.evaluation.metrics import normalized_mutual_information
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def sample(n_classes=40, per_class=8, seed=0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    vectors = draw.normal(size=(n_classes, 16))[labels] + 0.8 * draw.normal(size=(len(labels), 16))
    return Embeddings.from_vectors(vectors).vectors, labels


by_either = pytest.mark.parametrize("xp", [np, torch], ids=["numpy", "torch"])  # torch does it on a card


@by_either
def test_each_vector_goes_to_its_nearest_centre_and_each_centre_to_the_mean(xp):
    vectors = sample()[0].copy()
    centres = np.random.default_rng(1).normal(size=(30, 16)).astype(np.float32)  # of any length
    wanted = np.linalg.norm(vectors[:, None] - centres, axis=2).argmin(axis=1)
    clusters = _nearest(xp, xp.asarray(vectors), xp.asarray(centres))
    assert clusters.tolist() == wanted.tolist()
    means = np.asarray(_means(xp, *map(xp.asarray, (vectors, wanted, centres))))
    assert means.dtype == np.float32
    assert len(np.unique(wanted)) < 30, "precondition: a cluster is empty"
    for cluster in range(30):
        members = vectors[wanted == cluster]
        mean = members.mean(axis=0) if len(members) else centres[cluster]
        np.testing.assert_allclose(means[cluster], mean, atol=1e-6)


def test_it_clusters_as_well_as_scikit_learn():
    scores = {"ours": [], "theirs": []}
    for seed in range(8):
        vectors, labels = sample(seed=seed)
        theirs = KMeans(40, n_init=1, random_state=seed).fit_predict(vectors)
        scores["ours"].append(normalized_mutual_information(labels, kmeans(vectors, 40, seed)))
        scores["theirs"].append(normalized_mutual_information(labels, theirs))
    assert np.mean(scores["ours"]) > np.mean(scores["theirs"]) - np.std(scores["theirs"]) / 2


@by_either
def test_the_first_centres_reach_every_class_where_classes_lie_far_apart(xp):
    vectors = np.repeat(np.eye(50, dtype=np.float32), 6, axis=0)
    rows = _start(xp, xp.asarray(vectors), 50, np.random.default_rng(0), lambda *_: None)
    assert sorted(row // 6 for row in rows) == list(range(50))


def test_a_machine_with_a_card_clusters_there_and_finds_the_same(monkeypatch):
    vectors, _ = sample()
    wanted = kmeans(vectors, 40, 5)
    used = []

    def steps(xp, *arguments, nearest=_nearest):
        used.append(xp)
        return nearest(xp, *arguments)

    monkeypatch.setattr(clustering, "graphics_card", lambda: torch.device("cpu"))
    monkeypatch.setattr(clustering, "_nearest", steps)
    found = kmeans(vectors, 40, 5)
    assert set(used) == {torch} and isinstance(found, np.ndarray)
    assert found.tolist() == wanted.tolist()


def test_the_seed_decides_and_the_input_is_left_as_it_was():
    vectors, _ = sample()
    before = vectors.copy()
    first, again, other = kmeans(vectors, 40, 3), kmeans(vectors, 40, 3), kmeans(vectors, 40, 4)
    assert first.tolist() == again.tolist() != other.tolist()
    np.testing.assert_array_equal(vectors, before)


@pytest.mark.parametrize("n_clusters", [1, 4, 6])
def test_fewer_distinct_vectors_than_clusters_are_no_error(n_clusters):
    vectors = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    clusters = kmeans(vectors, n_clusters)
    assert clusters[0] == clusters[1] and clusters[2] == clusters[3] and clusters[4] == clusters[5]
    assert len(set(clusters.tolist())) == min(n_clusters, 3)


def test_every_iteration_is_reported_and_both_bars_end_full():
    calls = []
    kmeans(sample()[0], 40, progress=lambda *call: calls.append(call))
    starts = [call[1:] for call in calls if call[0] == "choosing first centres"]
    iterations = [call[1:] for call in calls if call[0].startswith("clustering")]
    assert starts[-1] == (40, 40) and len(starts) > 10
    assert iterations[:2] == [(1, MOST_ITERATIONS), (2, MOST_ITERATIONS)]
    assert iterations[-1] == (MOST_ITERATIONS, MOST_ITERATIONS)


def test_few_clusters_are_those_of_scikit_learn_whatever_else_is_installed():
    vectors, _ = sample(n_classes=4, per_class=30)
    theirs = KMeans(5, n_init=1, random_state=3).fit_predict(vectors)
    assert few_clusters(vectors, 5, 3).tolist() == theirs.tolist()


def test_few_clusters_are_the_classes_and_never_more_than_there_are_vectors():
    vectors, labels = sample(n_classes=4, per_class=30)
    clusters = few_clusters(vectors, 4, 1)
    assert normalized_mutual_information(labels, clusters) > 0.9
    assert clusters.tolist() == few_clusters(vectors, 4, 1).tolist()
    assert clusters.dtype == np.int64 and set(clusters.tolist()) <= set(range(4))
    same = few_clusters(np.eye(3, dtype=np.float32)[[0, 0, 1]], 5)  # fewer vectors than clusters, two of them equal
    assert same[0] == same[1] != same[2]
