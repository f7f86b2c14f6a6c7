"""How a set is searched where nobody says how: exactly as long as that is quicker, then by NN-descent or an index."""

import math
from typing import Any

from entourage.errors import InputError
from entourage.runtime.extras import is_installed

__all__ = [
    "AUTO",
    "DESCENT_DIMENSIONS",
    "EXACT",
    "NN_DESCENT",
    "PILOT",
    "SPARE",
    "check_by",
    "chosen",
    "descent_bytes",
    "descent_lists",
    "pilot_lists",
]

AUTO, EXACT, NN_DESCENT = "auto", "exact", "nn-descent"

# Pairs of vectors up to which exact search is quicker than building and searching an index, as `make bench-scale`
# measures it: one set of 130,000 items, of which each pair is compared once.
_EXACT_PAIRS = 2**33
# Bytes an item takes in links. Vectors of 8 bits only choose candidates, which exact similarities put in order: they
# take a quarter of the memory, and less time than vectors of 32 bits.
_GRAPHS = {"HNSW32,SQ8": 270, "HNSW16,SQ8": 140}
_LISTS = 4096
DESCENT_DIMENSIONS = 128
"""NN-descent proposes candidates by so many principal directions of longer vectors at most."""
SPARE = 12
"""Candidates looked up beyond k, which exact similarities choose from: quantised ones put them in another order."""
PILOT = 100_000
"""So many items of a larger set show first how long lists of NN-descent have to be."""
PILOT_MISSED = 0.08
"""The share of neighbours that they miss with lists of `pilot_lists`, if nothing is known."""
_SHORTEST = 25
_BYTES_IN_LISTS = 30  # of NN-descent, for each place in an item's list: the neighbour, candidates for it, trees


def chosen(
    n_queries: int, n_items: int, dim: int, *, one_set: bool, memory: float, k: int = 16, in_memory: bool = False
) -> str:
    """Choose how to search.

    Parameters
    ----------
    n_queries, n_items, dim : int
        N queries among M items of d dimensions.
    one_set : bool
        Whether the queries are the items.
    memory : float
        How many bytes an index may take.
    k : int
        How many neighbours will be asked for.
    in_memory : bool
        Whether the vectors are in memory, all of which NN-descent looks at again and again.

    Returns
    -------
    str
        "exact"; "nn-descent", which finds all lists of one set in less than half of the time that an index takes; or a
        text for `faiss.index_factory`: a graph if it fits, else lists of coarsely quantised vectors.

    Examples
    --------
    >>> [chosen(n, n, 384, one_set=True, memory=1e9) for n in (60_000, 10**6, 10**7)]
    ['exact', 'HNSW32,SQ8', 'IVF4096,PQ96']
    >>> chosen(10**6, 10**6, 384, one_set=True, memory=8e9, in_memory=True)
    'nn-descent'
    """
    pairs = n_queries * n_items / (2 if one_set else 1)
    if pairs <= _EXACT_PAIRS:
        return EXACT
    descended = descent_bytes(n_items, min(dim, DESCENT_DIMENSIONS), descent_lists(n_items, k))
    if one_set and in_memory and descended <= memory and is_installed("pynndescent"):
        return NN_DESCENT
    if not is_installed("faiss"):
        return EXACT
    fitting = [graph for graph, links in _GRAPHS.items() if n_items * (links + dim) <= memory]
    if fitting:
        return fitting[0]
    parts = next(parts for parts in range(max(dim // 4, 1), 0, -1) if dim % parts == 0)  # of equal size
    return f"IVF{_LISTS},PQ{parts}"


def descent_lists(n_items: int, k: int, missed: float = PILOT_MISSED) -> int:
    """How long lists of NN-descent must be for 95 % of the k nearest to be in them.

    They are longer the more items there are, and the more dimensions these fill. Measured on sets that fill 64 of 128
    and of 384: among 100,000, lists of 37 miss 3.5 and 5.7 % of the 16 nearest, and lists of 46 miss 2.6 % of the
    latter; among a million, lists of 54 and 68 miss 5.0 and 2.7 % of the former, lists of 63 and 82 miss 5.1 and 2.7 %
    of the latter. A pilot misses more than a set of its size: most of the nearest of its items are not in it.

    Parameters
    ----------
    n_items, k : int
    missed : float
        What a pilot of 100,000 of the items misses.

    Returns
    -------
    int

    Examples
    --------
    >>> [descent_lists(n, 16) for n in (10**5, 10**6)], [descent_lists(10**6, 16, missed) for missed in (0.005, 0.106)]
    ([41, 63], [41, 68])
    """
    decades = max(math.log10(n_items) - 5, 0)
    usual = k + 25 + 22 * decades
    harder = math.log(max(missed, 0.001) / PILOT_MISSED) / 0.058  # places in the list, at a million items
    return max(round(usual + min(decades, 1) * harder), k + _SHORTEST)


def pilot_lists(k: int) -> int:
    """How long the lists of the pilot are."""
    return k + 21


def descent_bytes(n_items: int, dim: int, length: int) -> int:
    """What NN-descent takes: a copy of the vectors that it looks at, and lists.

    >>> [round(descent_bytes(10**6, dim, 63) / 1e9, 1) for dim in (128, 384)]
    [2.4, 3.4]
    """
    return n_items * (4 * dim + _BYTES_IN_LISTS * length)


def check_by(by: Any) -> Any:
    """Refuse what names no way to search; neighbours that are given are one."""
    if not hasattr(by, "__len__") or (isinstance(by, str) and not by):
        raise InputError(
            f"by is {by!r}; wanted {AUTO}, {EXACT}, {NN_DESCENT}, a text for faiss.index_factory such as HNSW16, or "
            "neighbours: (ids, scores)"
        )
    return by
