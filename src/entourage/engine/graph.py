"""The neighbours of each partition, found in the partitions nearest to it; in all of them, the search is exact.

N items in P partitions, k neighbours, S partitions that are searched for each.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.engine.cluster import Cluster
from entourage.engine.parts import Partitions
from entourage.neighbors import search
from entourage.neighbors.approximate import WANTED
from entourage.neighbors.choice import EXACT
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["Reach", "measured_recall", "nearest_partitions", "reach_of", "search_all", "search_partition"]

_SAMPLE = 256
_TITLE = "searching neighbours"


@dataclass(frozen=True)
class Reach:
    """How far neighbours are looked for."""

    searched: int
    """S."""
    method: str
    """How protocols name it, with the recall of a sample."""


@dataclass(frozen=True)
class Asked:
    """One search of all partitions."""

    name: str
    """What its lists are called: rows are kept as found_NAME, similarities as similar_NAME."""
    k: int
    searched: int
    """S."""
    some: str = ""
    """The array of positions that neighbours are wanted of; "": of all."""
    among: str = ""
    """The array of who stands for whom, of whom only who stands for itself is found; "": everybody."""


def reach_of(cluster: Cluster, partitions: Partitions, k: int, wanted: int | None) -> Reach:
    """Measure how many partitions have to be searched for a recall of 0.95, or what recall so many have.

    Parameters
    ----------
    cluster : Cluster
    partitions : Partitions
    k : int
    wanted : int, optional
        S; None: as few as reach the recall.

    Returns
    -------
    Reach
    """
    count = len(partitions.numbers)
    if wanted is not None and wanted >= count:
        return Reach(count, EXACT)
    recalls = measured_recall(cluster, partitions, k)
    searched = int(np.argmax(recalls >= WANTED)) + 1 if wanted is None else wanted
    if searched == count:
        return Reach(count, EXACT)
    sampled = min(_SAMPLE, partitions.count)
    near = f"the {searched} nearest of {count} partitions" if searched > 1 else f"each of {count} partitions in itself"
    return Reach(
        searched,
        f"approximate ({near}), recall {recalls[searched - 1]:.3f} of the exact neighbours of {sampled} sampled items",
    )


def measured_recall(cluster: Cluster, partitions: Partitions, k: int) -> FloatArray:
    """The share of the exact neighbours of a sample that lie in the S nearest partitions, for S = 1, 2, ..., P.

    As each partition that is searched is searched exactly, this is the recall of the search.
    """
    count = partitions.count
    places = np.sort(generator(0).choice(count, min(_SAMPLE, count), replace=False))
    rows, x = partitions.at("rows", places), partitions.at("x", places)
    owners = np.searchsorted(partitions.offsets, places, side="right") - 1
    best = _Best.of(len(places))
    for number, (found, similarities) in cluster.each(sample_in_partition, partitions.numbers, partitions, x, rows, k):
        best = best.with_others(found, similarities, np.full(found.shape, number), k)
    ranks = np.empty(best.owners.shape, np.int64)
    for owner in np.unique(owners):
        order = nearest_partitions(partitions, int(owner))
        rank_of = np.empty(len(partitions.offsets) - 1, np.int64)
        rank_of[order] = np.arange(len(order))
        ranks[owners == owner] = rank_of[best.owners[owners == owner]]
    return np.array([(ranks < searched).mean() for searched in range(1, len(partitions.numbers) + 1)])


def sample_in_partition(
    number: int, partitions: Partitions, x: FloatArray, rows: IntArray, k: int
) -> tuple[IntArray, FloatArray]:
    """The rows and similarities, each (n, at most k), of the nearest of some items (n, d) in one partition."""
    own = np.isin(rows, partitions.kept("rows", number))
    gallery = Embeddings(partitions.vectors(number)[:], partitions.kept("rows", number))
    most = min(k, len(gallery) - bool(own.any()))
    if not most:
        return np.empty((len(x), 0), np.int64), np.empty((len(x), 0), np.float32)
    found = search(Embeddings(x, rows), gallery, most, by=EXACT)
    return gallery.ids[found.rows], found.similarities


def nearest_partitions(partitions: Partitions, number: int) -> IntArray:
    """The partitions that are not empty by the distance of their centres, this one first."""
    centres = np.asarray(partitions.kept("centres", 0))
    others = np.array(partitions.numbers)
    distances = ((centres[others] - centres[number]) ** 2).sum(axis=1)
    distances[others == number] = -1
    return others[np.argsort(distances, kind="stable")]


def search_all(cluster: Cluster, partitions: Partitions, asked: Asked, progress: Progress | None = None) -> None:
    """Search every partition."""
    for done, _ in enumerate(cluster.each(search_partition, partitions.numbers, partitions, asked), 1):
        if progress:
            progress(_TITLE, done, len(partitions.numbers))


def search_partition(number: int, partitions: Partitions, asked: Asked) -> dict[str, Any]:
    """Find the k nearest of the items of a partition: places and similarities, each (n, k), ties by row."""

    def work() -> dict[str, Any]:
        rows = np.asarray(partitions.kept("rows", number))
        some = np.asarray(partitions.kept(asked.some, number)) if asked.some else np.arange(len(rows))
        best, seen = _Best.of(len(some)), 0
        if len(some):
            queries = Embeddings(partitions.vectors(number)[some], rows[some])
            for rank, other in enumerate(nearest_partitions(partitions, number)):
                if rank >= asked.searched and seen > asked.k:
                    break
                positions = _standing(partitions, asked.among, int(other))
                seen += len(positions)
                most = min(asked.k, len(positions) - (other == number))
                if most < 1:
                    continue
                gallery = Embeddings(
                    partitions.vectors(int(other))[positions], partitions.kept("rows", int(other))[positions]
                )
                found = search(queries, gallery, most, by=EXACT)
                places = partitions.offsets[other] + positions[found.rows]
                best = best.with_others(gallery.ids[found.rows], found.similarities, places, asked.k)
        shape = (len(some), asked.k)
        partitions.keep(f"found_{asked.name}", number, best.owners.reshape(shape))
        partitions.keep(f"similar_{asked.name}", number, best.similarities.reshape(shape))
        return {}

    return partitions.once(f"searched_{asked.name}", number, work)


def _standing(partitions: Partitions, stands: str, number: int) -> IntArray:
    """The positions of those in a partition that stand for themselves."""
    if not stands:
        return np.arange(partitions.size(number))
    return np.flatnonzero(partitions.kept(stands, number) == partitions.places(number))


@dataclass(frozen=True, eq=False)
class _Best:
    """The nearest so far of n items, each array (n, at most k)."""

    rows: IntArray
    similarities: FloatArray
    owners: IntArray
    """What belongs to each, such as its place."""

    @classmethod
    def of(cls, count: int) -> "_Best":
        return cls(*(np.empty((count, 0), kind) for kind in (np.int64, np.float32, np.int64)))

    def with_others(self, rows: IntArray, similarities: FloatArray, owners: IntArray, k: int) -> "_Best":
        all_rows = np.hstack([self.rows, rows])
        similar = np.hstack([self.similarities, similarities])
        order = np.lexsort((all_rows, -similar), axis=-1)[:, :k]
        every = np.arange(len(order))[:, None]
        return _Best(all_rows[every, order], similar[every, order], np.hstack([self.owners, owners])[every, order])
