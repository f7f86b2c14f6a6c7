"""A gallery made ready once, for queries that keep coming."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from entourage.refiner.conversion import Table

__all__ = ["ServedGallery"]


class ServedGallery:
    """Refines queries against one gallery, batch by batch; made by a refiner's `serve`.

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
    """

    def __init__(
        self,
        prepared: Any,
        gallery: Table,
        as_table: Callable[[Any], Table],
        same_kind: Callable[[Table, np.ndarray], Any],
    ) -> None:
        """Made by a refiner: what its network keeps of the gallery, the gallery, and how vectors come in and go out."""
        self._prepared, self._gallery, self._as_table, self._same_kind = prepared, gallery, as_table, same_kind

    @functools.cached_property
    def refined_gallery(self) -> Any:
        """The refined gallery, of shape (M, d or out_dim) and of the gallery's kind; computed at first sight."""
        return self._same_kind(self._gallery, self._prepared.refined())

    def transform(self, queries: Any) -> Any:
        """Refine queries against the gallery.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
            Those with the id of a gallery item are that item.

        Returns
        -------
        the same kind, of shape (N, d or out_dim)
        """
        table = self._as_table(queries)
        return self._same_kind(table, self._prepared.refine(table.embeddings()))
