"""Near-identical items counted once, wherever they are: what neighbors/copies.py does, by partition.

Who stands for whom among copies is decided in one task, which holds those items alone that have a copy. The rest is
done partition by partition. N items, G distinct ones, k neighbours.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from entourage.engine.cluster import Cluster
from entourage.engine.edges import Edges
from entourage.engine.graph import Asked, search_all
from entourage.engine.parts import Partitions
from entourage.neighbors.copies import LOOK_AT, ROUNDS, SPARE, leaders, once_each
from entourage.refiner.graph import most_neighbors
from entourage.values import FloatArray, IntArray

__all__ = ["Distinct", "distinct_items", "graph_of"]


@dataclass(frozen=True)
class Distinct:
    """Who stands for whom."""

    stands: str
    """The array that says it: the place of the item that stands for each."""
    count: int
    """G."""
    copies: bool
    """Whether there are any."""


def distinct_items(
    cluster: Cluster, partitions: Partitions, graph: str, looked_up: int, similarity: float, searched: int
) -> Distinct:
    """Choose one item of each group of copies, from the lists of all (see `neighbors.copies.distinct_items`).

    Parameters
    ----------
    cluster : Cluster
    partitions : Partitions
        Searched as "all".
    graph : str
        What is kept is called so.
    looked_up : int
        How many neighbours of each item are looked at.
    similarity : float
        From which similarity on items are copies.
    searched : int
        How many partitions are searched again where lists end in copies.

    Returns
    -------
    Distinct
    """
    numbers, turn, copied = partitions.numbers, _Turn(graph, 0, "all", "", looked_up, similarity), False
    while True:
        told = cluster.each(note_copies, numbers, partitions, turn)
        with_copies = sorted(number for number, each in told if each["items"])
        copied = copied or bool(with_copies)
        touched = next(
            told["partitions"] for _, told in cluster.each(choose_leaders, [0], partitions, turn, with_copies)
        )
        settled = [each for _, each in cluster.each(settle, numbers, partitions, turn, touched)]
        count = sum(each["nodes"] for each in settled)
        if count < 2 or not any(each["again"] for each in settled) or turn.number + 1 == ROUNDS:
            return Distinct(turn.named("stands"), count, copied)
        lists, k = f"{graph}_{turn.number}", min(LOOK_AT, count - 1)
        search_all(cluster, partitions, Asked(lists, k, searched, turn.named("again"), turn.named("stands")))
        turn = replace(turn, number=turn.number + 1, lists=lists, some=turn.named("again"))


@dataclass(frozen=True)
class _Turn:
    """One look for copies: at all lists, and then at those that ended in copies, searched again among who is left."""

    graph: str
    number: int
    lists: str
    """The lists that are looked at."""
    some: str
    """The array of positions whose lists they are; "": all."""
    looked_up: int
    similarity: float

    def named(self, what: str, before: int = 0) -> str:
        return f"{what}_{self.graph}_{self.number - before}"

    def similar(self, partitions: Partitions, number: int) -> FloatArray:
        return np.asarray(partitions.kept(f"similar_{self.lists}", number)[:, : self.looked_up])

    def positions(self, partitions: Partitions, number: int) -> IntArray:
        if not self.some:
            return np.arange(partitions.size(number))
        return np.asarray(partitions.kept(self.some, number))


def note_copies(number: int, partitions: Partitions, turn: _Turn) -> dict[str, Any]:
    """Write down which items of a partition have copies in their lists, and which: places, -1 for who is none."""

    def work() -> dict[str, Any]:
        copy = turn.similar(partitions, number) >= turn.similarity
        items = np.flatnonzero(copy.any(axis=1))
        found = partitions.kept(f"found_{turn.lists}", number)[items][:, : turn.looked_up]
        own = partitions.offsets[number] + turn.positions(partitions, number)[items]
        partitions.keep(turn.named("copying"), number, own)
        partitions.keep(turn.named("copied"), number, np.where(copy[items], found, -1))
        return {"items": len(items)}

    return partitions.once(turn.named("noted"), number, work)


def choose_leaders(number: int, partitions: Partitions, turn: _Turn, numbers: list[int]) -> dict[str, Any]:
    """Decide who stands for whom among those that have copies; kept as (2, n) positions and places, by partition."""

    def work() -> dict[str, Any]:
        if not numbers:
            return {"partitions": []}
        items = np.concatenate([partitions.kept(turn.named("copying"), each) for each in numbers])
        found = np.concatenate([partitions.kept(turn.named("copied"), each) for each in numbers])
        copy = found >= 0
        concerned = np.unique(np.concatenate([items, found[copy]]))
        neighbors = np.zeros((len(concerned), found.shape[1]), np.int64)
        is_copy = np.zeros(neighbors.shape, bool)
        own = np.searchsorted(concerned, items)
        neighbors[own], is_copy[own] = np.where(copy, np.searchsorted(concerned, found), 0), copy
        rank = np.argsort(np.argsort(partitions.at("rows", concerned)))
        stands = concerned[leaders(neighbors, is_copy, rank)]
        owners = np.searchsorted(partitions.offsets, concerned, side="right") - 1
        for owner in np.unique(owners):
            some = owners == owner
            pairs = np.stack([concerned[some] - partitions.offsets[owner], stands[some]])
            partitions.keep(turn.named("led"), int(owner), pairs)
        return {"partitions": np.unique(owners).tolist()}

    return partitions.once(turn.named("chosen"), number, work)


def settle(number: int, partitions: Partitions, turn: _Turn, touched: list[int]) -> dict[str, Any]:
    """Write down who stands for each item of a partition now, and whose list ended in a copy."""

    def work() -> dict[str, Any]:
        places = partitions.places(number)
        stands = np.array(partitions.kept(turn.named("stands", 1), number)) if turn.number else places.copy()
        owners = np.searchsorted(partitions.offsets, stands, side="right") - 1
        for owner in np.intersect1d(owners, touched):
            positions, by = partitions.kept(turn.named("led"), int(owner))
            here = np.flatnonzero(owners == owner)
            asked = stands[here] - partitions.offsets[owner]
            where = np.minimum(np.searchsorted(positions, asked), len(positions) - 1)
            known = positions[where] == asked
            stands[here[known]] = by[where[known]]
        again = turn.positions(partitions, number)[turn.similar(partitions, number)[:, -1] >= turn.similarity]
        again = again[stands[again] == places[again]]
        partitions.keep(turn.named("stands"), number, stands)
        partitions.keep(turn.named("again"), number, again)
        return {"nodes": int((stands == places).sum()), "again": len(again)}

    return partitions.once(turn.named("settled"), number, work)


def graph_of(
    cluster: Cluster, partitions: Partitions, graph: str, n_neighbors: int, similarity: float, searched: int
) -> Edges:
    """The graph of the distinct items, of the lists of all (see `neighbors.copies.distinct_neighbors`).

    Parameters
    ----------
    cluster, partitions, graph, similarity, searched
        As in `distinct_items`.
    n_neighbors : int
        As in `refiner.graph.build_graph`.

    Returns
    -------
    Edges
        Kept as lists_GRAPH and similarities_GRAPH.
    """
    first = min(n_neighbors, most_neighbors(partitions.count))
    looked_up = min(first + SPARE, partitions.count - 1)
    distinct = distinct_items(cluster, partitions, graph, looked_up, similarity, searched)
    k = min(first, distinct.count - 1)
    drafts = cluster.each(draft_lists, partitions.numbers, partitions, distinct, graph, looked_up, k)
    short = sum(each["short"] for _, each in drafts)
    if short:
        search_all(cluster, partitions, Asked(f"short_{graph}", k, searched, f"short_{graph}", distinct.stands))
    k = min(k, most_neighbors(distinct.count))
    for _, _told in cluster.each(finish_lists, partitions.numbers, partitions, graph, k, bool(short)):
        pass
    return Edges(graph, distinct.stands, k, distinct.count)


def draft_lists(
    number: int, partitions: Partitions, distinct: Distinct, name: str, looked_up: int, k: int
) -> dict[str, Any]:
    """Lists (n, k) of a partition in which nobody comes twice; and who has to be searched for again."""

    def work() -> dict[str, Any]:
        found = np.array(partitions.kept("found_all", number)[:, :looked_up])
        similar = np.array(partitions.kept("similar_all", number)[:, :looked_up])
        short: IntArray = np.empty(0, np.int64)
        if distinct.copies and k:
            places = partitions.places(number)
            nodes = np.flatnonzero(np.asarray(partitions.kept(distinct.stands, number)) == places)
            if len(nodes):
                last = similar[nodes, -1]
                found[nodes], similar[nodes] = _represented(partitions, distinct.stands, nodes, found, similar, number)
                short = nodes[similar[nodes, k - 1] < last]
        partitions.keep(f"draft_{name}", number, found[:, :k])
        partitions.keep(f"drafted_{name}", number, similar[:, :k])
        partitions.keep(f"short_{name}", number, short)
        return {"short": len(short)}

    return partitions.once(f"listed_{name}", number, work)


def _represented(
    partitions: Partitions, stands: str, nodes: IntArray, found: IntArray, similar: FloatArray, number: int
) -> tuple[IntArray, FloatArray]:
    """Lists (G, m) of nodes in which each neighbour is one that stands for others, once, as similar as it is itself."""
    before, similarities = found[nodes], similar[nodes]
    attended, where = np.unique(before, return_inverse=True)
    neighbors = partitions.at(stands, attended)[where].reshape(before.shape)
    item, column = np.nonzero(neighbors != before)
    if len(item):
        ours = partitions.vectors(number)[nodes[item]]
        theirs = partitions.at("x", neighbors[item, column])
        similarities[item, column] = np.einsum("nd,nd->n", ours, theirs, dtype=np.float64)
    others, where = np.unique(neighbors, return_inverse=True)
    rows = partitions.at("rows", others)[where].reshape(neighbors.shape)
    own = np.asarray(partitions.kept("rows", number))[nodes]
    order, similarities = once_each(rows, similarities, own)
    return np.take_along_axis(neighbors, order, axis=1), similarities


def finish_lists(number: int, partitions: Partitions, name: str, k: int, searched_again: bool) -> dict[str, Any]:
    """Lists (n, k) of a partition, with those that were searched for again."""

    def work() -> dict[str, Any]:
        found, similar = (np.array(partitions.kept(f"{kind}_{name}", number)) for kind in ("draft", "drafted"))
        short = np.asarray(partitions.kept(f"short_{name}", number))
        if searched_again and len(short):
            found[short] = partitions.kept(f"found_short_{name}", number)
            similar[short] = partitions.kept(f"similar_short_{name}", number)
        partitions.keep(f"lists_{name}", number, found[:, :k])
        partitions.keep(f"similarities_{name}", number, similar[:, :k])
        return {}

    return partitions.once(f"finished_{name}", number, work)
