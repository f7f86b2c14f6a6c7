"""A gallery made ready once, for queries that keep coming."""

import functools

import numpy as np

__all__ = ["ServedGallery"]


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
    """

    def __init__(self, prepared, checked):
        """prepared: what a recipe's network keeps of the gallery; checked: makes Embeddings of queries."""
        self._prepared, self._checked = prepared, checked

    @functools.cached_property
    def refined_gallery(self) -> np.ndarray:
        """The refined gallery (M, d or out_dim) float32, computed at first sight."""
        return self._prepared.refined()

    def transform(self, queries) -> np.ndarray:
        """Refined queries (N, d or out_dim) float32; queries with the id of a gallery item are that item."""
        refined = self._prepared.refine(self._checked(queries))
        return refined.copy() if not refined.flags.writeable else refined
