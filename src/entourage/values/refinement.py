"""The record of a refinement: the embeddings after every step, and which items attended to which."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError
from entourage.values.columns import LabelArray, checked_column, set_frozen

__all__ = ["Attention", "Trajectory"]


@dataclass(frozen=True, eq=False, init=False)
class Trajectory:
    """The embeddings after every step of a refinement.

    Parameters
    ----------
    steps : array-like of shape (T + 1, N, d)
        steps[t] are the embeddings after t steps, so that steps[0] are the unrefined ones; where the model has an
        output head, each is what the head makes of them.
    ids : array-like of shape (N,)
        The ids of the items.
    """

    steps: NDArray[np.float32]
    """(T + 1, N, d) embeddings after 0, 1, ..., T steps."""
    ids: LabelArray
    """(N,) the ids of the items."""

    def __init__(self, steps: ArrayLike, ids: ArrayLike) -> None:
        path = np.ascontiguousarray(steps, np.float32)
        if path.ndim != 3:
            raise InputError(f"steps have shape {path.shape}; wanted (T + 1, N, d): stack the vectors of all steps")
        set_frozen(self, steps=path, ids=checked_column(ids, "ids", path.shape[1]))

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        steps, items, size = self.steps.shape
        return f"Trajectory({steps - 1} steps of {items:,} items of {size} dimensions)"

    def __getitem__(self, step: int) -> NDArray[np.float32]:
        """The embeddings (N, d) after that many steps."""
        vectors: NDArray[np.float32] = self.steps[step]
        return vectors


@dataclass(frozen=True, eq=False, init=False)
class Attention:
    """How much each item attended to each of its neighbours, in every step.

    Parameters
    ----------
    weights : array-like of shape (T, N, k)
        Attention weights; weights[t, i] sum to 1.
    ids : array-like of shape (N,)
        The ids of the items.
    neighbor_ids : array-like of shape (N, k)
        The ids of their neighbours, nearest first.
    """

    weights: NDArray[np.float32]
    """(T, N, k) attention weights; weights[t, i] sum to 1."""
    ids: LabelArray
    """(N,) the ids of the items."""
    neighbor_ids: LabelArray
    """(N, k) the ids of their neighbours, nearest first."""

    def __init__(self, weights: ArrayLike, ids: ArrayLike, neighbor_ids: ArrayLike) -> None:
        shares = np.ascontiguousarray(weights, np.float32)
        neighbors = np.asarray(neighbor_ids)
        if shares.ndim != 3 or shares.shape[1:] != neighbors.shape:
            raise InputError(
                f"weights have shape {shares.shape} and neighbor_ids {neighbors.shape}; wanted (T, N, k) and (N, k)"
            )
        set_frozen(self, weights=shares, ids=checked_column(ids, "ids", len(neighbors)), neighbor_ids=neighbors)

    def __repr__(self) -> str:
        steps, items, k = self.weights.shape
        return f"Attention({steps} steps of {items:,} items to {k} neighbours each)"
