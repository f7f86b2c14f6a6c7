"""Shards of vectors into partitions of similar ones.

A shard is a file of the input; partitions are the cells of a k-means of a sample. Equal vectors are in one partition,
and most neighbours in the same one or the next.

N items of d dimensions in P partitions.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from entourage.engine.cluster import Cluster
from entourage.engine.parts import Partitions, Parts
from entourage.evaluation.clustering import kmeans
from entourage.refiner.gathering import normalise
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.runtime.threads import blocks
from entourage.stores.databases.parquet_folder import ParquetStore
from entourage.stores.mapped import MappedVectors
from entourage.values import FloatArray, IntArray, unit_factors

__all__ = ["Shards", "partitioned", "partitions_wanted"]

SIZE = 2**16
"""Items of a partition, on average: 100 MB in float32 of 384 dimensions."""
_SAMPLED = 64  # items for each partition that its centre is found by
_MOST_SAMPLED = 2**18
_ROWS = 2**12


class Shards:
    """The files of an input, and what is to be done as they are read.

    Parameters
    ----------
    store : ParquetStore
        The folder.
    base_map : array of shape (d, d), optional
        The map of the model.
    """

    def __init__(self, store: ParquetStore, base_map: FloatArray | None = None) -> None:
        self.files = store.shards()
        self.starts: IntArray = np.cumsum([0, *map(len, self.files)])
        self.dim, self.base_map = store.dim, base_map
        first = next(vectors for _, vectors in store.batches(1))
        self.kind: DTypeLike = np.dtype(np.float16) if first.dtype == np.float16 else np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self.files)


def partitions_wanted(count: int) -> int:
    """How many partitions so many items are cut into.

    >>> partitions_wanted(5000), partitions_wanted(10**9)
    (4, 15259)
    """
    return max(4, -(-count // SIZE)) if count >= 16 else 1


def partitioned(
    cluster: Cluster, parts: Parts, shards: Shards, wanted: int, progress: Progress | None
) -> tuple[Partitions, dict[str, Any]]:
    """Read the shards, and sort their items into partitions.

    Parameters
    ----------
    cluster : Cluster
    parts : Parts
        Where everything is kept.
    shards : Shards
    wanted : int
        P.
    progress : Progress, optional

    Returns
    -------
    partitions : Partitions
    means : dict
        "input" and "mapped": the mean (d,) of the vectors as they came, and through the base map.
    """
    count, numbers = int(shards.starts[-1]), [n for n in range(len(shards)) if len(shards.files[n])]
    sums = {"input": np.zeros(shards.dim), "mapped": np.zeros(shards.dim)}
    sampled = min(_SAMPLED * wanted, _MOST_SAMPLED, count) / count
    for done, (_, told) in enumerate(cluster.each(read_shard, numbers, parts, shards, sampled), 1):
        for name, total in sums.items():
            total += told[name]
        if progress:
            progress("reading", done, len(numbers))
    for _, _told in cluster.each(find_centres, [0], parts, numbers, wanted):
        pass
    sizes = np.zeros(wanted, np.int64)
    for done, (_, told) in enumerate(cluster.each(split_shard, numbers, parts), 1):
        sizes += told["sizes"]
        if progress:
            progress("assigning to partitions", done, len(numbers))
    partitions = Partitions(parts.folder, np.cumsum([0, *sizes]))
    for done, _ in enumerate(cluster.each(gather_partition, partitions.numbers, partitions, numbers, shards.starts), 1):
        if progress:
            progress("gathering partitions", done, len(partitions.numbers))
    for name in ("shard", "sample", "order", "bounds"):
        parts.forget(name, range(len(shards)))
    return partitions, {name: (total / count).tolist() for name, total in sums.items()}


def read_shard(number: int, parts: Parts, shards: Shards, sampled: float) -> dict[str, Any]:
    """Copy the vectors of a shard, through the base map if there is one, and draw its share of the sample."""

    def work() -> dict[str, Any]:
        file = shards.files[number]
        raw = np.empty((len(file), shards.dim), shards.kind)
        seen = 0
        for _, vectors in file.batches():
            raw[seen : seen + len(vectors)] = vectors
            seen += len(vectors)
        with file.named():
            found = MappedVectors(raw)
        total = _sum(found)
        if shards.base_map is not None:
            for rows in blocks(len(raw), _ROWS):
                raw[rows] = normalise(found[rows] @ shards.base_map)
            found = MappedVectors(raw)
        wanted = min(len(raw), max(1, round(sampled * len(raw))))
        drawn = np.sort(generator(0, number).choice(len(raw), wanted, replace=False))
        parts.keep("shard", number, raw)
        parts.keep("sample", number, found[drawn])
        return {"input": total.tolist(), "mapped": _sum(found).tolist()}

    return parts.once("read", number, work)


def find_centres(number: int, parts: Parts, shards: list[int], wanted: int) -> dict[str, Any]:
    """The centres (P, d) of a k-means of the sample; each the mean of its cluster."""

    def work() -> dict[str, Any]:
        sample = np.concatenate([parts.kept("sample", shard) for shard in shards])
        draw = generator(1).permutation(len(sample))[:_MOST_SAMPLED]
        sample = sample[np.sort(draw)]
        clusters = kmeans(sample, min(wanted, len(sample)))
        centres = np.zeros((wanted, sample.shape[1]), np.float32)
        np.add.at(centres, clusters, sample)
        sizes = np.bincount(clusters, minlength=wanted)
        parts.keep("centres", 0, centres / np.maximum(sizes, 1)[:, None])
        return {"centres": int((sizes > 0).sum())}

    return parts.once("centred", number, work)


def split_shard(number: int, parts: Parts) -> dict[str, Any]:
    """Find the partition of each item of a shard, and put them in order of it."""

    def work() -> dict[str, Any]:
        vectors, centres = MappedVectors(parts.kept("shard", number)), np.asarray(parts.kept("centres", 0))
        half = (centres**2).sum(axis=1) / 2
        half[~centres.any(axis=1)] = np.inf  # of clusters that stayed empty
        owners = np.empty(len(vectors), np.int64)
        for rows in blocks(len(vectors), _ROWS):
            owners[rows] = (vectors[rows] @ centres.T - half).argmax(axis=1)
        parts.keep("order", number, np.argsort(owners, kind="stable"))
        sizes = np.bincount(owners, minlength=len(centres))
        parts.keep("bounds", number, np.cumsum([0, *sizes]))
        return {"sizes": sizes.tolist()}

    return parts.once("split", number, work)


def gather_partition(number: int, partitions: Partitions, shards: list[int], starts: IntArray) -> dict[str, Any]:
    """Bring the items of a partition together from all shards, in order of the rows they came from."""

    def work() -> dict[str, Any]:
        vectors: NDArray[Any] | None = None
        rows, seen = np.empty(partitions.size(number), np.int64), 0
        for shard in shards:
            first, last = partitions.kept("bounds", shard)[number : number + 2]
            if first == last:
                continue
            positions = np.asarray(partitions.kept("order", shard)[first:last])
            some = partitions.kept("shard", shard)[positions]
            if vectors is None:
                vectors = np.empty((len(rows), some.shape[1]), some.dtype)
            vectors[seen : seen + len(some)], rows[seen : seen + len(some)] = some, starts[shard] + positions
            seen += len(some)
        if vectors is None or seen != len(rows):
            raise ValueError(f"partition {number} has {seen} items; wanted {len(rows)}")
        partitions.keep("factors", number, unit_factors(vectors))
        partitions.keep("vectors", number, vectors)
        partitions.keep("rows", number, rows)
        return {}

    return partitions.once("gathered", number, work)


def _sum(vectors: MappedVectors) -> FloatArray:
    total = np.zeros(vectors.shape[1])
    for rows in blocks(len(vectors), _ROWS):
        total += vectors[rows].sum(axis=0, dtype=np.float64)
    return total
