"""What a fit leaves, whichever recipe it follows.

N items, M gallery items, k neighbours, T steps, d dimensions.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["RefinesQueries", "RefiningNetwork"]


class RefinesQueries(Protocol):
    """What a network has computed of a gallery before queries come."""

    def refined(self) -> FloatArray:
        """The refined gallery (M, d)."""

    def refine(self, queries: Embeddings, /) -> FloatArray:
        """Refined queries (N, d)."""


class RefiningNetwork(Protocol):
    """What a fit leaves: RelationalNetwork or PaperNetwork."""

    @property
    def n_parameters(self) -> int:
        """How many numbers were learned."""

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Its weights by the names they have in files."""

    def refine(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        last_only: bool = False,
    ) -> Iterator[tuple[FloatArray, FloatArray | None, IntArray]]:
        """Yield e^t (N, d), weights^t (N, k) and gallery rows (N, k) for t = 0..n_steps, or for the last alone."""

    def refine_both(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """The refined items (N, d) and the refined gallery (M, d)."""

    def prepare(
        self, gallery: Embeddings, n_neighbors: int, n_steps: int, progress: Progress | None = None
    ) -> RefinesQueries:
        """What queries need of a gallery, computed once."""
