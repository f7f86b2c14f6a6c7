"""Projection to the plane: where items lie by their similarities, and where they go when these change.

`lay_out` is t-SNE (van der Maaten and Hinton 2008) from a start by PCA. `follow` then moves one item at a time, as in
the figures of Attend to Context: an item is fitted again to its similarities at a later step while all others keep
their places. Both minimise the same function, so what does not change does not move.

Why scikit-learn and not openTSNE: it is there already, and takes exact neighbours from outside, where openTSNE would be
one more compiled dependency whose own neighbours are approximate. What openTSNE offers for large sets, t-SNE of all
items in linear time, is not wanted: tens of thousands of dots are drawn as a density, for which landmarks suffice.

N items, of which A are landmarks with fixed places z_j; p_ij how near i and j are, q_ij how near they are drawn:

    p_j|i ∝ exp(-b_i |e_i - e_j|²) over the k nearest landmarks, b_i such that the perplexity is k/3;
                                  k is at most 30 where i is no landmark
    p_ij  = (p_j|i + p_i|j) / 2A      or p_j|i / A where i is no landmark, and nobody's neighbour
    q_ij  = w_ij / Z,                 w_ij = 1 / (1 + |y_i - z_j|²), Z the sum over all pairs

The sum of p log(p / q), seen as a function of the place y of item i alone, is, up to a constant and a factor of 2,

    F_i(y) = Σ_j p_ij log(1 + |y - z_j|²) + ½ log(Z_i + 2 Σ_j 1 / (1 + |y - z_j|²)),

where Z_i sums over the pairs without i, and j over the landmarks other than i.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.figures.projection.affinities import affinities_of, perplexity_of, places_in
from entourage.neighbors import search
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.runtime.threads import blocks
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["LANDMARKS", "NEIGHBORS", "follow", "follow_steps", "landmark_rows", "lay_out"]

LANDMARKS = 2000
NEIGHBORS = 90  # a perplexity of 30

_FEWEST = 5  # items that t-SNE is worth trying on
_ITERATIONS = 1000  # half of them where items are so many that landmarks alone are laid out
_AT_ONCE = 50_000  # items that are fitted among the landmarks at once: progress is told after each such part


def lay_out(
    items: Embeddings,
    *,
    landmarks: int = LANDMARKS,
    k: int = NEIGHBORS,
    seed: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Lay items out in the plane such that similar ones lie near each other.

    Parameters
    ----------
    items : Embeddings
        N items.
    landmarks : int
        How many items, drawn by the seed, are laid out by t-SNE; the others are then fitted among them.
    k : int
        How many neighbours of an item count.
    seed : int, default 0
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    array of shape (N, 2)
    """
    from entourage.figures.projection.fitting import Repulsion, fit  # numba takes a moment to load

    report = progress or (lambda title, done, total: None)
    fixed = landmark_rows(len(items), landmarks, seed)
    report("laying out items", 0, 1)
    positions = np.empty((len(items), 2), np.float32)
    positions[fixed] = _tsne(items.take(fixed), k, seed, _ITERATIONS if len(fixed) == len(items) else _ITERATIONS // 2)
    report("laying out items", 1, 1)
    others = np.setdiff1d(np.arange(len(items)), fixed)
    if not len(others):
        return positions
    repulsion = Repulsion(positions[fixed])
    for part in blocks(len(others), _AT_ONCE):
        report("placing items", part.start, len(others))
        affinities, nearest = affinities_of(items.vectors, fixed, others[part], k)
        starts = positions[fixed][nearest]
        positions[others[part]] = fit(starts, affinities, repulsion, np.full(len(starts), -1))
    report("placing items", len(others), len(others))
    return positions


def follow(
    positions: ArrayLike,
    steps: ArrayLike,
    *,
    rows: ArrayLike | None = None,
    k: int = NEIGHBORS,
    landmarks: int = LANDMARKS,
    seed: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Follow items through the steps of a refinement.

    At step t each item is fitted to its similarities among e_t, from its place at t - 1, while the landmarks keep their
    places of e_0.

    Parameters
    ----------
    positions : array-like of shape (N, 2)
        The places of e_0, by `lay_out` with the same landmarks and seed.
    steps : array-like of shape (T + 1, N, d)
        e_0 to e_T.
    rows : array-like of int, optional
        The items that may move; by default all.
    k, landmarks, seed, progress
        As in `lay_out`.

    Returns
    -------
    array of shape (T + 1, N, 2)
        The places at every step; the first are the given ones.
    """
    positions, steps = np.asarray(positions, np.float32), np.asarray(steps, np.float32)
    if steps.ndim != 3 or positions.shape != (steps.shape[1], 2):
        raise InputError(
            f"positions have shape {positions.shape} and steps {steps.shape}; wanted (N, 2) and (T + 1, N, d)"
        )
    places = np.repeat(positions[None], len(steps), axis=0)
    options: dict[str, Any] = {"rows": rows, "k": k, "landmarks": landmarks, "seed": seed}
    for step, found in enumerate(
        follow_steps(positions, steps[1:], count=len(steps) - 1, progress=progress, **options)
    ):
        places[step + 1] = found
    return places


def follow_steps(
    positions: NDArray[np.float32],
    steps: Iterable[FloatArray],
    *,
    rows: ArrayLike | None = None,
    k: int = NEIGHBORS,
    landmarks: int = LANDMARKS,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
) -> Iterator[NDArray[np.float32]]:
    """Follow items as `follow` does, one step at a time, so that the vectors of one step alone are held.

    Parameters
    ----------
    positions : array of shape (N, 2)
        The places of e_0.
    steps : iterable of arrays of shape (N, d)
        e_1 to e_T; d may differ from that of e_0.
    rows, k, landmarks, seed
        As in `follow`.
    count : int
        T, for progress.
    progress : Progress, optional
        Called as progress(title, done, total), several times in a step of many items.

    Yields
    ------
    array of shape (N, 2)
        The places at each step.
    """
    from entourage.figures.projection.fitting import Repulsion, fit

    moving = np.arange(len(positions)) if rows is None else np.asarray(rows, int)
    fixed = landmark_rows(len(positions), landmarks, seed)
    still = len(fixed) < _FEWEST or not len(moving)
    repulsion, now = None if still else Repulsion(positions[fixed]), positions
    report = progress or (lambda title, done, total: None)
    parts = list(blocks(len(moving), _AT_ONCE)) or [slice(0)]
    for step, vectors in enumerate(steps):
        if not step:  # not sooner: what makes the first step may take longer than all that follows
            report("following items", 0, len(parts) * max(count, 1))
        now = now.copy()
        for number, part in enumerate(parts, start=1):
            if repulsion is not None:
                affinities, _ = affinities_of(vectors, fixed, moving[part], k)
                now[moving[part]] = fit(now[moving[part]], affinities, repulsion, places_in(fixed, moving[part]))
            report("following items", len(parts) * step + number, len(parts) * max(count, step + 1))
        yield now


def landmark_rows(count: int, landmarks: int = LANDMARKS, seed: int = 0) -> IntArray:
    """Draw the rows of the landmarks of `count` items, ascending; all rows if there are no more than `landmarks`."""
    if landmarks >= count:
        return np.arange(count)
    return np.sort(generator(seed).choice(count, landmarks, replace=False))


def _tsne(items: Embeddings, k: int, seed: int, iterations: int) -> FloatArray:
    """Places by t-SNE (A, 2), of exact neighbours and from the first two principal components."""
    from scipy.sparse import csr_array
    from sklearn.manifold import TSNE

    count, start = len(items), _principal(items.vectors, seed)
    if count < _FEWEST:
        return start
    perplexity = perplexity_of(min(k, count - 1))
    found = search(items, k=min(int(3 * perplexity + 1), count - 1))  # as many as scikit-learn will ask for
    rows = np.column_stack([np.arange(count), found.rows])  # it wants the item itself, too
    chords = np.column_stack([np.zeros(count), np.sqrt(np.maximum(2 - 2 * found.similarities, 0))])
    graph = csr_array((chords.ravel(), rows.ravel(), np.arange(count + 1) * rows.shape[1]), shape=(count, count))
    options = {"perplexity": perplexity, "max_iter": iterations, "random_state": seed}
    places: FloatArray = TSNE(metric="precomputed", init=1e-4 * start, **options).fit_transform(graph)
    return places


def _principal(vectors: FloatArray, seed: int) -> FloatArray:
    """The first two principal components (A, 2), the first of spread 1, with some noise so that none are all alike."""
    from sklearn.utils.extmath import randomized_svd

    noise = generator(seed).normal(scale=0.01, size=(len(vectors), 2))
    centred = vectors - vectors.mean(axis=0)
    if min(centred.shape) < 2 or not centred.any():
        return noise
    left, singular, _ = randomized_svd(centred, 2, random_state=seed)
    places = left * singular
    return places / max(places[:, 0].std(), 1e-12) + noise
