"""The search on a graphics card: all similarities of some queries at once, and torch picks the best."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.values import IntArray

__all__ = ["best_of_gallery"]

_TILE_VALUES = 2**26  # similarities held at once: 256 MiB


def best_of_gallery(
    queries: NDArray[np.float32], gallery: Tensor, hidden: IntArray, k: int
) -> Iterator[tuple[slice, IntArray, NDArray[np.float32]]]:
    """Find the k best gallery items of each query and their similarities, both (n, k), ties by position.

    queries (N, d), gallery (M, d) on the card; hidden (N,) is the item each query must not find, or -1: it comes last.
    """
    rows = int(np.clip(_TILE_VALUES // len(gallery), 1, 1024))
    for start in range(0, len(queries), rows):
        block = slice(start, min(start + rows, len(queries)))
        scores = torch.from_dlpack(queries[block]).to(gallery.device) @ gallery.T  # (n, M)
        hiding = np.flatnonzero(hidden[block] >= 0)
        scores[hiding, hidden[block][hiding]] = -torch.inf
        yield block, *_largest(scores, k)


def _largest(scores: Tensor, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k largest of each row of scores (n, m), largest first, equal ones by position: positions, values."""
    reach = min(k + 1, scores.shape[1])
    values, positions = scores.topk(reach, dim=1)
    # topk chooses freely among equals: put positions in order first, then sort by value, stably.
    if reach > k:
        cut_through_a_tie = values[:, k] == values[:, k - 1]
        values, positions = values[:, :k], positions[:, :k]
    positions = positions.sort(dim=1).values
    values, order = scores.gather(1, positions).sort(dim=1, descending=True, stable=True)
    positions = positions.gather(1, order)
    if reach > k and cut_through_a_tie.any():
        torn = cut_through_a_tie.nonzero().squeeze(1)
        full = torch.sort(scores[torn], dim=1, descending=True, stable=True)
        values[torn], positions[torn] = full.values[:, :k], full.indices[:, :k]
    return positions.cpu().numpy(), values.cpu().numpy()
