"""What each learner has learned: Table S1 and Figures S1 and S2 of the paper, from embeddings alone.

Any embedding can be cut into slices, that of a baseline too: it is what the learners are compared with.
N items, d dimensions, K slices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from entourage.errors import InputError
from entourage.evaluation import nearest_matches
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, brief

__all__ = ["SliceScores", "first_slices", "mean_absolute_correlation", "only_one_finds", "score_slices", "slices"]


@dataclass(frozen=True)
class SliceScores:
    """Recall of every slice alone and of the first ones together, and how alike the slices are."""

    alone: dict[int, list[float]]
    """recall@k of slices 1..K, by k."""
    first: dict[int, list[float]]
    """recall@k of the first 1..K slices together, by k; the last is that of all."""
    correlation: float
    """Mean absolute correlation between dimensions of different slices."""
    only: list[np.ndarray]
    """For every slice, the rows of the queries that it alone finds."""

    __repr__ = brief


def score_slices(
    items: Embeddings,
    count: int,
    *,
    recall_at: Sequence[int] = (1,),
    lost_at: int = 30,
    progress: Progress | None = None,
) -> SliceScores:
    """Cut labelled embeddings into slices and score them, each item searched among the others.

    Parameters
    ----------
    items : Embeddings
        N labelled items of d dimensions.
    count : int
        K, a divisor of d.
    recall_at : sequence of int
        The depths k of recall@k.
    lost_at : int
        See `only_one_finds`; the paper's 30 is for tens of thousands of items of a few each.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    SliceScores
        Scores of every slice alone, and of the first slices together.
    """
    if items.labels is None:
        raise InputError("the embeddings have no labels; wanted one for each item, to tell right from wrong")
    alone, together = [], []
    for number, part in enumerate(slices(items, count), start=1):
        alone.append(nearest_matches(part))
        together.append(nearest_matches(first_slices(items, count, number)))
        if progress:
            progress("scoring slices", number, count)
    return SliceScores(
        {k: _recalls(alone, k) for k in recall_at},
        {k: _recalls(together, k) for k in recall_at},
        mean_absolute_correlation(items, count),
        only_one_finds(np.stack(alone), lost_at=lost_at),
    )


def slices(items: Embeddings, count: int) -> list[Embeddings]:
    """Cut embeddings into slices.

    Parameters
    ----------
    items : Embeddings
        N items of d dimensions.
    count : int
        K, a divisor of d.

    Returns
    -------
    list of Embeddings
        Slice k of every item, (N, d / K) and scaled to length 1, for k = 1..K.
    """
    size = _size(items, count)
    return [_cut(items, slice(k * size, (k + 1) * size)) for k in range(count)]


def first_slices(items: Embeddings, count: int, m: int) -> Embeddings:
    """The first slices of embeddings together.

    Parameters
    ----------
    items : Embeddings
        N items of d dimensions.
    count : int
        K, a divisor of d.
    m : int
        How many of the K slices.

    Returns
    -------
    Embeddings
        (N, m d / K), scaled to length 1.
    """
    return _cut(items, slice(0, m * _size(items, count)))


def mean_absolute_correlation(items: Embeddings, count: int) -> float:
    """How alike the slices of an embedding are.

    Parameters
    ----------
    items : Embeddings
        N items of d dimensions.
    count : int
        K, a divisor of d.

    Returns
    -------
    float
        The mean of |Pearson's r| over all pairs of dimensions of different slices, each slice scaled to length 1. A
        dimension that never changes is correlated with none: it counts as 0.

    Examples
    --------
    >>> items = Embeddings.from_vectors([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    >>> round(mean_absolute_correlation(items, 2), 2)  # the second slice says what the first says
    0.95
    """
    slice_of = np.repeat(np.arange(count), _size(items, count))
    centred = np.hstack([part.vectors for part in slices(items, count)]).astype(np.float64)
    centred = centred - centred.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    centred = centred / np.where(lengths > 1e-12, lengths, np.inf)
    return float(np.abs(centred.T @ centred)[slice_of[:, None] != slice_of].mean())


def only_one_finds(before: np.ndarray, *, found_at: int = 1, lost_at: int = 30) -> list[np.ndarray]:
    """Which queries each slice alone gets right.

    Parameters
    ----------
    before : ndarray of int, shape (K, N)
        How many items stand before the nearest match, slice by slice (see evaluation.nearest_matches).
    found_at : int
        The slice finds a match among this many items: recall@1 is 1.
    lost_at : int
        No other slice finds a match among this many items: recall@30 is 0.

    Returns
    -------
    list of ndarray of int
        The rows of the queries, for each slice.

    Examples
    --------
    >>> [rows.tolist() for rows in only_one_finds(np.array([[0, 0, 50], [40, 3, 0]]))]
    [[0], [2]]
    """
    lost = before >= lost_at
    found_alone = (before < found_at) & (lost.sum(axis=0) - lost == len(before) - 1)
    return [np.flatnonzero(of_slice) for of_slice in found_alone]


def _recalls(before: list[np.ndarray], k: int) -> list[float]:
    return [float((of_one < k).mean()) for of_one in before]


def _size(items: Embeddings, count: int) -> int:
    if count < 2 or items.dim % count:
        raise InputError(
            f"the embeddings have {items.dim} dimensions and are to be cut into {count} slices; wanted two slices or "
            "more, of equal size"
        )
    return items.dim // count


def _cut(items: Embeddings, dimensions: slice) -> Embeddings:
    return Embeddings.from_vectors(items.vectors[:, dimensions], items.ids, items.labels)
