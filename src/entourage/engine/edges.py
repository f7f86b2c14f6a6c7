"""How items sit in the graph, and the weights that follow, partition by partition.

The features of an edge depend on both its ends and on their lists, so that each block of nodes is weighed with its
halo: the neighbours that lie elsewhere, and what is known of them. What depends on all items is summed up first.

G distinct items (nodes), k neighbours.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.engine.cluster import Cluster
from entourage.engine.parts import Partitions
from entourage.refiner.context import pulls_of
from entourage.refiner.network import Manner
from entourage.refiner.relations import Surroundings, mean_overlaps, relation_features, usual
from entourage.refiner.scorer import Scorer, trust_of
from entourage.refiner.settings import PURITY_OF
from entourage.runtime.threads import blocks
from entourage.values import FloatArray, IntArray, Neighbors

__all__ = ["Edges", "Judged", "judged", "weigh"]

_ROWS = 2**13  # nodes at a time
_ABOUT = ("first", "last", "density", "mean_overlap", "popularity")


@dataclass(frozen=True)
class Edges:
    """The first k of the lists of each node."""

    lists: str
    """What the lists are called."""
    stands: str
    """The array of who stands for whom: nodes stand for themselves."""
    k: int
    count: int
    """G."""

    @property
    def name(self) -> str:
        """What is kept of them is called so."""
        return f"{self.lists}_{self.k}"


@dataclass(frozen=True)
class Judged:
    """What a scorer thinks of the edges."""

    purity: float
    """The mean chance that one of the nearest is of the item's class."""
    same_class: float
    """How many neighbours are expected to be of the item's class."""


def judged(cluster: Cluster, partitions: Partitions, edges: Edges, scorer: Scorer, name: str) -> Judged:
    """Let a scorer judge all edges; what it finds is kept as chances_NAME."""
    numbers = partitions.numbers
    total = np.zeros(2)
    listed_by: dict[int, list[Any]] = {number: [] for number in numbers}
    for number, told in cluster.each(survey, numbers, partitions, edges):
        total += told["sum"], told["squares"]
        for other in told["listed"]:
            listed_by[other].append(number)
    mean, square = total / (edges.count * edges.k)
    centre, spread = usual(mean, float(np.sqrt(max(square - mean**2, 0.0))))
    for _, _told in cluster.each(describe_nodes, numbers, partitions, edges, listed_by, centre, spread):
        pass
    nearest, same = 0.0, 0.0
    for _, told in cluster.each(judge_edges, numbers, partitions, edges, centre, spread, scorer, name):
        nearest, same = nearest + told["nearest"], same + told["same"]
    return Judged(nearest / (edges.count * min(edges.k, PURITY_OF)), same / edges.count)


def weigh(cluster: Cluster, partitions: Partitions, edges: Edges, manner: Manner, name: str) -> None:
    """Weigh all edges by chances_NAME; kept as weights and pulls."""
    for _, _told in cluster.each(weigh_edges, partitions.numbers, partitions, edges, manner, name):
        pass


def survey(number: int, partitions: Partitions, edges: Edges) -> dict[str, Any]:
    """Sum up the similarities of a partition, and count how often its nodes list whom."""

    def work() -> dict[str, Any]:
        nodes = nodes_of(partitions, edges, number)
        found, similar = _lists(partitions, edges, number, nodes)
        similar = similar.astype(np.float64)
        places, counts = np.unique(found, return_counts=True)
        partitions.keep(f"listing_{edges.name}", number, np.stack([places, counts]))
        listed = np.unique(np.searchsorted(partitions.offsets, places, side="right") - 1)
        return {"sum": float(similar.sum()), "squares": float((similar**2).sum()), "listed": listed.tolist()}

    return partitions.once(f"surveyed_{edges.name}", number, work)


def describe_nodes(
    number: int, partitions: Partitions, edges: Edges, listed_by: dict[int, list[int]], centre: float, spread: float
) -> dict[str, Any]:
    """What edges to the nodes of a partition need to know of them, (n, 5): see `Surroundings`."""

    def work() -> dict[str, Any]:
        about = np.zeros((partitions.size(number), len(_ABOUT)), np.float32)
        nodes = nodes_of(partitions, edges, number)
        listed = _times_listed(partitions, edges, number, listed_by[number])
        for block in blocks(len(nodes), _ROWS):
            some, halo = nodes[block], _Halo.of(partitions, edges, number, nodes[block])
            z = (halo.own.similarities - centre) / spread
            overlap = mean_overlaps(halo.own, halo.lists, halo.positions)
            popularity = np.log1p(listed[some] / edges.k)
            about[some] = np.stack([z[:, 0], z[:, -1], z.mean(axis=1), overlap, popularity], axis=1)
        partitions.keep(f"about_{edges.name}", number, about)
        return {}

    return partitions.once(f"described_{edges.name}", number, work)


def judge_edges(
    number: int, partitions: Partitions, edges: Edges, centre: float, spread: float, scorer: Scorer, name: str
) -> dict[str, Any]:
    """The chance (n, k) that both ends of each edge of a partition are of one class."""

    def work() -> dict[str, Any]:
        chances = np.zeros((partitions.size(number), edges.k), np.float32)
        nodes = nodes_of(partitions, edges, number)
        for block in blocks(len(nodes), _ROWS):
            halo = _Halo.of(partitions, edges, number, nodes[block])
            surroundings = halo.surroundings(partitions, edges, centre, spread)
            features = relation_features(halo.own, surroundings, halo.positions)
            chances[nodes[block]] = scorer.probabilities(features)
        partitions.keep(f"chances_{name}", number, chances)
        sums = chances.astype(np.float64)  # of others than nodes all is 0
        return {"nearest": float(sums[:, :PURITY_OF].sum()), "same": float(sums.sum())}

    return partitions.once(f"judged_{name}", number, work)


def weigh_edges(number: int, partitions: Partitions, edges: Edges, manner: Manner, name: str) -> dict[str, Any]:
    """The weight and the pull (n, k) of each edge of a partition."""

    def work() -> dict[str, Any]:
        weights = np.zeros((partitions.size(number), edges.k), np.float32)
        pulls = np.zeros_like(weights)
        nodes = nodes_of(partitions, edges, number)
        for block in blocks(len(nodes), _ROWS):
            some, halo = nodes[block], _Halo.of(partitions, edges, number, nodes[block])
            chances = partitions.at(f"chances_{name}", halo.places)
            trusted = trust_of(chances, halo.lists.rows[:-1], halo.positions)
            weights[some] = trusted**manner.sharpness
            pulls[some] = np.float32(manner.pull) * pulls_of(trusted, halo.own)
        partitions.keep("weights", number, weights)
        partitions.keep("pulls", number, pulls)
        return {}

    return partitions.once("weighed", number, work)


def nodes_of(partitions: Partitions, edges: Edges, number: int) -> IntArray:
    """The positions of those in a partition that stand for themselves."""
    return np.flatnonzero(np.asarray(partitions.kept(edges.stands, number)) == partitions.places(number))


def _lists(partitions: Partitions, edges: Edges, number: int, nodes: IntArray) -> tuple[IntArray, FloatArray]:
    found = partitions.kept(f"lists_{edges.lists}", number)[nodes][:, : edges.k]
    return found, partitions.kept(f"similarities_{edges.lists}", number)[nodes][:, : edges.k]


def _times_listed(partitions: Partitions, edges: Edges, number: int, others: list[int]) -> IntArray:
    """In how many lists of other partitions, and its own, each item of a partition stands, (n,)."""
    first, last = partitions.offsets[number : number + 2]
    listed = np.zeros(last - first, np.int64)
    for other in others:
        places, counts = partitions.kept(f"listing_{edges.name}", other)
        start, stop = np.searchsorted(places, [first, last])
        listed[places[start:stop] - first] += counts[start:stop]
    return listed


@dataclass(frozen=True, eq=False)
class _Halo:
    """Some nodes and all their neighbours, n places in order, with the lists of each among them."""

    places: IntArray
    """(n,)"""
    positions: IntArray
    """Where among them the nodes are."""
    own: Neighbors
    """The lists of the nodes, as positions among the places."""
    lists: Neighbors
    """(n + 1, k) the lists of all; whoever is not among the places is at position n, who lists nobody."""

    @classmethod
    def of(cls, partitions: Partitions, edges: Edges, number: int, nodes: IntArray) -> "_Halo":
        found, similar = _lists(partitions, edges, number, nodes)
        own = partitions.offsets[number] + nodes
        places = np.unique(np.concatenate([own, found.ravel()]))
        theirs = partitions.at(f"lists_{edges.lists}", places)[:, : edges.k]
        where = np.minimum(np.searchsorted(places, theirs), len(places) - 1)
        where = np.where(places[where] == theirs, where, len(places))
        similarities = partitions.at(f"similarities_{edges.lists}", places)[:, : edges.k]
        nobody = np.full((1, edges.k), len(places)), np.full((1, edges.k), -1, np.float32)
        return cls(
            places,
            np.searchsorted(places, own),
            Neighbors(np.searchsorted(places, found), similar),
            Neighbors(np.vstack([where, nobody[0]]), np.vstack([similarities, nobody[1]])),
        )

    def surroundings(self, partitions: Partitions, edges: Edges, centre: float, spread: float) -> Surroundings:
        about = np.vstack([partitions.at(f"about_{edges.name}", self.places), np.zeros((1, len(_ABOUT)), np.float32)])
        known = dict(zip(_ABOUT, about.T, strict=True))
        return Surroundings(self.lists, centre, spread, **known, count=edges.count)
