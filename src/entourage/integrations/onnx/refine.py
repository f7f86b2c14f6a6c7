"""refine(vector, context, mask) as a graph of ONNX: what `entourage.rerank` computes, for services in other languages.

The query and what an index returned for it are a small gallery of their own, and are refined in it; see
refiner/rerank.py, refiner/small_graph.py and refiner/relations.py, whose equations these are with dense matrices.

C candidates, n of query and those that are not masked, G distinct ones of them, k neighbours, d dimensions.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from entourage.integrations.onnx.nodes import Nodes, Value
from entourage.neighbors.copies import COPY, ROUNDING
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.relations import PARTS, SAME_PAIR, VOTERS
from entourage.refiner.rerank import BLEND, N_NEIGHBORS, N_STEPS, RAW_SHARE, RAW_SHARE_OF_FIRST, SHARPNESS
from entourage.refiner.scorer import RETURNED, RelationScorer

__all__ = ["refine_graph", "scorer_graph"]

_FLOAT, _DOUBLE, _WHOLE = np.float32, np.float64, np.int64
_TINY = 1e-12
_JUST_BELOW = 1e-7  # of a float32 near 1: what comes after the first has a lower score


def scorer_graph(scorer: RelationScorer, n_relations: int) -> Any:
    """The scorer alone: relations (edges, 22) in, probabilities (edges,) out; an onnx.GraphProto."""
    nodes = Nodes()
    nodes.rename(_probabilities(nodes, scorer, "relations"), "probabilities")
    inputs = {"relations": (_FLOAT, ["edges", n_relations])}
    return nodes.graph("scorer", inputs, {"probabilities": (_FLOAT, ["edges"])})


def refine_graph(network: RelationalNetwork, dim: int | None) -> Any:
    """The graph of `refine`.

    Parameters
    ----------
    network : RelationalNetwork
        Its base map and its scorer are written into the graph.
    dim : int, optional
        d; None: of any size, without a base map.

    Returns
    -------
    onnx.GraphProto
        Inputs `vector` (d,), `context` (C, d) and `mask` (C,); outputs `refined` (d,), `refined_context` (C, d), zero
        where masked, and `scores` (C,), -2 where masked.
    """
    nodes = Nodes()
    size = "d" if dim is None else dim
    kept = nodes.Compress("context", "mask", axis=0)
    x = _unit(nodes, nodes.Concat(nodes.Unsqueeze("vector", _axes(0)), kept, axis=0))  # (n, d)
    if network.base_map is not None:
        x = _unit(nodes, nodes.MatMul(x, network.base_map))
    refined = x if network.blend == 1 else _refined(nodes, network.scorer, x)
    place = nodes.Where("mask", nodes.CumSum(nodes.cast("mask", _WHOLE), 0), 0)  # the query for those that are masked
    shown = nodes.Gather(refined, place, axis=0)
    nodes.rename(nodes.Gather(refined, 0, axis=0), "refined")
    nodes.rename(nodes.Where(nodes.Unsqueeze("mask", _axes(1)), shown, 0.0), "refined_context")
    nodes.rename(nodes.Where("mask", nodes.Gather(_scores(nodes, x, refined), place, axis=0), -2.0), "scores")
    vectors = (_FLOAT, ["candidates", size])
    inputs = {"vector": (_FLOAT, [size]), "context": vectors, "mask": (np.bool_, ["candidates"])}
    outputs = {"refined": (_FLOAT, [size]), "refined_context": vectors, "scores": (_FLOAT, ["candidates"])}
    return nodes.graph("refine", inputs, outputs)


# ---- the graph of query and candidates ---------------------------------------------------------------------------


class _Lists(NamedTuple):
    """The nearest nodes of each node, all names of values."""

    rows: str
    """(G, k) nodes, nearest first."""
    similarities: str
    """(G, k)"""
    ranks: str
    """(G, G) at which rank a node stands in the list of another; -1: it does not."""
    k: str
    """() how many there are."""
    size: str
    """() G."""


def _refined(nodes: Nodes, scorer: RelationScorer, x: str) -> str:
    """(n, d) refined vectors of x (n, d)."""
    double = nodes.cast(x, _DOUBLE)
    similarities = nodes.cast(nodes.MatMul(double, nodes.Transpose(double, perm=[1, 0])), _FLOAT)  # (n, n)
    stand_in = _stand_ins(nodes, similarities, _copy_similarity(nodes, double))
    everyone = _range(nodes, nodes.Shape(x, end=1))
    is_node = nodes.Equal(stand_in, everyone)
    node = nodes.Gather(nodes.Sub(nodes.CumSum(nodes.cast(is_node, _WHOLE), 0), 1), stand_in)  # (n,)
    distinct = nodes.Compress(x, is_node, axis=0)  # (G, d)
    among = nodes.Compress(nodes.Compress(similarities, is_node, axis=0), is_node, axis=1)  # (G, G)
    lists = _nearest(nodes, among, nodes.Shape(distinct, end=1))
    chances = _probabilities(nodes, scorer, _relations(nodes, lists))  # (G, k)
    back = nodes.GatherElements(nodes.Transpose(_dense(nodes, chances, lists), perm=[1, 0]), lists.rows, axis=1)
    trust = nodes.Add(nodes.Mul(chances, 1 - RETURNED), nodes.Mul(back, RETURNED))
    weights = _dense(nodes, nodes.Pow(trust, SHARPNESS), lists)  # (G, G)
    z = distinct
    for _ in range(N_STEPS):
        z = _unit(nodes, nodes.Add(z, nodes.MatMul(weights, z)))
    blended = nodes.Add(nodes.Mul(x, BLEND), nodes.Mul(nodes.Gather(z, node, axis=0), 1 - BLEND))
    return nodes.Where(nodes.Less(lists.size, 2), x, _unit(nodes, blended))  # one node has nobody to attend to


def _copy_similarity(nodes: Nodes, x: str) -> str:
    """() from which similarity on items are copies; x (n, d) in float64."""
    mean = nodes.ReduceMean(x, _axes(0), keepdims=0)
    usual = nodes.Max(nodes.Sub(_exact(1), nodes.ReduceSumSquare(mean, _axes(0), keepdims=0)), _exact(ROUNDING))
    power = nodes.Div(nodes.Round(nodes.Mul(_log2(nodes, usual), _exact(8))), _exact(8))
    share = nodes.Mul(nodes.Pow(_exact(2), power), _exact(COPY))
    return nodes.cast(nodes.Sub(_exact(1), nodes.Max(share, _exact(ROUNDING))), _FLOAT)


def _stand_ins(nodes: Nodes, similarities: str, from_here_on: str) -> str:
    """(n,) of each item the first that is similar enough to stand for it and stands for itself; one after another."""
    copy = nodes.GreaterOrEqual(similarities, from_here_on)
    everyone = _range(nodes, nodes.Shape(similarities, end=1))
    body = Nodes("loop_")
    own = body.Gather(copy, "item", axis=0)  # values from outside may be named
    earlier = body.And(body.Less(everyone, "item"), body.Equal("stands", everyone))
    able = body.cast(body.And(own, earlier), _WHOLE)
    leader = body.Where(
        body.cast(body.ReduceMax(able, keepdims=0), np.bool_), body.ArgMax(able, axis=0, keepdims=0), "item"
    )
    body.rename(body.Where(body.Equal(everyone, "item"), leader, "stands"), "stands_now")
    body.rename("going", "going_on")
    item: tuple[Any, list[int]] = (_WHOLE, [])
    going: tuple[Any, list[int]] = (np.bool_, [])
    lists = (_WHOLE, None)
    inner = body.graph(
        "stand_ins",
        {"item": item, "going": going, "stands": lists},
        {"going_on": going, "stands_now": lists},
    )
    count = nodes.Squeeze(nodes.Shape(similarities, end=1))
    return nodes.add("Loop", count, True, everyone, body=inner)[0]


def _nearest(nodes: Nodes, similarities: str, count: str) -> _Lists:
    """The lists of each of G nodes by their similarities (G, G); count (1,) is G."""
    everyone = _range(nodes, count)
    itself = nodes.Equal(nodes.Unsqueeze(everyone, _axes(1)), nodes.Unsqueeze(everyone, _axes(0)))
    k = nodes.Max(
        nodes.Min(nodes.Min(nodes.Div(count, np.array([4])), np.array([N_NEIGHBORS])), nodes.Sub(count, 1)),
        np.array([1]),
    )
    others = nodes.Where(itself, float("-inf"), similarities)
    found, rows = nodes.add("TopK", others, k, count=2, axis=1)
    absent = nodes.Expand(-1, nodes.Shape(similarities))
    place = nodes.Expand(_range(nodes, k), nodes.Shape(rows))
    ranks = nodes.ScatterElements(absent, rows, place, axis=1)
    return _Lists(rows, found, ranks, nodes.Squeeze(k), nodes.Squeeze(count))


# ---- relations ---------------------------------------------------------------------------------------------------


def _relations(nodes: Nodes, lists: _Lists) -> str:
    """(G, k, 22) features of the edges, in the order of RELATIONS."""
    k, rows = nodes.cast(lists.k, _FLOAT), lists.rows
    counts = _counts(nodes, lists, k)
    z, size = _standardised(nodes, lists)
    first, last = (nodes.Gather(z, np.array([place]), axis=1) for place in (0, -1))  # (G, 1)
    density = nodes.ReduceMean(z, _axes(1), keepdims=1)
    overlap = counts["whole"]
    mean_overlap = nodes.ReduceMean(overlap, _axes(1), keepdims=1)
    mutual = nodes.cast(nodes.Less(counts["reverse"], k), _FLOAT)
    listed = nodes.ReduceSum(nodes.cast(nodes.GreaterOrEqual(lists.ranks, 0), _FLOAT), _axes(0), keepdims=0)  # (G,)
    popularity = nodes.Log(nodes.Add(nodes.Div(listed, k), 1.0))

    def of_neighbor(value: str) -> str:
        """(G, k) the value (G, 1) or (G,) of each neighbour."""
        return nodes.Gather(nodes.Reshape(value, np.array([-1])), rows)

    ranks = nodes.Log(nodes.Add(nodes.cast(_range(nodes, nodes.Unsqueeze(lists.k, _axes(0))), _FLOAT), 1.0))  # (k,)
    columns = (
        z,
        nodes.Sub(z, first),
        nodes.Sub(z, last),
        nodes.Sub(z, of_neighbor(first)),
        nodes.Sub(z, of_neighbor(last)),
        ranks,
        nodes.Log(nodes.Add(counts["reverse"], 1.0)),
        mutual,
        overlap,
        counts["half"],
        counts["quarter"],
        counts["weighted"],
        counts["votes"],
        nodes.Sub(overlap, mean_overlap),
        mean_overlap,
        of_neighbor(mean_overlap),
        density,
        of_neighbor(density),
        nodes.ReduceMean(mutual, _axes(1), keepdims=1),
        of_neighbor(popularity),
        size,
        nodes.Log(k),
    )
    shape = nodes.Shape(rows)
    return nodes.Concat(*(nodes.Unsqueeze(nodes.Expand(each, shape), _axes(2)) for each in columns), axis=2)


def _counts(nodes: Nodes, lists: _Lists, k: str) -> dict[str, str]:
    """What is counted of each edge i -> j, each (G, k): see `_count_edges` in refiner/relations.py."""
    rows = lists.rows
    exact = nodes.cast(lists.similarities, _DOUBLE)
    theirs = nodes.Gather(exact, rows)  # (G, k, k) similarities in the list of j
    ours = nodes.Unsqueeze(nodes.Add(exact, _exact(SAME_PAIR)), _axes(2))
    reverse = nodes.ReduceSum(nodes.cast(nodes.Greater(theirs, ours), _FLOAT), _axes(2), keepdims=0)
    flat = nodes.Reshape(nodes.Gather(rows, rows), nodes.Concat(nodes.Shape(rows, end=1), np.array([-1]), axis=0))
    shape = nodes.Shape(theirs)
    rank = nodes.cast(nodes.Reshape(nodes.GatherElements(lists.ranks, flat, axis=1), shape), _FLOAT)
    place = nodes.cast(_range(nodes, nodes.Unsqueeze(lists.k, _axes(0))), _FLOAT)  # (k,) of the third axis
    present = nodes.GreaterOrEqual(rank, 0.0)

    def shared(depth: str) -> str:
        """The share of the first `depth` of both lists that they have in common, i itself among them."""
        both = nodes.And(nodes.Less(rank, depth), nodes.And(present, nodes.Less(place, depth)))
        inside = nodes.ReduceSum(nodes.cast(both, _FLOAT), _axes(2), keepdims=0)
        return nodes.Div(nodes.Add(inside, nodes.cast(nodes.Less(reverse, depth), _FLOAT)), depth)

    def fading(ranks: str) -> str:
        return nodes.Exp(nodes.Neg(nodes.Div(ranks, nodes.Div(k, 4.0))))

    weighted = nodes.ReduceSum(nodes.Where(present, fading(nodes.Add(rank, place)), 0.0), _axes(2), keepdims=0)
    weighted = nodes.Add(weighted, nodes.Where(nodes.Less(reverse, k), fading(reverse), 0.0))
    half, quarter = (nodes.Max(nodes.Floor(nodes.Div(k, parts)), 1.0) for parts in (2.0, 4.0))
    voters = nodes.Min(k, float(VOTERS))
    listed = nodes.GreaterOrEqual(lists.ranks, 0)
    votes_for = nodes.And(listed, nodes.Less(nodes.cast(lists.ranks, _FLOAT), voters))
    votes = nodes.MatMul(nodes.cast(votes_for, _FLOAT), nodes.cast(listed, _FLOAT))  # (G, G)
    return {
        "reverse": reverse,
        "whole": shared(k),
        "half": shared(half),
        "quarter": shared(quarter),
        "weighted": nodes.Div(weighted, nodes.Div(k, 16.0)),
        "votes": nodes.Div(nodes.GatherElements(votes, rows, axis=1), voters),
    }


def _standardised(nodes: Nodes, lists: _Lists) -> tuple[str, str]:
    """(G, k) similarities in standard deviations of all, and () the size of the gallery; both rounded as there."""
    exact = nodes.cast(lists.similarities, _DOUBLE)
    mean = nodes.ReduceMean(exact, keepdims=0)
    centred = nodes.Sub(exact, mean)
    deviation = nodes.Sqrt(nodes.ReduceMean(nodes.Mul(centred, centred), keepdims=0))
    spread = nodes.Pow(_exact(2), _rounded(nodes, _log2(nodes, nodes.Add(deviation, _exact(1e-6)))))
    centre = nodes.Mul(spread, _rounded(nodes, nodes.Div(mean, spread)))
    z = nodes.Div(nodes.Sub(lists.similarities, nodes.cast(centre, _FLOAT)), nodes.cast(spread, _FLOAT))
    size = _rounded(nodes, nodes.Log(nodes.Div(nodes.cast(lists.size, _DOUBLE), nodes.cast(lists.k, _DOUBLE))))
    return z, nodes.cast(size, _FLOAT)


# ---- scores ------------------------------------------------------------------------------------------------------


def _probabilities(nodes: Nodes, scorer: RelationScorer, relations: str) -> str:
    """(...) that both ends of an edge are of one class, by its relations (..., 22)."""
    x = nodes.Div(nodes.Sub(relations, scorer.centre), scorer.spread)
    layers = list(zip(scorer.weights, scorer.biases, strict=True))
    for (weight, bias), _ in pairwise(layers):
        x = nodes.Add(nodes.MatMul(x, weight), bias)
        x = nodes.Mul(x, nodes.Sigmoid(x))
    weight, bias = layers[-1]
    return nodes.Squeeze(nodes.Sigmoid(nodes.Add(nodes.MatMul(x, weight), bias)), _axes(-1))


def _scores(nodes: Nodes, x: str, refined: str) -> str:
    """(n,) of raw vectors x and refined ones, each (n, d); -2 of the query itself, which is the first."""
    query = nodes.Equal(_range(nodes, nodes.Shape(x, end=1)), 0)

    def cosines(vectors: str) -> str:
        double = nodes.cast(vectors, _DOUBLE)
        products = nodes.MatMul(double, nodes.Gather(double, 0, axis=0))
        return nodes.Where(query, -2.0, nodes.cast(products, _FLOAT))

    raw, moved = cosines(x), cosines(refined)

    def mixed(share: float) -> str:
        return nodes.Add(nodes.Mul(raw, share), nodes.Mul(moved, 1 - share))

    scores, cautious = mixed(RAW_SHARE), mixed(RAW_SHARE_OF_FIRST)
    best = nodes.ReduceMax(scores, keepdims=0)
    first = nodes.Equal(cautious, nodes.ReduceMax(cautious, keepdims=0))
    return nodes.Where(first, best, nodes.Min(scores, nodes.Sub(best, _JUST_BELOW)))


# ---- small things ------------------------------------------------------------------------------------------------


def _exact(value: float) -> np.ndarray:
    return np.array(value, np.float64)


def _axes(*axes: int) -> np.ndarray:
    return np.array(axes, np.int64)


def _range(nodes: Nodes, count: str) -> str:
    """0, 1, ... below count (1,)."""
    return nodes.Range(0, nodes.Squeeze(count), 1)


def _unit(nodes: Nodes, vectors: str) -> str:
    """Rows (n, d) scaled to length 1."""
    return nodes.Div(vectors, nodes.Max(nodes.ReduceL2(vectors, _axes(1), keepdims=1), _TINY))


def _dense(nodes: Nodes, values: str, lists: _Lists) -> str:
    """(G, G) of values (G, k) of edges; 0 where there is none."""
    nothing = nodes.Expand(0.0, nodes.Shape(lists.ranks))
    return nodes.ScatterElements(nothing, lists.rows, values, axis=1)


def _log2(nodes: Nodes, value: Value) -> str:
    return nodes.Div(nodes.Log(value), _exact(np.log(2)))


def _rounded(nodes: Nodes, value: Value) -> str:
    """To a 64th, in float64."""
    return nodes.Div(nodes.Round(nodes.Mul(value, _exact(PARTS))), _exact(PARTS))
