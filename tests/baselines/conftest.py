import numpy as np
import pytest

from entourage.values import Embeddings


@pytest.fixture
def clusters():
    """Labelled items around class centres, with shuffled ids: clusters(count, n_classes, seed)."""

    def make(count=48, n_classes=6, seed=0, dim=8, spread=0.7):
        rng = np.random.default_rng(seed)
        labels = np.arange(count) % n_classes
        vectors = rng.normal(size=(n_classes, dim))[labels] + spread * rng.normal(size=(count, dim))
        return Embeddings.from_vectors(vectors, rng.permutation(count), labels)

    return make


@pytest.fixture
def copies():
    """Fifty items in nine directions: most have several exact copies."""
    rng = np.random.default_rng(4)
    return Embeddings.from_vectors(rng.normal(size=(9, 5))[rng.integers(9, size=50)], rng.permutation(50))


@pytest.fixture
def pairs():
    """Orthogonal pairs: ten islands that share nothing."""
    axes = np.repeat(np.eye(10), 2, axis=0)
    axes[1::2] += 0.1 * np.eye(10)[np.arange(10)][:, ::-1]
    return Embeddings.from_vectors(axes, np.random.default_rng(5).permutation(20))


@pytest.fixture
def ranking():
    """Rows sorted by (-score, id) without the item itself, scores (N, N) compared as float32: plain loops."""

    def rank(items, scores, k):
        scores = scores.astype(np.float32)
        rows = []
        for q in range(len(items)):
            others = [p for p in range(len(items)) if p != q]
            rows.append(sorted(others, key=lambda p: (-scores[q, p], items.ids[p]))[:k])
        return np.array(rows)

    return rank


@pytest.fixture
def ranked():
    """All rows that a method ranks, (N, k)."""
    return lambda method, items, k: np.concatenate([found.rows for _, found in method.rank(items, k)])
