"""The steps of refinement by partition, and shards of refined vectors.

The equations are those of runs/streamed/steps.py.

Each step reads the states that the one before has left, those of neighbours in other partitions among them.

N items, k neighbours, T steps, d dimensions.
"""

import uuid
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.engine.cluster import Cluster
from entourage.engine.edges import Edges, nodes_of
from entourage.engine.partitions import Shards
from entourage.engine.parts import Partitions
from entourage.refiner.context import blended
from entourage.refiner.gathering import gather_step
from entourage.runtime.progress import Progress
from entourage.runtime.threads import blocks
from entourage.stores.journal import to_disk
from entourage.stores.mapped import MappedVectors
from entourage.values import IntArray

__all__ = ["OUT", "take_steps", "write_shard", "write_shards"]

OUT = "out_{}.parquet"
"""What a shard of refined vectors is called in the folder of work."""
_ROWS = 2**12  # items at a time


def take_steps(
    cluster: Cluster, partitions: Partitions, edges: Edges, n_steps: int, blend: float, progress: Progress | None
) -> None:
    """Take all steps, and keep the refined vectors of each partition."""
    numbers = partitions.numbers
    if blend == 1:  # whatever the neighbours are
        n_steps = 0
    for step in range(1, n_steps + 1):
        for done, _ in enumerate(cluster.each(step_in_partition, numbers, partitions, edges, step), 1):
            if progress:
                progress("refining", (step - 1) * len(numbers) + done, n_steps * len(numbers))
        partitions.forget(f"state_{step - 2}", range(len(partitions.offsets)))
    for done, _ in enumerate(cluster.each(refine_partition, numbers, partitions, edges, n_steps, blend), 1):
        if progress:
            progress("blending", done, len(numbers))


def step_in_partition(number: int, partitions: Partitions, edges: Edges, step: int) -> dict[str, Any]:
    """z^t of the nodes of a partition: normalise(z_i + sum_j w_ij z_j), kept in the precision of the input."""

    def work() -> dict[str, Any]:
        vectors = partitions.vectors(number)
        state = np.zeros(vectors.shape, vectors.dtype)
        nodes = nodes_of(partitions, edges, number)
        lists, weights = _edges(partitions, edges, number)
        for block in blocks(len(nodes), _ROWS):
            some = nodes[block]
            attended, where = np.unique(lists[some], return_inverse=True)
            own = _z(partitions, partitions.offsets[number] + some, step - 1)
            context = _z(partitions, attended, step - 1)
            state[some] = gather_step(own, context, where.reshape(len(some), -1), weights[some])
        partitions.keep(f"state_{step}", number, state)
        return {}

    return partitions.once(f"stepped_{step}", number, work)


def refine_partition(number: int, partitions: Partitions, edges: Edges, step: int, blend: float) -> dict[str, Any]:
    """e of the items of a partition, after so many steps."""

    def work() -> dict[str, Any]:
        vectors = partitions.vectors(number)
        refined = np.empty(vectors.shape, vectors.dtype)
        for block in blocks(len(vectors), _ROWS):
            refined[block] = vectors[block] if not step else _refined(partitions, edges, number, block, step, blend)
        partitions.keep("refined", number, refined)
        return {}

    return partitions.once("refined", number, work)


def _refined(
    partitions: Partitions, edges: Edges, number: int, block: slice, step: int, blend: float
) -> NDArray[np.float32]:
    """e_i = normalise(y_i + c sum_j v_ij y_j),   y_i = normalise(b x_i + (1 - b) z_i)."""
    node = np.asarray(partitions.kept(edges.stands, number)[block])
    different, of_item = np.unique(node, return_inverse=True)
    pulls = partitions.at("pulls", different)[of_item]
    z = _z(partitions, different, step)[of_item]
    y = blended(partitions.vectors(number)[block], z, blend, out=z)
    if not pulls.any():
        return y
    lists = partitions.at(f"lists_{edges.lists}", different)[:, : edges.k][of_item]
    attended, where = np.unique(lists, return_inverse=True)
    z = _z(partitions, attended, step)
    among = blended(partitions.at("x", attended), z, blend, out=z)
    return gather_step(y, among, where.reshape(lists.shape), pulls)


def _edges(partitions: Partitions, edges: Edges, number: int) -> tuple[IntArray, NDArray[np.float32]]:
    lists = partitions.kept(f"lists_{edges.lists}", number)[:, : edges.k]
    return lists, partitions.kept("weights", number)


def _z(partitions: Partitions, places: IntArray, step: int) -> NDArray[np.float32]:
    """z^t (n, d) at some places."""
    if not step:
        return partitions.at("x", places)
    return partitions.at(f"state_{step}", places).astype(np.float32)


def write_shards(cluster: Cluster, partitions: Partitions, shards: Shards, progress: Progress | None) -> float:
    """Write all shards of refined vectors into the folder of work; the mean cosine of an item to what it was."""
    total = 0.0
    for done, (_, told) in enumerate(cluster.each(write_shard, range(len(shards)), partitions, shards), 1):
        total += told["cosines"]
        if progress:
            progress("writing", done, len(shards))
    return total / partitions.count


def write_shard(number: int, partitions: Partitions, shards: Shards) -> dict[str, Any]:
    """Bring the refined vectors of a shard together from all partitions, in its own order, and write its file."""

    def work() -> dict[str, Any]:
        file, (start, stop) = shards.files[number], shards.starts[number : number + 2]
        refined, seen = np.empty((stop - start, shards.dim), shards.kind), 0
        for partition in partitions.numbers:
            rows = partitions.kept("rows", partition)
            first, last = np.searchsorted(rows, [start, stop])
            refined[rows[first:last] - start] = partitions.kept("refined", partition)[first:last]
            seen += last - first
        if seen != len(refined):
            raise ValueError(f"shard {number} got {seen} refined vectors; wanted {len(refined)}")
        new = partitions.folder / f"{OUT.format(number)}.{uuid.uuid4().hex[:8]}.new"
        file.write_shard(new, refined)
        to_disk(new)
        new.replace(partitions.folder / OUT.format(number))
        return {"cosines": _cosines(file, refined)}

    return partitions.once("written", number, work)


def _cosines(file: Any, refined: NDArray[Any]) -> float:
    total, seen = 0.0, 0
    for _, vectors in file.batches():
        before = MappedVectors(np.ascontiguousarray(vectors))[:]
        total += float(np.einsum("nd,nd->", before, refined[seen : seen + len(before)], dtype=np.float64))
        seen += len(before)
    return total
