"""Made-up data of the size and shape of a real test split: many classes of a few items."""

import numpy as np

__all__ = ["CLASSES", "DIMENSIONS", "FULL", "QUICK", "clustered_items"]

# The test split of Stanford Online Products has 60,502 items of 11,316 classes, 2 to 12 of each.
FULL, CLASSES = 60_502, 11_316
QUICK, DIMENSIONS = 12_288, 512
_LEAST, _MOST = 2, 12
# Classes overlap, as real ones do: the nearest item of three in four (quick size) is of the same class.
_INNER_DIMENSIONS, _SPREAD, _NOISE = 64, 1.1, 0.3


def clustered_items(n: int, d: int = DIMENSIONS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (n, d) float32 and their labels (n,), in random order; n / 5.35 classes of 2 to 12 items.

    Items lie around the centres of their classes in a space of 64 dimensions, which is spread over all d.
    """
    draw = np.random.default_rng(seed)
    labels = draw.permutation(_labels(n, max(1, round(n * CLASSES / FULL)), draw))
    centres = draw.normal(size=(labels.max() + 1, _INNER_DIMENSIONS))
    inner = centres[labels] + _SPREAD * draw.normal(size=(n, _INNER_DIMENSIONS))
    spread_over = draw.normal(size=(_INNER_DIMENSIONS, d)) / np.sqrt(_INNER_DIMENSIONS)
    vectors = (inner @ spread_over).astype(np.float32)
    vectors += _NOISE * draw.standard_normal((n, d), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), labels


def _labels(n: int, n_classes: int, draw: np.random.Generator) -> np.ndarray:
    """Two items of each class; the others take random places among those left."""
    places = np.repeat(np.arange(n_classes), _MOST - _LEAST)
    others = draw.permutation(places)[: n - _LEAST * n_classes]
    return np.concatenate([np.repeat(np.arange(n_classes), _LEAST), others])
