"""Neighbours that an index of the user's has found: they propose, and exact similarities put them in order.

So any index will do, whatever its scores mean, and the recall of its lists is measured as that of any approximate
search. N queries, M gallery items, K items in the longest list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.neighbors.index import SearchIndex
from entourage.values import Embeddings, IntArray, Neighbors, as_column

__all__ = ["GivenNeighbors", "KnownNeighbors", "given_neighbors"]

_NOBODY = -1


@dataclass(frozen=True, eq=False)
class GivenNeighbors:
    """Lists of neighbours, as candidates of an approximate search."""

    rows: IntArray
    """(N, K) gallery rows, each once in a list; -1 where it is shorter."""
    name: str = "given neighbours"

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, queries: NDArray[np.float32], rows: slice | IntArray, k: int) -> IntArray:
        """(n, K) all that is known of these rows of the set."""
        return self.rows[rows]

    def widen(self) -> bool:
        """There is nothing more to look at."""
        return False

    def usable(self, own_rows: IntArray) -> int:
        """How many neighbours there are in most lists, the item itself aside; the few that are shorter are searched."""
        known = (self.rows >= 0) & (self.rows != own_rows[:, None])
        return int(np.median(known.sum(axis=1)))

    def standing_for(self, stands_for: IntArray) -> "GivenNeighbors":
        """The same with each gallery row replaced by another, stands_for (M,), each once."""
        return GivenNeighbors(_once(np.where(self.rows < 0, _NOBODY, stands_for[self.rows])), self.name)


@dataclass(frozen=True, eq=False)
class KnownNeighbors:
    """What is known of items that are refined among a gallery; for one set, `of_gallery` alone."""

    of_items: GivenNeighbors | None = None
    """Where the items, queries from outside, find their neighbours in the gallery."""
    of_gallery: GivenNeighbors | None = None
    """Where the gallery's items find theirs among each other."""


def given_neighbors(given: Any, queries: Embeddings, gallery: Embeddings, name: str = "neighbors") -> GivenNeighbors:
    """Check neighbours from any index.

    Parameters
    ----------
    given : Neighbors, pair of ids and scores, or ids
        Ids are a table (N, K), or N lists, best first: those of the gallery where it has ids of its own, otherwise
        rows. Lists that are shorter may end in -1 or empty texts; an item may be in its own list. Scores are as many
        and are not used: similarities are computed from the vectors.
    queries, gallery : Embeddings
        N and M items; the same for a set searched within itself.
    name : str
        What messages call them.

    Returns
    -------
    GivenNeighbors

    Examples
    --------
    >>> items = Embeddings.from_vectors(np.eye(3), ids=["a", "b", "c"])
    >>> given_neighbors([["b", "c"], ["a"], ["c", "b"]], items, items).rows.tolist()
    [[1, 2], [0, -1], [2, 1]]
    """
    if isinstance(given, GivenNeighbors):
        return given
    if isinstance(given, Neighbors):
        ids, scores = given.rows, None
    else:
        ids, scores = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    is_table = isinstance(ids, np.ndarray) and ids.ndim == 2 and ids.dtype.kind != "O"
    lists = ids if is_table else [as_column(each) for each in ids]
    if len(lists) != len(queries):
        raise InputError(f"{name} are {len(lists)} lists for {len(queries)} items; wanted one for each, in their order")
    if scores is not None and [len(each) for each in scores] != [len(each) for each in lists]:
        raise InputError(f"{name} have lists of ids and of scores that differ in length; wanted a score for each id")
    rows = _as_rows(_filled(lists), gallery, by_id=gallery.named and not isinstance(given, Neighbors), name=name)
    return GivenNeighbors(_once(rows))


def _filled(lists: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """(N, K) lists as one table."""
    if isinstance(lists, np.ndarray):
        return lists
    longest = max((len(each) for each in lists), default=0)
    strange = next((each for each in lists if len(each) and each.dtype.kind not in "iuOU"), None)
    if strange is not None:
        return np.asarray(strange)[None]  # refused, with its kind
    texts = any(len(each) and each.dtype.kind in "OU" for each in lists)
    filled = [
        np.pad(
            each.astype(str if texts else np.int64), (0, longest - len(each)), constant_values="" if texts else _NOBODY
        )
        for each in lists
    ]
    return np.array(filled).reshape(len(lists), longest)


def _as_rows(ids: NDArray[Any], gallery: Embeddings, *, by_id: bool, name: str) -> IntArray:
    if ids.dtype.kind not in "iuU":
        raise InputError(f"{name} hold {ids.dtype}; wanted ids of the gallery or its rows, as whole numbers or texts")
    nobody = ids == "" if ids.dtype.kind == "U" else ids == _NOBODY
    if by_id:
        rows = np.where(nobody, _NOBODY, SearchIndex(gallery).rows_of(ids.ravel()).reshape(ids.shape))
        wrong = (rows < 0) & ~nobody
    else:
        if ids.dtype.kind == "U":
            raise InputError(
                f"{name} name items by texts such as {ids.flat[0]!r}, but the gallery has no ids; give rows"
            )
        rows = ids.astype(np.int64)
        wrong = ((rows < 0) & ~nobody) | (rows >= len(gallery))
    if wrong.any():
        wanted = f"its ids, such as {gallery.ids[0]}" if by_id else f"rows from 0 to {len(gallery) - 1}"
        raise InputError(f"{name} name the item {ids[wrong][0]}, which is not in the gallery; wanted {wanted}")
    return np.asarray(rows, np.int64)


def _once(rows: IntArray) -> IntArray:
    """The lists (N, K) with what comes again replaced by nobody."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    again = np.zeros(rows.shape, bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again, _NOBODY, rows)
