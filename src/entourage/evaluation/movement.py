"""How far refinement moved the vectors, next to how far apart they were."""

import numpy as np

from entourage.values import Embeddings, FloatArray

__all__ = ["cosines", "mean_cosine"]


def cosines(items: Embeddings, refined: FloatArray) -> dict[str, float]:
    """Measure how far refinement moved the vectors.

    Where all items lie in a narrow cone, refined vectors are near their inputs whatever happens to them; the mean
    cosine of two different inputs shows how narrow the cone is.

    Parameters
    ----------
    items : Embeddings
        N unrefined items.
    refined : array of shape (N, d')
        Their refined vectors, of length 1.

    Returns
    -------
    dict of float
        "mean_cosine_to_input" and, if there are two items or more, "mean_cosine_of_two_inputs"; empty if refinement
        changed the number of dimensions, as nothing can be compared then.

    Examples
    --------
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
    """The mean cosine of two different items, from the length of the mean vector m: (N |m|² - 1) / (N - 1).

    Parameters
    ----------
    items : Embeddings
        N items.

    Returns
    -------
    float or None
        None if there is only one item.
    """
    count = len(items)
    if count == 1:
        return None
    mean = items.vectors.mean(axis=0, dtype=np.float64)
    return float((count * (mean @ mean) - 1) / (count - 1))
