"""How a set is searched where nobody says how: exactly as long as that is quicker, then by an index."""

from typing import Any

from entourage.errors import InputError
from entourage.runtime.extras import is_installed

__all__ = ["AUTO", "EXACT", "NN_DESCENT", "check_by", "chosen"]

AUTO, EXACT, NN_DESCENT = "auto", "exact", "nn-descent"

# Pairs of vectors up to which exact search is quicker than building and searching an index, as `make bench-scale`
# measures it: one set of 130,000 items, of which each pair is compared once.
_EXACT_PAIRS = 2**33
# Bytes an item takes in links. Vectors of 8 bits only choose candidates, which exact similarities put in order: they
# take a quarter of the memory, and less time than vectors of 32 bits.
_GRAPHS = {"HNSW32,SQ8": 270, "HNSW16,SQ8": 140}
_LISTS = 4096


def chosen(n_queries: int, n_items: int, dim: int, *, one_set: bool, memory: float) -> str:
    """Choose how to search.

    Parameters
    ----------
    n_queries, n_items, dim : int
        N queries among M items of d dimensions.
    one_set : bool
        Whether the queries are the items.
    memory : float
        How many bytes an index may take.

    Returns
    -------
    str
        "exact", or a text for `faiss.index_factory`: a graph if it fits, else lists of coarsely quantised vectors.

    Examples
    --------
    >>> [chosen(n, n, 384, one_set=True, memory=1e9) for n in (60_000, 10**6, 10**7)]
    ['exact', 'HNSW32,SQ8', 'IVF4096,PQ96']
    """
    pairs = n_queries * n_items / (2 if one_set else 1)
    if pairs <= _EXACT_PAIRS or not is_installed("faiss"):
        return EXACT
    fitting = [graph for graph, links in _GRAPHS.items() if n_items * (links + dim) <= memory]
    if fitting:
        return fitting[0]
    parts = next(parts for parts in range(max(dim // 4, 1), 0, -1) if dim % parts == 0)  # of equal size
    return f"IVF{_LISTS},PQ{parts}"


def check_by(by: Any) -> Any:
    """Refuse what names no way to search; neighbours that are given are one."""
    if not hasattr(by, "__len__") or (isinstance(by, str) and not by):
        raise InputError(
            f"by is {by!r}; wanted {AUTO}, {EXACT}, {NN_DESCENT}, a text for faiss.index_factory such as HNSW16, or "
            "neighbours: (ids, scores)"
        )
    return by
