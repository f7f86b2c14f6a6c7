"""Galleries to change, and what a rebuild of them gives."""

from dataclasses import replace

import numpy as np

from entourage.refiner import ContextRefiner
from entourage.refiner.gallery.state import State
from entourage.refiner.universal import universal_network


def clustered(n: int, dim: int = 8, classes: int = 6, noise: float = 0.5, seed: int = 0) -> np.ndarray:
    """(n, dim) vectors in clusters, a tenth of them near copies or copies of others."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, dim))
    vectors = centres[rng.integers(classes, size=n)] + noise * rng.normal(size=(n, dim))
    for row in rng.choice(n, n // 10, replace=False):
        vectors[row] = vectors[rng.integers(n)] + rng.choice([0, 1e-3, 3e-2]) * rng.normal(size=dim)
    return vectors.astype(np.float32)


def learned(dim: int, base_map: bool, fallback: bool, n_neighbors: int = 6, n_steps: int = 3) -> ContextRefiner:
    """A refiner with all that labels can teach, without the time it takes to teach it."""
    rng = np.random.default_rng(0)
    network = universal_network(n_neighbors)
    scorer = replace(network.scorer, weights=tuple(w + 0.1 * rng.normal(size=w.shape) for w in network.scorer.weights))
    turned = np.linalg.qr(rng.normal(size=(dim, dim)))[0] * np.linspace(0.5, 2, dim)
    # The gallery is less pure than usual, and how much the fallback counts changes as items come and go.
    other = replace(universal_network(n_neighbors + 3), blend=0.7) if fallback else None
    refiner = ContextRefiner(n_neighbors, n_steps).fit(clustered(100, dim))
    refiner.network_ = replace(
        network,
        scorer=scorer,
        base_map=turned.astype(np.float32) if base_map else None,
        pull=0.4,
        fallback=other,
        usual_purity=1.0,
    )
    return refiner


def assert_equals_a_rebuild(gallery) -> None:
    """Copies, lists, refined vectors: all of them as they would be from scratch."""
    state = gallery._view.state
    if state is None:
        return
    rebuilt = State.of(state.recipe, state.items)
    np.testing.assert_array_equal(state.represented_by, rebuilt.represented_by)
    graph, expected = state.weighted.graph, rebuilt.weighted.graph
    np.testing.assert_array_equal(graph.neighbors.rows, expected.neighbors.rows)
    np.testing.assert_array_equal(graph.neighbors.similarities, expected.neighbors.similarities)
    assert graph.copy_similarity == expected.copy_similarity
    assert (state.weighted.blend, state.weighted.pull) == (rebuilt.weighted.blend, rebuilt.weighted.pull)
    np.testing.assert_allclose(state.weighted.weights, rebuilt.weighted.weights, atol=1e-6)
    np.testing.assert_allclose(state.refined.vectors, rebuilt.refined.vectors, atol=1e-5)


class Index:
    """An index elsewhere that holds refined vectors and follows the changes of a gallery."""

    def __init__(self) -> None:
        self.version, self.vectors = 0, {}

    def follow(self, gallery) -> int:
        """Do what the gallery says; how many vectors were replaced."""
        changes = gallery.changes_since(self.version)
        for gone in changes.removed.tolist():
            self.vectors.pop(gone, None)
        self.vectors |= dict(zip(changes.ids.tolist(), changes.vectors, strict=True))
        self.version = changes.version
        return len(changes.ids)

    def assert_up_to_date(self, gallery) -> None:
        refined = gallery.refined
        assert list(self.vectors) == [] if refined is None else sorted(self.vectors) == refined.ids.tolist()
        if refined is not None:
            held = np.stack([self.vectors[each] for each in refined.ids.tolist()])
            assert np.linalg.norm(held - refined.vectors, axis=1).max() <= gallery.eps + 2e-6
