"""The base map: a linear map that vectors pass before refinement, x = normalise(e M), learned from labels.

N items, d dimensions.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from entourage.errors import ModelError
from entourage.refiner.gathering import normalise
from entourage.runtime.sharing import digest, is_shared, shared
from entourage.training.linear_maps import head_maps, inverse_roots, within_class_eigen
from entourage.values import Embeddings, FloatArray, IntArray, without_direction

__all__ = ["NO_MAP", "apply_base_map", "learn_base_maps"]

NO_MAP = (1.0, 0)  # no whitening and no head


def apply_base_map(items: Embeddings, base_map: FloatArray | None) -> Embeddings:
    """Items with normalise(e M) for vectors.

    Parameters
    ----------
    items : Embeddings
        N items of d dimensions.
    base_map : ndarray of shape (d, d), or None
        M in float32; None leaves the items as they are.

    Returns
    -------
    Embeddings
        The items themselves where there is no map.
    """
    if base_map is None:
        return items
    with np.errstate(over="ignore", invalid="ignore"):  # which is said below
        mapped = normalise(items.vectors @ base_map)
    unusable = without_direction(mapped)
    if unusable:
        raise ModelError(f"{unusable} after the base map; the model is for vectors of another kind: fit it again")
    return items.replace_vectors(mapped)


def learn_base_maps(
    vectors: FloatArray, codes: IntArray, candidates: Sequence[tuple[float, int]], seed: int
) -> dict[tuple[float, int], FloatArray]:
    """Learn a map for each candidate: within-class whitening, followed by a head trained by a metric loss.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Unit vectors, float32.
    codes : ndarray of shape (N,)
        Their classes, 0..C-1.
    candidates : sequence of (shrinkage, steps)
        How far the whitening is shrunk towards the identity (1: none) and for how many steps the head is trained
        (0: none).
    seed : int
        Seed of the batch sampling.

    Returns
    -------
    dict
        The map (d, d) float32 of each candidate.
    """
    by_content = digest(vectors, codes) if is_shared() else ""
    decomposed = cache(lambda: within_class_eigen(vectors, codes))  # once, if it is needed at all
    maps: dict[tuple[float, int], FloatArray] = {}
    for shrinkage in dict.fromkeys(shrinkage for shrinkage, _ in candidates):
        steps = [steps for other, steps in candidates if other == shrinkage]
        learned = shared(
            ("base maps", by_content, shrinkage, seed),
            (),
            partial(_maps_by_steps, vectors, codes, decomposed, shrinkage, steps, seed),
            partial(_has, steps),
        )
        maps |= {(shrinkage, n): learned[n] for n in steps}
    return maps


def _maps_by_steps(
    vectors: FloatArray,
    codes: IntArray,
    decomposed: Callable[[], tuple[FloatArray, FloatArray]],
    shrinkage: float,
    steps: list[int],
    seed: int,
) -> dict[int, FloatArray]:
    """The maps of one whitening, by the steps of the head: one training serves all."""
    values, axes = decomposed()
    values = values if values.any() else np.ones_like(values)  # classes of one vector each: nothing to whiten
    whitening = (axes * (inverse_roots(values, shrinkage) * values.mean() ** 0.5) @ axes.T).astype(np.float32)
    heads = head_maps(normalise(vectors @ whitening), codes, steps, seed=seed)
    return {n: whitening @ head for n, head in heads.items()}


def _has(steps: list[int], learned: dict[int, FloatArray]) -> bool:
    return learned.keys() >= set(steps)
