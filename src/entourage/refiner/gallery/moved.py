"""Which refined vectors moved, for an index elsewhere that holds them: it is told of exactly those.

A vector has moved if it is further than eps from what was last told of it, not from where it was one change ago: small
movements do not add up unseen.

M items, d dimensions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, brief

__all__ = ["Changes", "Told"]


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
        removed = {**self.removed, **dict.fromkeys(gone, version)}
        if refined is None:
            return Told(np.empty((0, 0), np.float32), np.empty(0, np.int64), removed), 0
        new = came_from < 0
        for each in refined.ids[new].tolist():
            removed.pop(each, None)
        if not len(self.versions):
            return Told(refined.vectors, np.full(len(refined), version), removed), len(refined)
        vectors, versions = self.vectors[came_from], self.versions[came_from]
        off = refined.vectors - vectors
        moved = new | (np.einsum("nd,nd->n", off, off) > eps**2)
        vectors[moved], versions[moved] = refined.vectors[moved], version
        return Told(vectors, versions, removed), int(moved.sum())

    def since(
        self, version: int, ids: LabelArray, now: int, after: int | str | None = None, limit: int | None = None
    ) -> Changes:
        """What was told after a version.

        Parameters
        ----------
        version : int
        ids : array of shape (M,)
            Of the items.
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
        first = version if after is not None else version + 1
        rows = np.flatnonzero(self.versions >= first)
        entries = [(int(self.versions[row]), ids[row].item(), int(row)) for row in rows]
        entries += [(gone, each, -1) for each, gone in self.removed.items() if gone >= first]
        if after is not None:
            entries = [entry for entry in entries if entry[0] > version or _behind(entry[1], after)]
        entries.sort(key=lambda entry: entry[:2])
        shown = entries if limit is None else entries[:limit]
        kept = np.array([row for _, _, row in shown if row >= 0], np.int64)
        gone = [each for _, each, row in shown if row < 0]
        removed = np.array(gone) if gone else ids[:0]
        if len(shown) == len(entries):
            return Changes(now, ids[kept], self.vectors[kept], removed)
        return Changes(shown[-1][0], ids[kept], self.vectors[kept], removed, shown[-1][1], more=True)


def _behind(each: int | str, after: int | str) -> bool:
    """Whether an id comes after another, which may be a number as text."""
    return each > type(each)(after)  # type: ignore[operator]
