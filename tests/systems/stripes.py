"""Small pictures whose classes a small encoder learns to tell apart in seconds."""

import numpy as np

from entourage.data.arrays import ImageArray


def stripes(n_classes=12, per_class=8, seed=0, side=16) -> ImageArray:
    """Classes of striped pictures, each of its own direction and width, shifted and noisy."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    labels = np.repeat(np.arange(n_classes), per_class)
    pixels = []
    for label in labels:
        angle, width = np.pi * label / n_classes, 1.5 + label % 3
        wave = np.sin((np.cos(angle) * x + np.sin(angle) * y) / width + rng.uniform(0, 6.3))
        pixels.append(127 + 60 * wave + rng.normal(0, 25, (side, side)))
    return ImageArray(np.clip(pixels, 0, 255).astype(np.uint8), labels)
