"""Whether a query has a match in a gallery at all, as far as raw vectors tell, without labels.

The confidence in a query is the share of gallery items that are farther from their own nearest other item than the
query is from its nearest item: how the query's best cosine ranks among those that are usual in this gallery. Between
two of these it is interpolated, so that it grows wherever the cosine does and separates known from unknown queries just
as well. Refined vectors cannot tell: refinement draws a query to what is near, whether it belongs there or not.

N queries, M gallery items, n of them looked at.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors import SearchIndex, own_gallery_rows, search
from entourage.neighbors.copies import copy_similarity
from entourage.runtime.randomness import generator
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["GalleryConfidence"]

_SAMPLE = 2_000  # gallery items looked at: their shares are then off by 1.1 % at most, one standard error
_LOOK_AT = 8
_DEEPER = 8  # times as many neighbours, of items that have only copies among those looked at
_DIGITS = 6
_LONGEST = 1 + 1e-6  # the cosine of two equal vectors, up to rounding


@dataclass(frozen=True, eq=False)
class GalleryConfidence:
    """How sure one can be that queries have a match in a gallery; what depends on the gallery is computed once.

    Parameters
    ----------
    gallery : SearchIndex
        The M items as they came, not refined.

    Examples
    --------
    >>> gallery = Embeddings.from_vectors([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.3, 1.0]])
    >>> queries = Embeddings.from_vectors([[1.0, 0.05], [-1.0, -1.0]])
    >>> GalleryConfidence(SearchIndex(gallery)).of(queries).round(2).tolist()
    [0.94, 0.04]
    """

    gallery: SearchIndex

    def of(self, queries: Embeddings) -> NDArray[np.float64]:
        """How each query ranks.

        Parameters
        ----------
        queries : Embeddings
            N items; one with the id of a gallery item is that item, and is judged by its nearest other.

        Returns
        -------
        array of shape (N,)
            From 0 to 1. Where all gallery items are copies of one nothing is usual, and it is (1 + cosine) / 2.
        """
        return np.interp(self._best(queries), *self._scale)

    @functools.cached_property
    def usual(self) -> FloatArray:
        """(n,) the cosine of gallery items with their nearest other that is no copy, ascending."""
        return np.sort(_nearest_others(self.gallery))

    @functools.cached_property
    def _scale(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cosines, ascending, and the confidence at each: what is usual is spread evenly, with 0 and 1 at the ends."""
        # Two items that are nearest to each other have one cosine, which may be rounded in two ways.
        cosines, ties = np.unique(self.usual.astype(np.float64).round(_DIGITS), return_counts=True)
        ranks = np.cumsum(ties) - (ties - 1) / 2
        return np.r_[-_LONGEST, cosines, _LONGEST], np.r_[0, ranks / (len(self.usual) + 1), 1]

    def _best(self, queries: Embeddings) -> FloatArray:
        """The cosine (N,) of each query with its nearest item, -1 for a gallery item that is the only one."""
        if len(self.gallery) > 1:
            return search(queries, self.gallery, 1).similarities[:, 0]
        cosines = queries.vectors @ self.gallery.items.vectors[0]
        return np.where(own_gallery_rows(queries, self.gallery) < 0, cosines, -1)


def _nearest_others(gallery: SearchIndex) -> FloatArray:
    """The cosine (n,) of distinct items, drawn if there are many, with their nearest other that is no copy of them."""
    members, starts = gallery.groups
    rows = members[starts[:-1]]  # of equal vectors the first
    if len(rows) > _SAMPLE:
        rows = generator(0).choice(rows, _SAMPLE, replace=False)
    copies, depth, nearest = copy_similarity(gallery.items), _LOOK_AT, []
    while len(rows):
        found = search(Embeddings(gallery.items.vectors[rows]), gallery, min(depth, len(gallery)))
        same = (found.similarities >= copies) | (found.rows == rows[:, None])
        stands_for_all = _first_of(rows, found.rows, same, gallery.id_rank)
        has_other = ~same.all(axis=1)
        of_interest = stands_for_all & has_other
        first_other = same.argmin(axis=1)[of_interest, None]
        nearest.append(np.take_along_axis(found.similarities[of_interest], first_other, axis=1)[:, 0])
        if depth >= len(gallery):
            break
        rows, depth = rows[stands_for_all & ~has_other], depth * _DEEPER
    return np.concatenate(nearest)


def _first_of(rows: IntArray, found: IntArray, same: NDArray[np.bool_], id_rank: IntArray) -> NDArray[np.bool_]:
    """Whether an item comes before its copies in order of id, (n,), and so stands for them, as in the graph."""
    return np.where(same, id_rank[found], len(id_rank)).min(axis=1) >= id_rank[rows]
