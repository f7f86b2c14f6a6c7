"""Items of new classes that arrive hour by hour are found as after a rebuild, and not worse than by raw vectors."""

import numpy as np
import pytest
from tests.refiner.samples import clusters

from entourage import Gallery, search
from entourage.refiner import ContextRefiner
from entourage.refiner.universal import universal_network

pytestmark = pytest.mark.usefixtures("one_thread")

K = 10


def precision(rows: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> float:
    """The share of the nearest that are of the query's class; rows (n, 10) of the gallery."""
    return float((labels[rows] == labels[queries][:, None]).mean())


def test_a_gallery_that_grows_hour_by_hour_finds_new_classes(tmp_path):
    vectors, labels = clusters(seed=5, n_classes=60, per_class=20, noise=2.0, dim=48)
    order = np.random.default_rng(0).permutation(len(vectors))
    known, new = order[labels[order] < 40], order[labels[order] >= 40]
    refiner = ContextRefiner().fit(vectors[known])
    refiner.network_ = universal_network()
    with Gallery(tmp_path / "shop", refiner) as gallery:
        gallery.add(vectors[known], known)
        for hour in np.array_split(new, 8):
            gallery.add(vectors[hour], hour)
        grown = gallery.refined
    served = refiner.serve(vectors[known])
    as_queries = np.vstack([served.refined_gallery, served.transform(vectors[new])])  # the obvious hourly job
    there = np.r_[known, new]

    scores = {
        "raw": precision(search(vectors, k=K).rows[new], labels, new),
        "added as queries": precision(there[search(as_queries, k=K).rows[len(known) :]], labels, new),
        "gallery": precision(grown.ids[search(grown, k=K).rows[new]], labels, new),
        "rebuilt": precision(search(refiner.transform(vectors, context=vectors), k=K).rows[new], labels, new),
    }
    assert scores["gallery"] == pytest.approx(scores["rebuilt"], abs=2e-3), scores
    assert scores["added as queries"] < scores["raw"] < scores["gallery"] - 0.02, scores
