"""A gallery made ready for exact search: what depends on the gallery alone, computed when first needed and kept.

Equal vectors are found and searched as one. A matrix product may round equal rows differently depending on where they
lie in memory; searched as one they tie by construction, and their ids decide. The items are put in order of id, so that
position decides ties further down and the order of the rows decides nothing.

M gallery items, G of them with different vectors, d dimensions.
"""

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from entourage.neighbors.quantised import Codes
from entourage.runtime.devices import graphics_card
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, shared_codes

if TYPE_CHECKING:
    import torch

__all__ = ["SearchIndex", "groups_of_equal_vectors"]

_MANY = 4096  # from so many items on, codes save more time than they take


@dataclass(frozen=True, eq=False)
class SearchIndex:
    """Items to be searched more than once: give it to `search` in place of the gallery.

    It takes 16 to 40 bytes an item, and a copy of the vectors if ids are not in ascending order or vectors are equal.

    Parameters
    ----------
    items : Embeddings
        The M items.

    Examples
    --------
    >>> from entourage.neighbors import search
    >>> gallery = SearchIndex(Embeddings.from_vectors([[1.0, 0.0], [0.0, 1.0]]))
    >>> [search(Embeddings.from_vectors([query]), gallery, 1).rows.tolist() for query in ([2.0, 1.0], [0.0, 3.0])]
    [[[0]], [[1]]]
    """

    items: Embeddings
    codes: Codes | None = field(default=None, init=False)
    """Of `vectors`, in a large gallery that was made ready: a quarter of their size."""

    def __len__(self) -> int:
        return len(self.items)

    @functools.cached_property
    def by_id(self) -> IntArray:
        """(M,) the rows in order of id."""
        return np.argsort(self.items.ids, kind="stable")

    @functools.cached_property
    def groups(self) -> tuple[IntArray, IntArray]:
        """The rows of equal vectors, as `groups_of_equal_vectors` gives them: members (M,) and starts (G + 1,)."""
        return groups_of_equal_vectors(self.items.vectors, self.by_id)

    @functools.cached_property
    def group_of_row(self) -> IntArray:
        """(M,) the group of each row."""
        members, starts = self.groups
        group_of_row = np.empty(len(members), np.int64)
        group_of_row[members] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return group_of_row

    @functools.cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(G, d) the vector of each group, in the order of the groups; not copied where that is the order of rows."""
        members, starts = self.groups
        firsts = members[starts[:-1]]
        in_order = len(firsts) == len(self) and bool((firsts == np.arange(len(self))).all())
        return self.items.vectors if in_order else self.items.vectors[firsts]

    @functools.cached_property
    def id_rank(self) -> IntArray:
        """(M,) the place of each row in order of id."""
        rank = np.empty(len(self), np.int64)
        rank[self.by_id] = np.arange(len(self))
        return rank

    @functools.cached_property
    def on_card(self) -> "torch.Tensor":
        """`vectors` in the memory of the graphics card."""
        import torch

        return torch.from_dlpack(self.vectors).to(graphics_card())

    @property
    def all_distinct(self) -> bool:
        """Whether no two vectors are equal."""
        return len(self.groups[1]) == len(self) + 1

    def make_ready(self, codes: Codes | None = None) -> None:
        """Compute now what the first search would have to compute, and what makes single queries quick.

        Parameters
        ----------
        codes : Codes, optional
            Those of the items, if they are known already.
        """
        _ = self.vectors, self.group_of_row
        if self.codes is None and len(self) >= _MANY:
            members, starts = self.groups
            if codes is not None and self.vectors is not self.items.vectors:
                codes = codes.take(members[starts[:-1]])
            object.__setattr__(self, "codes", Codes.of(self.vectors) if codes is None else codes)

    def rows_of(self, ids: LabelArray) -> IntArray:
        """Find items by id.

        Parameters
        ----------
        ids : array of shape (N,)

        Returns
        -------
        array of shape (N,)
            The row of each id, or -1.
        """
        known = self.items.ids
        if ids.dtype.kind != known.dtype.kind:  # the number 7 and the text "7"
            codes, known_codes = shared_codes(ids, known)
            row_of_code = np.full(max(codes.max(), known_codes.max()) + 1, -1)
            row_of_code[known_codes] = np.arange(len(self))
            return np.asarray(row_of_code[codes])
        place = np.searchsorted(known, ids, sorter=self.by_id)
        row = self.by_id[np.minimum(place, len(self) - 1)]
        return np.where(known[row] == ids, row, -1)


def groups_of_equal_vectors(vectors: FloatArray, by_id: IntArray) -> tuple[IntArray, IntArray]:
    """Group rows that hold the same vector.

    Parameters
    ----------
    vectors : array of shape (M, d)
    by_id : array of shape (M,)
        The rows in order of id.

    Returns
    -------
    members : array of shape (M,)
        All rows, group by group; groups in the order of their first ids, and members of a group in order of id.
    starts : array of shape (G + 1,)
        Group g holds members[starts[g]:starts[g + 1]].
    """
    suspicious = _shares_its_head(vectors)[by_id]
    if not suspicious.any():
        return by_id, np.arange(len(by_id) + 1)
    first_of: dict[bytes, int] = {}
    group = np.arange(len(vectors))  # for each position in by_id, that of its group's first member
    for position in np.flatnonzero(suspicious):
        group[position] = first_of.setdefault(vectors[by_id[position]].tobytes(), int(position))
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0, True])
    return by_id[order], starts


def _shares_its_head(vectors: FloatArray) -> NDArray[np.bool_]:
    """Whether another row may begin with the same values, (M,): they tell almost all vectors apart.

    The first four values become one number, which is sorted much faster than they are; rows of one number that do not
    begin alike are rare, and do no harm where those that share it are compared whole.
    """
    head = np.zeros((len(vectors), 4), np.float32)
    head[:, : vectors.shape[1]] = vectors[:, :4]
    low, high = head.view(np.uint64).T
    number = low * np.uint64(0x9E3779B97F4A7C15) + high  # wraps around; any odd factor spreads the bits
    order = np.argsort(number)
    same = np.diff(number[order]) == 0
    shared = np.empty(len(vectors), bool)
    shared[order] = np.r_[False, same] | np.r_[same, False]
    return shared
