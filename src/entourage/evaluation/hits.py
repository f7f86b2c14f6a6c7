"""Where in their rankings queries find what they look for: all that a metric needs to know of a ranking.

Hits are the ranks at which items of the query's label stand. They are few, so nothing here is as large as the ranking.

N queries, M gallery items, K retrieved items, H hits of all queries together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from entourage.values import BoolArray, Embeddings, FloatArray, IntArray

__all__ = ["Hits", "count_matches", "find_hits"]


@dataclass(frozen=True, eq=False)
class Hits:
    """The retrieved items that have the label of their query: query by query, nearest first."""

    query: IntArray
    """(H,) the row of the query that each hit belongs to, never decreasing."""
    rank: IntArray
    """(H,) how many items were retrieved before each hit: 0 for the nearest."""
    n_queries: int
    """N, including queries without a hit."""

    @classmethod
    def from_ranking(cls, same_label: BoolArray) -> "Hits":
        """Find the hits of a ranking.

        Parameters
        ----------
        same_label : bool array of shape (N, K)
            Whether the 1st, 2nd, ... retrieved item of each query has the query's label.

        Returns
        -------
        Hits

        Examples
        --------
        >>> Hits.from_ranking(np.array([[True, False, True]])).rank.tolist()
        [0, 2]
        """
        query, rank = np.nonzero(same_label)
        return cls(query, rank, len(same_label))

    def counted(self, kept: BoolArray | None = None, weights: FloatArray | None = None) -> NDArray[np.float64]:
        """Count the hits of each query.

        Parameters
        ----------
        kept : bool array of shape (H,), optional
            Which hits count; all by default.
        weights : array of shape (H,), optional
            What each hit counts; 1 by default.

        Returns
        -------
        array of shape (N,)
            The number of hits that count, or the sum of their weights.
        """
        of_query = self.query if kept is None else self.query[kept]
        values = weights if weights is None or kept is None else weights[kept]
        return np.bincount(of_query, values, minlength=self.n_queries).astype(np.float64)

    @cached_property
    def first(self) -> NDArray[np.float64]:
        """(N,) the rank of the first hit of each query, 0 for the nearest item; infinite where there is none."""
        starts = np.searchsorted(self.query, np.arange(self.n_queries + 1))
        found = starts[1:] > starts[:-1]
        first = np.full(self.n_queries, np.inf)
        first[found] = self.rank[starts[:-1][found]]
        return first

    @cached_property
    def before(self) -> IntArray:
        """(H,) how many hits of the same query stand before each hit."""
        return np.arange(len(self.query)) - np.searchsorted(self.query, self.query)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """(H,) the share of hits among the items retrieved up to each hit, including it."""
        return (self.before + 1) / (self.rank + 1)

    @property
    def precision_before(self) -> NDArray[np.float64]:
        """(H,) the share of hits among the items retrieved before each hit; 1 where it comes first."""
        return np.where(self.rank > 0, self.before / np.maximum(self.rank, 1), 1.0)


def count_matches(query_codes: IntArray, gallery_codes: IntArray, own_rows: IntArray) -> IntArray:
    """Count how many items each query could find.

    Parameters
    ----------
    query_codes : array of shape (N,)
        The labels of the queries as codes from 0, see `values.shared_codes`.
    gallery_codes : array of shape (M,)
        The labels of the gallery in the same codes.
    own_rows : array of shape (N,)
        The gallery row that is the query itself, or -1.

    Returns
    -------
    array of shape (N,)
        R of each query.
    """
    counts = np.bincount(gallery_codes, minlength=int(query_codes.max()) + 1)
    own_label = (own_rows >= 0) & (gallery_codes[own_rows] == query_codes)
    return np.asarray(counts[query_codes] - own_label)


def find_hits(
    queries: Embeddings,
    gallery: Embeddings,
    query_codes: IntArray,
    gallery_codes: IntArray,
    left_out: tuple[IntArray, IntArray] | None = None,
) -> Iterator[tuple[slice, Hits]]:
    """Find all hits of the whole rankings, some queries at a time.

    Parameters
    ----------
    queries, gallery : Embeddings
        N and M items.
    query_codes, gallery_codes : arrays of shapes (N,) and (M,)
        Their labels in the same codes.
    left_out : pair of arrays of shape (N, G) and (M, G), optional
        Groups whose items are not in a ranking; see `groups_left_out`.

    Yields
    ------
    block : slice
        Some queries, in order.
    hits : Hits
        Their hits; the number of hits of a query is its R.
    """
    from entourage.neighbors.ranks import match_ranks  # loads numba

    for block, query, rank in match_ranks(queries, gallery, query_codes, gallery_codes, left_out):
        yield block, Hits(query, rank, block.stop - block.start)
