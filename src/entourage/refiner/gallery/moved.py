"""Which refined vectors moved, for an index elsewhere that holds them: it is told of exactly those.

A vector has moved if it is further than eps from what was last told of it, not from where it was one change ago: small
movements do not add up unseen.

M items, d dimensions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, brief

__all__ = ["Changes", "Order", "Told"]


@dataclass(frozen=True, eq=False)
class Changes:
    """What an index has to do to be as the gallery is now."""

    version: int
    """Where the gallery is now; ask for the changes since this next time."""
    ids: LabelArray
    """(n,) the items that are new or have moved."""
    vectors: FloatArray
    """(n, d) their refined vectors."""
    removed: LabelArray
    """(m,) the ids of items that are gone."""
    after: int | str | None = None
    """Where there is more: the id to go on after."""
    more: bool = False

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class Told:
    """What was last told of each item."""

    vectors: FloatArray
    """(M, d) the refined vectors as they were told."""
    versions: IntArray
    """(M,) when."""
    removed: dict[int | str, int]
    """By the id of each item that is gone, when it went."""

    @classmethod
    def nothing(cls) -> "Told":
        """Before the first item."""
        return cls(np.empty((0, 0), np.float32), np.empty(0, np.int64), {})

    def after(
        self, refined: Embeddings | None, came_from: IntArray, gone: Iterable[int | str], version: int, eps: float
    ) -> "tuple[Told, int]":
        """What is told of the items after a change.

        Parameters
        ----------
        refined : Embeddings or None
            The M' items that are there now, refined, if there are any.
        came_from : ndarray of shape (M',)
            The row that each of them had here, or -1 if it, or its vector, is new.
        gone : iterable of ids
            Items that are no longer there.
        version : int
            Of the gallery after the change.
        eps : float
            How far a vector may be from what was told.

        Returns
        -------
        told : Told
        moved : int
            How many vectors are new or have moved.
        """
        new = came_from < 0
        came = [] if refined is None else refined.ids[new].tolist()
        removed = self._removed_after(gone, came, version)
        if refined is None:
            return Told(np.empty((0, self.vectors.shape[1]), np.float32), np.empty(0, np.int64), removed), 0
        if not len(self.versions):
            return Told(refined.vectors, np.full(len(refined), version), removed), len(refined)
        vectors, versions = self.vectors[came_from], self.versions[came_from]
        off = refined.vectors - vectors
        moved = new | (np.einsum("nd,nd->n", off, off) > eps**2)
        vectors[moved], versions[moved] = refined.vectors[moved], version
        return Told(vectors, versions, removed), int(moved.sum())

    def _removed_after(
        self, gone: Iterable[int | str], came: Iterable[int | str], version: int
    ) -> dict[int | str, int]:
        back = self.removed.keys() & set(came)
        now = dict.fromkeys(gone, version)
        if not back and not now:
            return self.removed  # which is never edited; a copy would take as long as there are items that have gone
        return {each: when for each, when in self.removed.items() if each not in back} | now

    def since(
        self, version: int, order: "Order", now: int, after: int | str | None = None, limit: int | None = None
    ) -> Changes:
        """What was told after a version.

        Parameters
        ----------
        version : int
        order : Order
            Of all this.
        now : int
            The version of the gallery.
        after : int or str, optional
            An id: of those told at that very version, the ones behind it too.
        limit : int, optional
            At most so many, in order of when they were told, and of id.

        Returns
        -------
        Changes
        """
        start, end = order.place_behind(version, after), len(order.ids)
        stop = end if limit is None else min(start + limit, end)
        ids, rows = order.ids[start:stop], order.rows[start:stop]
        there = rows >= 0
        told = ids[there], self.vectors[rows[there]], ids[~there]
        if stop == end:
            return Changes(now, *told)
        return Changes(int(order.versions[stop - 1]), *told, ids[-1].item(), more=True)


@dataclass(frozen=True, eq=False)
class Order:
    """In which items are told of, E that are there or gone: by the version that told of them, and by id."""

    versions: IntArray
    """(E,) ascending."""
    ids: LabelArray
    """(E,) ascending within a version."""
    rows: IntArray
    """(E,) of the items; -1 if they are gone."""

    @classmethod
    def of(cls, told: Told, ids: LabelArray) -> "Order":
        """Of what was told of items, of which these are there."""
        gone = np.array(list(told.removed)) if told.removed else ids[:0]
        everyone = np.concatenate([ids, gone]) if len(ids) else gone
        versions = np.concatenate([told.versions, np.array(list(told.removed.values()), np.int64)])
        rows = np.concatenate([np.arange(len(ids)), np.full(len(gone), -1)])
        order = np.lexsort((everyone, versions))
        return cls(versions[order], everyone[order], rows[order])

    def place_behind(self, version: int, after: int | str | None) -> int:
        """Where those begin that were told after a version or, at that very version, are behind an id."""
        end = int(np.searchsorted(self.versions, version, side="right"))
        if after is None:
            return end
        start = int(np.searchsorted(self.versions, version, side="left"))
        return start + int(np.searchsorted(self.ids[start:end], self._as_id(after), side="right"))

    def _as_id(self, after: int | str) -> int | str:
        """An id of this kind; a number may come as text, and none is beyond int64."""
        if self.ids.dtype.kind == "U":
            return str(after)
        bounds = np.iinfo(np.int64)
        return min(max(int(after), int(bounds.min)), int(bounds.max))
