"""How far refinement moved the vectors, and beside what that is to be judged."""

import numpy as np

from entourage.values import Embeddings

__all__ = ["cosines", "mean_cosine"]


def cosines(items: Embeddings, refined: np.ndarray) -> dict[str, float]:
    """The mean cosine of refined vectors to their inputs, and that of two different inputs; nothing in another space.

    Where all items lie in a narrow cone, the first is near 1 whatever happens: the second says how near means nothing.

    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]])
    >>> cosines(items, items.vectors)
    {'mean_cosine_to_input': 1.0, 'mean_cosine_of_two_inputs': 0.0}
    """
    if refined.shape[1] != items.dim:
        return {}
    found = {"mean_cosine_to_input": float((refined * items.vectors).sum(axis=1).mean())}
    between = mean_cosine(items)
    return found if between is None else found | {"mean_cosine_of_two_inputs": between}


def mean_cosine(items: Embeddings) -> float | None:
    """Of two different items, by the length of the mean vector m: (N |m|² - 1) / (N - 1); None of a single one."""
    count = len(items)
    if count == 1:
        return None
    mean = items.vectors.mean(axis=0, dtype=np.float64)
    return float((count * (mean @ mean) - 1) / (count - 1))
