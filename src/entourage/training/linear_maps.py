"""Linear maps learned from labels: within-class whitening by numpy, and a head trained by a metric loss, by torch.

Every covariance is regularised alike: an eigenvalue w counts as (1 - shrinkage) w + shrinkage mean(w).
N training items of C classes, d dimensions.
"""

from collections.abc import Iterable
from itertools import chain, count, islice

import numpy as np
from numpy.typing import ArrayLike

from entourage.errors import InputError
from entourage.runtime.sharing import shared
from entourage.training.sampling import class_balanced_batches
from entourage.values import FloatArray, IntArray

__all__ = [
    "class_means",
    "eigen",
    "head_maps",
    "head_maps_by_epoch",
    "inverse_roots",
    "within_class_covariance",
    "within_class_eigen",
    "within_class_whitening_map",
]

# Below this share of the largest eigenvalue there is only the rounding of float32 vectors.
_NOTHING = 1e-10
_BATCH = (64, 2)  # classes, items of each


def class_means(vectors: ArrayLike, codes: IntArray) -> tuple[FloatArray, IntArray]:
    """Means (C, d) and sizes (C,) of the classes 0..C-1 of vectors (N, d)."""
    counts = np.bincount(codes)
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(counts) - counts
    return np.add.reduceat(np.asarray(vectors, np.float64)[order], starts, axis=0) / counts[:, None], counts


def within_class_covariance(vectors: ArrayLike, codes: IntArray) -> FloatArray:
    """Pooled covariance of vectors (N, d) around the means of their classes 0..C-1, divided by N - C; (d, d)."""
    items = np.asarray(vectors, np.float64)
    means, counts = class_means(items, codes)
    if len(items) == len(counts):
        raise InputError(f"all {len(counts)} classes have one item; wanted some with two or more: add items")
    around = items - means[codes]
    return around.T @ around / (len(items) - len(counts))


def within_class_whitening_map(vectors: ArrayLike, codes: IntArray, shrinkage: float) -> FloatArray:
    """((1 - shrinkage) S_w + shrinkage mean-eigenvalue I)^(-1/2) of the within-class covariance S_w; (d, d)."""
    values, axes = within_class_eigen(np.asarray(vectors), codes)
    return axes * inverse_roots(values, shrinkage) @ axes.T


def within_class_eigen(vectors: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """`eigen` of the within-class covariance of vectors (N, d), once where work is shared (runtime/sharing.py)."""
    _, (values, axes) = shared(
        "within-class eigen",
        (vectors,),
        lambda: (codes.copy(), eigen(within_class_covariance(vectors, codes))),
        lambda kept: np.array_equal(kept[0], codes),
    )
    return values, axes


def eigen(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (d,), largest first, and their axes as columns (d, d)."""
    values, axes = np.linalg.eigh(covariance)
    return np.maximum(values[::-1], 0), axes[:, ::-1]


def inverse_roots(values: FloatArray, shrinkage: float, n_components: int | None = None) -> FloatArray:
    """((1 - shrinkage) w + shrinkage mean(w))^(-1/2) of the leading eigenvalues w, (m,)."""
    m = len(values) if n_components is None else n_components
    if m > len(values):
        raise InputError(f"n_components is {m}; wanted at most {len(values)}, the number of dimensions")
    shrunk = ((1 - shrinkage) * values + shrinkage * values.mean())[:m]
    varied = int((shrunk > _NOTHING * shrunk[0]).sum())
    if varied < m:
        raise InputError(
            f"the training vectors vary in {varied} of {m} directions; wanted all of them: "
            "raise shrinkage above 0 or add items"
        )
    return shrunk**-0.5


def head_maps(
    vectors: ArrayLike, codes: IntArray, steps: Iterable[int], *, learning_rate: float = 3e-4, seed: int = 0
) -> dict[int, FloatArray]:
    """Train a linear head: M starts as the identity, and Adam lowers the multi-similarity loss of normalise(x M) over
    class-balanced batches.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Unit vectors x.
    codes : ndarray of shape (N,)
        Their classes, 0..C-1.
    steps : iterable of int
        After how many steps M is wanted; one training serves all, and 0 is the identity.
    learning_rate : float
        Learning rate of Adam.
    seed : int
        Seed of the batch sampling.

    Returns
    -------
    dict
        M (d, d) float32 after each of these numbers of steps.
    """
    import torch
    from torch.nn import functional as F

    from entourage.training.losses import multi_similarity

    wanted = sorted(set(steps))
    x, labels = torch.from_dlpack(np.asarray(vectors, np.float32)), torch.as_tensor(codes)
    head = torch.eye(x.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([head], learning_rate, fused=True)
    maps: dict[int, FloatArray] = {0: np.eye(x.shape[1], dtype=np.float32)}
    epochs = (_batches(codes, seed, epoch) for epoch in count(1))  # counted as in training.py, where 0 is the start
    for done, batch in enumerate(islice(chain.from_iterable(epochs), wanted[-1]), start=1):
        loss = multi_similarity(F.normalize(x[batch] @ head, dim=1), labels[batch])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if done in wanted:
            maps[done] = head.detach().numpy().copy()
    return {done: maps[done] for done in wanted}


def head_maps_by_epoch(
    vectors: ArrayLike, codes: IntArray, epochs: Iterable[int], *, learning_rate: float = 3e-4, seed: int = 0
) -> dict[int, FloatArray]:
    """`head_maps` counted in passes over the items: {epochs: M}."""
    batches = len(_batches(codes, seed, 1))
    steps = {batches * epoch: epoch for epoch in epochs}
    return {
        steps[n]: head for n, head in head_maps(vectors, codes, steps, learning_rate=learning_rate, seed=seed).items()
    }


def _batches(codes: IntArray, seed: int, epoch: int) -> IntArray:
    return class_balanced_batches(codes, *_BATCH, seed=seed, epoch=epoch)
