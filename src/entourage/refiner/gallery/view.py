"""A gallery at one version: what readers keep while changes go on, and what a change makes another one of.

M items, N queries, d dimensions.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from entourage.errors import InputError, few
from entourage.neighbors import own_gallery_rows, search
from entourage.refiner.gallery.lists import Lists
from entourage.refiner.gallery.moved import Changes, Order, Told
from entourage.refiner.gallery.snapshots import Change, Kept
from entourage.refiner.gallery.state import Recipe, State
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, brief, checked_column

__all__ = ["Found", "Report", "View"]


class Report(NamedTuple):
    """What a change did."""

    version: int
    """Of the gallery after it."""
    added: int
    updated: int
    removed: int
    refined: int
    """How many distinct items were refined again; all others were out of reach."""
    moved: int
    """How many refined vectors are new or have moved by more than eps: those that `changes_since` tells of."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found."""

    ids: LabelArray
    """(N, k) ids of items, nearest first."""
    similarities: FloatArray
    """(N, k) float32."""
    version: int
    """Of the gallery that was searched."""
    confidence: FloatArray | None = None
    """(N,) how sure one can be that each query has a match there at all, from 0 to 1, if it was asked for."""

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class View:
    """A gallery at one version, whole; never edited."""

    version: int
    state: State | None
    """None if there are no items."""
    told: Told

    @classmethod
    def of(cls, kept: Kept, recipe: Recipe) -> "View":
        """From a snapshot."""
        known = kept.represented_by, kept.lists
        return cls(kept.version, None if kept.items is None else State.of(recipe, kept.items, known), kept.told)

    def kept(self) -> Kept:
        """What a snapshot holds."""
        if self.state is None:
            nobody = np.empty((0, 0), np.int64)
            return Kept(self.version, None, nobody.ravel(), Lists(nobody, nobody.astype(np.float32)), self.told)
        return Kept(self.version, self.state.items, self.state.represented_by, self.state.lists, self.told)

    @property
    def ids(self) -> LabelArray:
        """(M,) ascending."""
        return np.empty(0, np.int64) if self.state is None else self.state.items.ids

    def rows_of(self, ids: LabelArray) -> IntArray:
        """(n,) the row of each id, or -1."""
        if self.state is None or not len(ids):
            return np.full(len(ids), -1)
        return self.state.prepared.gallery.rows_of(ids)

    # ---- reading -----------------------------------------------------------------------------------------------

    def search(self, queries: Embeddings, k: int, refine: bool, confidence: bool) -> Found:
        """The k nearest items of each query, or as many as there are; refined with refined, or raw with raw."""
        sure = self.confidence(queries) if confidence else None
        if self.state is not None:
            if refine:
                queries = queries.replace_vectors(self.state.prepared.refine(queries))
            index = self.state.refined_index if refine else self.state.prepared.gallery
            k = min(k, len(index) - bool((own_gallery_rows(queries, index) >= 0).any()))
            if k:
                found = search(queries, index, k)
                return Found(self.ids[found.rows], found.similarities, self.version, sure)
        nobody = np.empty((len(queries), 0))
        return Found(nobody.astype(self.ids.dtype), nobody.astype(np.float32), self.version, sure)

    def refine(self, queries: Embeddings) -> FloatArray:
        """(N, d) refined queries; as they came where there are no items."""
        return queries.vectors if self.state is None else self.state.prepared.refine(queries)

    def confidence(self, queries: Embeddings) -> FloatArray:
        """(N,) how sure one can be that queries have a match; 0 where there are no items."""
        return np.zeros(len(queries)) if self.state is None else self.state.confidence.of(queries)

    def vectors_of(self, ids: LabelArray) -> FloatArray:
        """(n, d) the vectors of items as they came; (0, 0) where none are asked for."""
        self.check_there(ids)
        if self.state is None or not len(ids):
            return np.empty((0, 0), np.float32)
        return self.state.items.vectors[self.rows_of(ids)]

    def changes_since(self, version: int, after: int | str | None, limit: int | None) -> Changes:
        """What was told after a version."""
        digits = str(after).removeprefix("-")
        if after is not None and not self.has_texts and not (digits.isascii() and digits.isdecimal()):
            raise InputError(f"after is {after!r}; wanted an id of this gallery, which are whole numbers")
        return self.told.since(version, self._order, self.version, after, limit)

    @functools.cached_property
    def _order(self) -> Order:
        """In which changes are told; found once, for all the parts that are asked for."""
        return Order.of(self.told, self.ids)

    # ---- changing ----------------------------------------------------------------------------------------------

    def named(self, items: Embeddings, ids: Any) -> Embeddings:
        """Items with the ids that are given, or their own, or the next numbers; they must be of the gallery's kind."""
        if ids is None:
            ids = items.ids if items.named else self._numbers(len(items))
        column = _of_one_kind(checked_column(ids, "ids", len(items)))
        self._check_kind(column)
        return Embeddings(items.vectors, column)

    def next_number(self) -> int:
        """The id that an item without one gets."""
        if self.has_texts:
            raise InputError("the items of this gallery have texts for ids, and these items have none; give ids")
        return max(map(int, [*self.ids[-1:].tolist(), *self.told.removed]), default=-1) + 1  # ids are ascending

    def _numbers(self, count: int) -> IntArray:
        first = self.next_number()
        if first + count > np.iinfo(np.int64).max:
            raise InputError(f"there is no number after {first - 1}, the largest id; give ids")
        return first + np.arange(count)

    @property
    def has_texts(self) -> bool | None:
        """Whether ids are texts, as the first one was, or numbers; None if there was none yet."""
        known = self.ids[0].item() if len(self.ids) else next(iter(self.told.removed), None)
        return None if known is None else isinstance(known, str)

    def _check_kind(self, ids: LabelArray) -> None:
        if len(ids) and self.has_texts not in (None, ids.dtype.kind == "U"):
            kinds = ("texts", "whole numbers") if self.has_texts else ("whole numbers", "texts")
            raise InputError(f"the ids of this gallery are {kinds[0]}, and these are {kinds[1]}; give {kinds[0]}")

    def check_there(self, ids: LabelArray) -> None:
        """Raise an InputError if there is no item of some id."""
        self._check_kind(ids)
        missing = ids[self.rows_of(ids) < 0]
        if len(missing):
            raise InputError(f"there are no items of these ids: {few(missing.tolist(), 'ids')}; add them first")

    def checked_there(self, ids: Any) -> LabelArray:
        """(n,) ids of items that are there, each once, in ascending order."""
        given = np.unique(np.asarray(ids))
        distinct = checked_column(given, "ids", len(given)) if len(given) else self.ids[:0]
        self.check_there(distinct)
        return distinct

    def after(self, change: Change, recipe: Recipe, eps: float) -> tuple["View", Report]:
        """The view after a change, and what the change did."""
        removed = np.array(change.removed) if change.removed else self.ids[:0]
        items, came_from = self._items_after(change, self.rows_of(removed))
        if items is None:
            state = None
        else:
            state = State.of(recipe, items) if self.state is None else self.state.after(items, came_from)
        again = np.isin(removed, change.ids) if len(change.ids) else np.zeros(len(removed), bool)
        refined = None if state is None else state.refined
        told, moved = self.told.after(refined, came_from, removed[~again].tolist(), change.version, eps)
        updated, taken = int(again.sum()), 0 if state is None else state.taken
        counts = len(change.ids) - updated, updated, len(removed) - updated, taken, moved
        return View(change.version, state, told), Report(change.version, *counts)

    def _items_after(self, change: Change, gone: IntArray) -> tuple[Embeddings | None, IntArray]:
        """The items after a change, in order of id, and the row that each had before, or -1."""
        kept = np.delete(np.arange(len(self.ids)), gone)
        came_from = np.concatenate([kept, np.full(len(change.ids), -1)])
        ids, vectors = change.ids, change.vectors
        if self.state is not None and len(kept):
            ids = np.concatenate([self.ids[kept], change.ids]) if len(change.ids) else self.ids[kept]
            vectors = np.concatenate([self.state.items.vectors[kept], change.vectors])
        if not len(ids):
            return None, came_from
        order = np.argsort(ids, kind="stable")
        return Embeddings(vectors[order], ids[order]), came_from[order]


def _of_one_kind(ids: LabelArray) -> LabelArray:
    """(n,) texts, or whole numbers as int64: beside numbers of another kind, numpy would turn them into floats."""
    if ids.dtype.kind == "U":
        return ids
    most = np.iinfo(np.int64).max
    if ids.dtype.kind == "u" and (ids > most).any():
        raise InputError(f"the largest id is {ids.max()}; wanted at most {most}: give smaller numbers")
    return ids.astype(np.int64)
