"""Whether vectors come from the encoder that a refiner was fitted on: by how large each dimension is.

A base map means nothing to another encoder, but any encoder with as many dimensions passes it. Encoders differ in which
dimensions are large, whatever the items: the logarithms of their mean squares correlate between disjoint halves of the
classes of a set, and do not between encoders. Where they do not between the training classes either, as in vectors that
were whitened or in few dimensions, nothing can be told from them, and there is no profile.

N items, C classes, d dimensions.
"""

from collections.abc import Iterator

import numpy as np

from entourage.runtime.randomness import generator
from entourage.runtime.warnings import warn_caller
from entourage.values import Embeddings, FloatArray, IntArray, label_codes, labels_of

__all__ = ["checked_profile", "learn_profile", "warn_of_another_encoder"]

LEAST_ITEMS = 100
"""So many tell which dimensions are large; of fewer nothing is said."""

_MOST_ITEMS = 20_000  # more tell nothing new
_MOST_GROUPS = 500
_ITEMS_AT_ONCE = 1000
_SPLITS = 3
_CHANCE = 2.5  # standard deviations of the correlation of unrelated profiles, 1 / sqrt(d)
_SMALL = 1e-3  # of the mean square of a dimension; what is smaller is alike


def learn_profile(items: Embeddings) -> FloatArray | None:
    """The mean square of each dimension, if it is known again by classes that it was not taken from.

    Small sets of some classes are compared with half of the other classes. The least alike must be twice as far from
    chance as what `warn_of_another_encoder` warns of.

    Parameters
    ----------
    items : Embeddings
        N items with labels.

    Returns
    -------
    ndarray of shape (d,), float32, or None
    """
    items = _some(items)
    codes = label_codes(labels_of(items)) % _MOST_GROUPS  # of very many classes, some are taken together
    counts = np.bincount(codes)
    sums = np.zeros((len(counts), items.dim))
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        part = slice(start, start + _ITEMS_AT_ONCE)
        np.add.at(sums, codes[part], np.square(items.vectors[part]))
    alike = [
        _correlation(sums[half].sum(axis=0) / counts[half].sum(), small)
        for seed in range(_SPLITS)
        for half, other in _halves(len(counts), seed)
        for small in _profiles_of_small_sets(sums[other], counts[other])
    ]
    if not alike or min(alike) < 2 * _by_chance(items.dim):
        return None
    profile: FloatArray = (sums.sum(axis=0) / counts.sum()).astype(np.float32)
    return profile


def warn_of_another_encoder(items: Embeddings, profile: FloatArray | None, what: str) -> None:
    """Warn if the items are of another encoder than those that a profile was learned from.

    Parameters
    ----------
    items : Embeddings
        N items; of fewer than a hundred nothing is said.
    profile : ndarray of shape (d,), or None
        From `learn_profile`.
    what : str
        What to call the items.
    """
    if profile is None or len(items) < LEAST_ITEMS:
        return
    own = np.square(_some(items).vectors).mean(axis=0, dtype=np.float64)
    if _correlation(profile, own) < _by_chance(items.dim):
        warn_caller(
            f"{what} look as if another encoder had made them, though they have as many dimensions as those that the "
            "refiner was fitted on: fit one on vectors of this encoder, unless you know that they are of the same"
        )


def checked_profile(profile: np.ndarray | None, dim: int) -> FloatArray | None:
    """A profile from a file, for vectors of d dimensions; None if it was saved before there were any."""
    if profile is None:
        return None
    if profile.shape != (dim,) or profile.dtype.kind != "f":
        raise ValueError(f"the encoder's profile is {profile.dtype} of shape {profile.shape}; wanted {dim} numbers")
    if profile.min() < 0 or not profile.any():
        raise ValueError("the encoder's profile has mean squares below 0, or none above; wanted those of vectors")
    return profile


def _halves(n_classes: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    one, other = np.array_split(generator(seed).permutation(n_classes), 2)
    return [(one, other), (other, one)]


def _profiles_of_small_sets(sums: FloatArray, counts: IntArray) -> Iterator[FloatArray]:
    """Profiles (d,) of as few classes as have a hundred items, from the sums (C, d) and counts (C,) of each class."""
    first, n_items = 0, 0
    for last, count in enumerate(counts):
        n_items += count
        if n_items >= LEAST_ITEMS:
            yield sums[first : last + 1].sum(axis=0) / n_items
            first, n_items = last + 1, 0


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """Of the logarithms, as a few dimensions of many encoders are far larger than all others."""
    logs = [np.log(each.astype(np.float64) / each.mean(dtype=np.float64) + _SMALL) for each in (one, other)]
    if min(np.ptp(each) for each in logs) == 0:  # dimensions that are all alike tell nothing
        return 1.0
    return float(np.corrcoef(*logs)[0, 1])


def _by_chance(dim: int) -> float:
    return _CHANCE / float(np.sqrt(dim))


def _some(items: Embeddings) -> Embeddings:
    """All items, or as many as are needed, evenly."""
    step = -(-len(items) // _MOST_ITEMS)
    return items if step == 1 else items.take(np.arange(0, len(items), step))
