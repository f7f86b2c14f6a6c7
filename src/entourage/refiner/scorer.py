"""The scorer: do the two ends of an edge belong to one class? A small network that needs nothing but numpy.

It reads the 22 relations of an edge (relations.py), passes them through two hidden layers of 32 and ends in a
probability. scorer_training.py teaches it.

N items, G nodes of a graph, k neighbours.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit

from entourage.errors import few
from entourage.refiner.gathering import silu
from entourage.refiner.graph import Graph
from entourage.refiner.relations import RELATIONS, Surroundings, relation_features, returned
from entourage.runtime.threads import blocks, in_threads
from entourage.values import FloatArray, IntArray, Neighbors, brief

__all__ = [
    "HIDDEN",
    "RETURNED",
    "MixedScorer",
    "RelationScorer",
    "Scorer",
    "edge_probabilities",
    "estimated_purity",
    "frozen_float32",
    "trust",
    "trust_of",
    "trust_of_queries",
]

HIDDEN = 32
_SIZES = (len(RELATIONS), HIDDEN, HIDDEN, 1)
_LAYERS = (0, 2, 4)  # their numbers in files, where activations are counted too

_EDGES_AT_ONCE = 4096  # their hidden layer stays in the cache
_NODES_AT_ONCE = 2**17  # from there on relations are computed in parts: all at once they take 1 GB a million nodes
_NEAREST = 8
RETURNED = 0.15  # how much a neighbour's view of the item counts
_MUTUAL = RELATIONS.index("mutual")


@dataclass(frozen=True, eq=False)
class RelationScorer:
    """A perceptron of the standardised relations: 22 - 32 - 32 - 1, SiLU between the layers."""

    centre: FloatArray
    """(22,) means of the relations, which are subtracted."""
    spread: FloatArray
    """(22,) their standard deviations, by which they are divided."""
    weights: tuple[FloatArray, ...]
    """The weights of each layer, (inputs, outputs)."""
    biases: tuple[FloatArray, ...]
    """The biases of each layer, (outputs,)."""

    __repr__ = brief

    def __post_init__(self) -> None:
        of_input = (self.centre, self.spread)
        for arrays, shapes in (
            (of_input, [_SIZES[:1]] * 2),
            (self.weights, list(pairwise(_SIZES))),
            (self.biases, [(size,) for size in _SIZES[1:]]),
        ):
            if [array.shape for array in arrays] != shapes:
                raise ValueError(f"arrays of a scorer have shapes {[array.shape for array in arrays]}; wanted {shapes}")
        if not (self.spread > 0).all():
            raise ValueError(f"spread of the scorer is {self.spread.min():g} at its least; wanted numbers above 0")
        for name in ("centre", "spread"):
            object.__setattr__(self, name, frozen_float32(getattr(self, name)))
        for name in ("weights", "biases"):
            object.__setattr__(self, name, tuple(map(frozen_float32, getattr(self, name))))

    @classmethod
    def from_arrays(cls, arrays: dict[str, FloatArray]) -> "RelationScorer":
        """A scorer from what `to_arrays` gives; a missing or unknown name is a ValueError."""
        names = {"centre", "spread", *(f"layers.{n}.{kind}" for n in _LAYERS for kind in ("weight", "bias"))}
        if arrays.keys() != names:
            differing = few(sorted(arrays.keys() ^ names), "names")
            raise ValueError(f"the arrays of a scorer are {', '.join(sorted(names))}; missing or unknown: {differing}")
        weights = tuple(arrays[f"layers.{n}.weight"].T for n in _LAYERS)
        return cls(arrays["centre"], arrays["spread"], weights, tuple(arrays[f"layers.{n}.bias"] for n in _LAYERS))

    def to_arrays(self) -> dict[str, FloatArray]:
        """Its arrays by the names they have in files, float32; weights as (outputs, inputs)."""
        arrays = {"centre": self.centre, "spread": self.spread}
        for n, weight, bias in zip(_LAYERS, self.weights, self.biases, strict=True):
            arrays |= {f"layers.{n}.weight": np.ascontiguousarray(weight.T), f"layers.{n}.bias": bias}
        return arrays

    @classmethod
    def of_similarity(cls) -> "RelationScorer":
        """The scorer that reads the similarity alone, p = sigmoid(similarity), and has learned nothing.

        Similarities are measured in standard deviations from the mean of the gallery's lists, so that with p^s for a
        weight this is query expansion by similarity: it grows as exp(s / 2 · similarity) around the mean. Two units
        carry a number through a layer unchanged, as silu(x) - silu(-x) = x.
        """
        weights = [np.zeros(shape, np.float32) for shape in pairwise(_SIZES)]
        weights[0][RELATIONS.index("similarity"), :2] = 1, -1
        weights[1][:2, :2] = (1, -1), (-1, 1)
        weights[2][:2, 0] = 1, -1
        biases = tuple(np.zeros(size, np.float32) for size in _SIZES[1:])
        return cls(np.zeros(_SIZES[0], np.float32), np.ones(_SIZES[0], np.float32), tuple(weights), biases)

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned: weights and biases."""
        return sum(array.size for array in (*self.weights, *self.biases))

    def probabilities(self, relations: FloatArray) -> FloatArray:
        """How likely both ends of each edge are of one class.

        Parameters
        ----------
        relations : ndarray of shape (..., 22)
            Features of edges, float32.

        Returns
        -------
        ndarray of shape (...)
            Probabilities, float32.
        """
        edges = relations.reshape(-1, relations.shape[-1])
        result = np.empty(len(edges), np.float32)

        @np.errstate(over="ignore", invalid="ignore")  # of a damaged model; whether vectors are finite is checked
        def score(rows: slice) -> None:
            x: FloatArray = edges[rows] - self.centre
            x /= self.spread
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                x = silu(x @ weight, bias)  # (n, 32)
            expit((x @ self.weights[-1])[:, 0] + self.biases[-1], out=result[rows])

        if len(edges) <= _EDGES_AT_ONCE:  # threads would take longer to start than to finish
            score(slice(0, len(edges)))
        else:
            for _ in in_threads(score, blocks(len(edges), _EDGES_AT_ONCE)):
                pass
        return result.reshape(relations.shape[:-1])


@dataclass(frozen=True, eq=False)
class MixedScorer:
    """Two scorers, of whose probabilities the mean is taken."""

    first: RelationScorer
    second: RelationScorer
    share: float
    """How much the first counts, from 0 to 1."""

    def probabilities(self, relations: FloatArray) -> FloatArray:
        """As RelationScorer.probabilities."""
        first, second = (scorer.probabilities(relations) for scorer in (self.first, self.second))
        return np.float32(self.share) * first + np.float32(1 - self.share) * second


Scorer = RelationScorer | MixedScorer


def estimated_purity(scorer: RelationScorer, graph: Graph, n_neighbors: int) -> float:
    """Estimate without labels the share of the 8 nearest neighbours that are of an item's class.

    Parameters
    ----------
    scorer : RelationScorer
    graph : Graph
    n_neighbors : int
        The length of the neighbour lists that the scorer is shown; longer lists of the graph are cut.

    Returns
    -------
    float
        From 0 to 1; 0 where no item has a neighbour.
    """
    chances = edge_probabilities(scorer, graph.with_neighbors(n_neighbors))[:, :_NEAREST]
    return float(chances.mean()) if chances.size else 0.0


def edge_probabilities(scorer: Scorer, graph: Graph) -> FloatArray:
    """How likely both ends of each edge of a graph are of one class, of shape (G, k)."""
    lists = graph.neighbors
    if len(lists) <= _NODES_AT_ONCE or not lists.k:
        return scorer.probabilities(graph.relations)
    surroundings = Surroundings.of(lists)
    chances = np.empty(lists.rows.shape, np.float32)
    for block in blocks(len(lists), _NODES_AT_ONCE // 4):
        found = Neighbors(lists.rows[block], lists.similarities[block])
        chances[block] = scorer.probabilities(relation_features(found, surroundings, np.r_[block]))
    return chances


def trust(scorer: Scorer, graph: Graph) -> FloatArray:
    """Compute how far each node relies on each neighbour, of shape (G, k).

    It is (1 - c) p_ij + c p_ji with c = 0.15, and p_ji = 0 if j does not list i.
    """
    rows = graph.neighbors.rows
    return trust_of(edge_probabilities(scorer, graph), rows, np.arange(len(rows)))


def trust_of(chances: FloatArray, rows: IntArray, nodes: IntArray) -> FloatArray:
    """Compute `trust` of the edges of some nodes (n,), of shape (n, k), from chances and rows of all, each (G, k)."""
    return (1 - RETURNED) * chances[nodes] + RETURNED * returned(chances, rows, nodes)


def trust_of_queries(scorer: Scorer, relations: FloatArray) -> FloatArray:
    """Compute how far each query relies on each neighbour, of shape (N, k), from relations (N, k, 22).

    As no node lists a query, p_ij stands for p_ji where j would list i; see `trust`.
    """
    return scorer.probabilities(relations) * (1 - RETURNED + RETURNED * relations[..., _MUTUAL])


def frozen_float32(array: FloatArray) -> FloatArray:
    """A read-only copy in float32; of fractions alone, as whole numbers were not learned."""
    if array.dtype.kind != "f":
        raise ValueError(f"an array of shape {array.shape} holds {array.dtype}; wanted float32")
    array = np.array(array, np.float32, order="C")
    array.flags.writeable = False
    return array
