"""The neighbourhood graph of vectors that are not in memory, kept in files.

M items, G distinct ones, k neighbours, d dimensions.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entourage.neighbors import search
from entourage.neighbors.approximate import approximate_top_k, prepared
from entourage.neighbors.choice import AUTO, EXACT, chosen
from entourage.neighbors.copies import copies_from, distinct_neighbors
from entourage.neighbors.reference import nearest_exactly
from entourage.refiner.graph import Graph, most_neighbors
from entourage.runs.streamed.work import Work
from entourage.runtime.progress import Progress
from entourage.runtime.threads import blocks
from entourage.stores.mapped import MappedVectors
from entourage.values import Embeddings, FloatArray, IntArray, Neighbors, brief

__all__ = ["Counted", "Search", "mean_vector", "streamed_graph"]

INDEX_MEMORY = 1.0e9
"""Bytes that an index may take, whatever the machine has: the rest of 1.5 GB is for what is done with it."""
_ROWS = 2**13
_FEW = 2**12  # items that are compared with all others sooner than an index is built
_AT_ONCE = 2**8


@dataclass(frozen=True)
class Counted:
    """Items that are not in memory: how many, and that they have no labels."""

    count: int
    labels: None = None

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, eq=False)
class Search:
    """A set that is searched as `copies.Searched` says; what was found of it is kept in a folder."""

    vectors: MappedVectors
    rank: IntArray
    """(M,) the place of each item in order of id."""
    work: Work
    least: int
    """The shortest lists that are searched for, so that one search serves all that comes after."""
    by: str = AUTO
    progress: Progress | None = None

    __repr__ = brief

    def within(self, rows: IntArray | None, k: int) -> Neighbors:
        """The k nearest of some rows among themselves, as positions in `rows`; None: of all."""
        name, wanted = "all" if rows is None else f"{len(rows)}", k
        vectors = self.vectors if rows is None else self._taken(rows, name)
        rank = self.rank if rows is None else np.argsort(np.argsort(self.rank[rows]))
        by, k = self._method(len(vectors)), min(max(k, self.least), len(vectors) - 1)
        if self.work.is_done(f"method {name}"):
            method = self.work.noted(f"method {name}")
        elif by == EXACT:
            method = self._exactly(vectors, rank, k, name)
        else:
            method = self._approximately(by, vectors, rank, k, name)
        found, similar = (self.work.kept(f"{kind}_{name}") for kind in ("rows", "similarities"))
        return Neighbors(found[:, :wanted], similar[:, :wanted], method)

    def of_some(self, some: IntArray, rows: IntArray, k: int) -> Neighbors:
        """The k nearest among `rows` of those at the positions `some` of it, as positions; many as `within` does."""
        if len(some) > _FEW:
            found = self.within(rows, k)
            return Neighbors(found.rows[some], found.similarities[some], found.method)
        vectors = self._taken(rows, f"{len(rows)}")
        nearest, similar = np.empty((len(some), k), np.int64), np.empty((len(some), k), np.float32)
        for block in blocks(len(some), _AT_ONCE):
            part = some[block]
            nearest[block], similar[block] = nearest_exactly(vectors[part], vectors, k, part, np.arange(len(rows)))
        return Neighbors(nearest, similar)

    def of_pairs(self, rows: IntArray, others: IntArray) -> FloatArray:
        """The similarity (n,) of each of some items to another."""
        similar = np.empty(len(rows))
        for block in blocks(len(rows), _ROWS):
            pairs = self.vectors[rows[block]], self.vectors[others[block]]
            similar[block] = np.einsum("nd,nd->n", *pairs, dtype=np.float64)
        return similar

    def _method(self, count: int) -> str:
        dim = self.vectors.shape[1]
        return chosen(count, count, dim, one_set=True, memory=INDEX_MEMORY) if self.by == AUTO else self.by

    def _taken(self, rows: IntArray, name: str) -> MappedVectors:
        """A copy of some rows, in a file of its own."""
        raw = self.work.array(f"vectors_{name}", (len(rows), self.vectors.shape[1]), self.vectors.raw.dtype)
        for block in blocks(len(rows), _ROWS):
            raw[block] = self.vectors.raw[rows[block]]
        return MappedVectors(raw, self.vectors.factors[rows])

    def _exactly(self, vectors: MappedVectors, rank: IntArray, k: int, name: str) -> str:
        items = Embeddings(vectors[:], rank)  # ids in the order of the ids there are, so that ties fall alike
        found = search(items, k=k, by=EXACT, progress=self.progress)
        self.work.keep(f"rows_{name}", found.rows.astype(np.int32))
        self.work.keep(f"similarities_{name}", found.similarities)
        self.work.note(f"method {name}", found.method)
        return found.method

    def _approximately(self, by: str, vectors: MappedVectors, rank: IntArray, k: int, name: str) -> str:
        rows = self.work.array(f"rows_{name}", (len(vectors), k), np.int32)
        similarities = self.work.array(f"similarities_{name}", (len(vectors), k), np.float32)
        stage, kept = f"searched {name}", self._index_file(name)
        candidates = prepared(by, vectors, k, kept=kept, progress=self.progress)
        method, found = approximate_top_k(
            candidates, vectors, vectors, k, np.arange(len(vectors)), rank,
            start=self.work.done(stage), progress=self.progress,
        )  # fmt: skip
        for number, (block, nearest, similar) in enumerate(found):
            rows[block], similarities[block] = nearest, similar
            if number % 16 == 15:
                self.work.mark(stage, block.stop, rows, similarities)
        self.work.note(f"method {name}", method, rows, similarities)
        kept.unlink(missing_ok=True)
        return method

    def _index_file(self, name: str) -> Path:
        return self.work.file(f"index_{name}.faiss")


def streamed_graph(vectors: MappedVectors, n_neighbors: int, find: Search) -> tuple[Graph, IntArray]:
    """What `build_graph` builds, of vectors that are not in memory.

    Parameters
    ----------
    vectors : MappedVectors
        M items, through the base map if there is one.
    n_neighbors : int
        As in `build_graph`.
    find : Search

    Returns
    -------
    graph : Graph
        Of its items nothing but their number can be asked for.
    nodes : array of shape (G,)
        The item that each node is.
    """
    similarity = copies_from(mean_vector(vectors))
    if len(vectors) == 1:
        nodes: IntArray = np.zeros(1, np.int64)
        stands_for = nodes
        found = Neighbors(np.empty((1, 0)), np.empty((1, 0)))
    else:
        k = min(n_neighbors, most_neighbors(len(vectors)))
        nodes, stands_for, found = distinct_neighbors(find, similarity, k)
    items: Any = Counted(len(nodes))  # all that weights depend on
    return Graph(items, stands_for, found.first(most_neighbors(len(nodes))), similarity), nodes


def mean_vector(vectors: MappedVectors) -> FloatArray:
    """The mean (d,) of unit vectors."""
    total = np.zeros(vectors.shape[1])
    for block in blocks(len(vectors), _ROWS):
        total += vectors[block].sum(axis=0, dtype=np.float64)
    return total / len(vectors)
