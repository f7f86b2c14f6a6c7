"""What a fit leaves, whichever recipe it follows.

N items, M gallery items, k neighbours, T steps, d dimensions; refined vectors may have others, where a recipe has an
out_dim.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from entourage.neighbors import SearchIndex
from entourage.neighbors.given import KnownNeighbors
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["RefinesQueries", "RefiningNetwork"]


class RefinesQueries(Protocol):
    """What a network has computed of a gallery before queries come."""

    @property
    def gallery(self) -> SearchIndex:
        """The M items as they came."""

    def refined(self) -> FloatArray:
        """The refined gallery (M, d)."""

    def refine(self, queries: Embeddings, /) -> FloatArray:
        """Refined queries (N, d)."""


class RefiningNetwork(Protocol):
    """What a fit leaves: RelationalNetwork or PaperNetwork, whose methods are documented here."""

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
        known: KnownNeighbors | None = None,
    ) -> Iterator[tuple[FloatArray, FloatArray | None, IntArray]]:
        """Refine items by their neighbours in a gallery, step by step.

        Parameters
        ----------
        items : Embeddings
            N items; the gallery itself, or queries against it.
        gallery : Embeddings
            M items among which neighbours are found.
        n_neighbors : int
            k, how many neighbours to attend to.
        n_steps : int
            T, how many steps to go.
        progress : callable, optional
            Called as progress(title, done, total).
        last_only : bool
            Yield the last step alone.
        known : KnownNeighbors, optional
            Lists of neighbours from elsewhere, to choose from instead of searching.

        Yields
        ------
        vectors : ndarray of shape (N, d)
            e^t, for t = 0..T.
        weights : ndarray of shape (N, k), or None
            Attention paid to each neighbour, summing to 1; None at t = 0.
        rows : ndarray of shape (N, k)
            The neighbours, as rows of the gallery.
        """

    def refine_both(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        known: KnownNeighbors | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Refine queries and the gallery they are searched in, with parameters as in `refine`.

        Returns
        -------
        items : ndarray of shape (N, d)
            The refined queries.
        gallery : ndarray of shape (M, d)
            The refined gallery.
        """

    def prepare(
        self,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        known: KnownNeighbors | None = None,
    ) -> RefinesQueries:
        """Compute once what queries will need of a gallery, with parameters as in `refine`."""
