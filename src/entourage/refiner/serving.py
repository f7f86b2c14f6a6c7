"""A gallery made ready once, for queries that keep coming.

M gallery items, G nodes of its graph, N queries, T steps, d dimensions.
"""

import functools
from dataclasses import dataclass

import numpy as np

from entourage.neighbors import own_gallery_rows
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.context import WeightedGraph
from entourage.values import Embeddings

__all__ = ["PreparedGallery", "ServedGallery"]


@dataclass(frozen=True, eq=False)
class PreparedGallery:
    """A gallery whose graph and refinement are not computed again for each query; made by RelationalNetwork.prepare."""

    gallery: Embeddings
    """The M items as they came."""
    base_map: np.ndarray | None
    """(d, d), what queries pass first."""
    mapped: Embeddings
    """The gallery through the base map."""
    weighted: WeightedGraph
    node_steps: list[np.ndarray]
    """z^0..z^T of the nodes, each (G, d)."""

    def refined(self) -> np.ndarray:
        """The refined gallery (M, d)."""
        context = self.weighted.context_of_gallery()
        return context.refined(self.mapped, context.outside, self.node_steps[-1])

    def refine(self, queries: Embeddings) -> np.ndarray:
        """Refined queries (N, d); one with the id of a gallery item is that item."""
        x = apply_base_map(queries, self.base_map)
        context = self.weighted.context_of_queries(x, own_gallery_rows(queries, self.gallery))
        *_, last = context.steps(self.node_steps)
        return context.refined(x, *last)


class ServedGallery:
    """Refines queries against one gallery, batch by batch; made by ContextRefiner.serve.

    What depends on the gallery alone is kept instead of computed again for each batch: with the relational recipe its
    graph and its own refinement, step by step (T + 1 times the size of the gallery), with the paper's the keys and
    values of each block (2 T times). The gallery stays as it was; serve a changed one anew.

    >>> from sklearn.datasets import load_digits
    >>> from entourage import ContextRefiner
    >>> X = load_digits().data
    >>> served = ContextRefiner().fit(X[:1500]).serve(X[:1500])
    >>> served.refined_gallery.shape              # to be searched, put it into your index
    (1500, 64)
    >>> served.transform(X[1500:1510]).shape      # what to search it with
    (10, 64)

    Parameters
    ----------
    prepared : object
        What a network keeps of the gallery, with `refined()` and `refine(queries)`.
    checked : callable
        Makes Embeddings of the queries, or refuses them.
    """

    def __init__(self, prepared, checked):
        self._prepared, self._checked = prepared, checked

    @functools.cached_property
    def refined_gallery(self) -> np.ndarray:
        """The refined gallery (M, d or out_dim) float32, computed when it is first asked for."""
        return self._prepared.refined()

    def transform(self, queries) -> np.ndarray:
        """Refine queries.

        Parameters
        ----------
        queries : array-like of shape (N, d), or Embeddings
            Raw vectors of the gallery's encoder; a query with the id of a gallery item is that item.

        Returns
        -------
        ndarray of shape (N, d or out_dim)
            Refined vectors, float32.
        """
        refined = self._prepared.refine(self._checked(queries))
        return refined.copy() if not refined.flags.writeable else refined
