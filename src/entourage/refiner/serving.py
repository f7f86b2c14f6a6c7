"""A gallery prepared once, for queries that arrive over time.

M gallery items, G nodes of its graph, N queries, T steps, d dimensions.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors import SearchIndex, own_gallery_rows
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.confidence import GalleryConfidence
from entourage.refiner.context import WeightedGraph
from entourage.refiner.conversion import SameKindTransformer, Table, as_table
from entourage.refiner.memory import same_items
from entourage.refiner.protocol import RefinesQueries
from entourage.values import Embeddings, FloatArray

__all__ = ["PreparedGallery", "ServedGallery"]


@dataclass(frozen=True, eq=False)
class PreparedGallery:
    """A gallery whose graph and refinement are not computed again for each query; made by RelationalNetwork.prepare."""

    gallery: SearchIndex
    """The M items as they came, to recognise queries among them by id."""
    base_map: FloatArray | None
    """(d, d), what queries pass first."""
    mapped: Embeddings
    """The gallery through the base map."""
    weighted: WeightedGraph
    node_steps: list[FloatArray]
    """z^0..z^T of the nodes, each (G, d)."""

    def refined(self) -> FloatArray:
        """The refined gallery (M, d)."""
        context = self.weighted.context_of_gallery()
        return context.refined(self.mapped, context.outside, self.node_steps[-1])

    def refine(self, queries: Embeddings) -> FloatArray:
        """Refined queries (N, d); one with the id of a gallery item is that item."""
        x = apply_base_map(queries, self.base_map)
        context = self.weighted.context_of_queries(x, own_gallery_rows(queries, self.gallery))
        *_, last = context.steps(self.node_steps)
        return context.refined(x, *last)


class ServedGallery:
    """Refines queries against one gallery, batch by batch; made by a refiner's `serve`.

    What depends on the gallery alone is kept instead of computed again for each batch: with the relational recipe its
    graph and its own refinement, step by step (T + 1 times the size of the gallery), with the paper's the keys and
    values of each block (2 T times). The gallery stays as it was; serve a changed one anew. **Refined queries are for
    searching, not for the index**: new items belong into the gallery that is served. It can be pickled.

    >>> from sklearn.datasets import load_digits
    >>> from entourage import ContextRefiner
    >>> X = load_digits().data
    >>> served = ContextRefiner().fit(X[:1500]).serve(X[:1500])
    >>> served.refined_gallery.shape              # to be searched, put it into your index
    (1500, 64)
    >>> served.transform(X[1500:1510]).shape      # what to search it with
    (10, 64)
    >>> served.confidence(X[1500:1510]).shape     # from 0 to 1, whether there is a match at all
    (10,)

    Parameters
    ----------
    prepared : RefinesQueries
        What a network keeps of the gallery.
    gallery : Table
        The gallery as it was given.
    items : Embeddings
        The gallery as it was prepared.
    refiner : ContextRefiner or PaperRefiner
        The refiner that serves it, which checks queries.
    """

    def __init__(
        self, prepared: RefinesQueries, gallery: Table, items: Embeddings, refiner: SameKindTransformer
    ) -> None:
        self._prepared, self._gallery, self._items, self._refiner = prepared, gallery, items, refiner

    def __repr__(self) -> str:
        return f"ServedGallery({len(self._gallery.array):,} items of {self._gallery.array.shape[1]} dimensions)"

    @functools.cached_property
    def refined_gallery(self) -> Any:
        """The refined gallery, of shape (M, d or out_dim) and of the gallery's kind; computed when first asked for."""
        return self._refiner._same_kind(self._gallery, self._prepared.refined())

    def transform(self, queries: Any) -> Any:
        """Refine queries.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
            Raw vectors of the gallery's encoder; a query with the id of a gallery item is that item.

        Returns
        -------
        the same kind, of shape (N, d or out_dim)
            Refined vectors.
        """
        table, items = self._checked(queries)
        return self._refiner._same_kind(table, self._prepared.refine(items))

    def confidence(self, queries: Any) -> NDArray[np.float64]:
        """How sure one can be that queries have a match in the gallery at all.

        **Cosines of refined vectors do not tell**: refinement draws every query to what is near, so that unknown ones
        come close to 1, too. This compares raw vectors: a confidence of 0.2 means that 20 % of the gallery's items are
        farther from their nearest other item than the query is from its nearest. It grows with the raw cosine, and
        separates as well. `entourage.open_set_threshold` sets a threshold from a sample.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
            As in `transform`; a gallery item is judged by its nearest other.

        Returns
        -------
        array of shape (N,)
            From 0 to 1.
        """
        return self._confidence.of(self._checked(queries)[1])

    @functools.cached_property
    def _confidence(self) -> GalleryConfidence:
        return GalleryConfidence(self._prepared.gallery)

    def _checked(self, queries: Any) -> tuple[Table, Embeddings]:
        """Queries as they were given, and as items: those of the gallery, if they are these."""
        table = as_table(self._refiner, queries)
        items = table.embeddings()
        return table, self._items if same_items(items, self._items) else items
