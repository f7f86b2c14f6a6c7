"""What an index returned for one query, re-ranked by the graph among the query and its candidates alone.

Query and candidates are refined as a small gallery of their own (network.py), and ranked by

    score_j = (1 - a) <e_query, e_j> + a <x_query, x_j>

where x are the vectors after the base map, if there is one, and e the refined ones. Refinement knows better which
candidates belong together than which is nearest: so the first place goes to the highest score with a larger a. The
index stays as it is, and nothing but the vectors of the candidates is needed.

C candidates, d dimensions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from entourage.errors import InputError, ModelError
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.context import WeightedGraph
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.gathering import normalise
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.small_graph import build_small_graph
from entourage.refiner.universal import universal_network
from entourage.stores.reading import named
from entourage.values import (
    BoolArray,
    Embeddings,
    FloatArray,
    IntArray,
    LabelArray,
    as_column,
    as_matrix,
    check_unique,
    checked_column,
    holds_lists,
    set_frozen,
    shared_codes,
)

__all__ = ["MOST_CANDIDATES", "Reranked", "Reranker", "rerank"]

MOST_CANDIDATES = 4096  # all pairs are compared, in memory
# Chosen on training classes, see docs/rerank.md. Candidates of one query are all alike, and are weighed less sharply
# than the items of a gallery.
N_NEIGHBORS, N_STEPS = 12, 5
SHARPNESS, BLEND = 2.0, 0.3
RAW_SHARE, RAW_SHARE_OF_FIRST = 0.5, 0.85  # a
_LEAST_SQUARE, _MOST_SQUARE = 1e-20, 1e20
_NONE = np.empty(0, np.float32)


@dataclass(frozen=True, eq=False)
class Reranked:
    """Candidates of one query in their new order, best first; made by `rerank`.

    Parameters
    ----------
    rows, scores, ids, given_scores
        As the attributes of these names.
    """

    rows: IntArray
    """(C,) the place of each among the candidates as they were given."""
    scores: FloatArray
    """(C,) float32, never increasing: the higher, the better."""
    ids: LabelArray
    """(C,) the id of each; where none were given, its row."""
    given_scores: FloatArray | None = None
    """(C,) the score that came with each, if any did."""

    def __post_init__(self) -> None:
        names = ("rows", "scores", "ids", "given_scores")
        set_frozen(self, **{name: getattr(self, name) for name in names})

    def __len__(self) -> int:
        return len(self.rows)


class Reranker:
    """Re-ranks what an index returned for one query after another.

    Parameters
    ----------
    refiner : ContextRefiner, optional
        A fitted refiner, whose base map and scorer are used. Default: the universal scorer, which needs no labels.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from entourage import search
    >>> X = load_digits().data
    >>> query, gallery = X[0], X[1:]
    >>> found = search(query[None], gallery, k=50)                     # or any index of yours
    >>> reranked = Reranker().rerank(query, gallery[found.rows[0]], ids=found.rows[0])
    >>> reranked.ids[:3].tolist(), found.rows[0, :3].tolist()
    ([876, 1364, 1166], [876, 463, 1364])
    """

    def __init__(self, refiner: ContextRefiner | None = None) -> None:
        self._network = _network_of(refiner)
        self._dim = None if refiner is None else refiner.n_features_in_

    @property
    def n_parameters(self) -> int:
        """How many numbers the scorer and the base map have."""
        return self._network.n_parameters

    def rerank(
        self, query: Any, candidates: Any, *, ids: Any = None, scores: Any = None, query_id: Any = None
    ) -> Reranked:
        """Order the candidates of one query anew.

        Parameters
        ----------
        query : array-like of shape (d,) or (1, d), or Embeddings of one item
            The raw vector, of any length.
        candidates : Embeddings, array, DataFrame, column of lists or tensor of shape (C, d)
            Raw vectors of what the index returned, in any order; 50 to 200 are usual.
        ids : array-like of shape (C,), optional
            Their ids, which must be unique. Default: those of the Embeddings, or their rows.
        scores : array-like of shape (C,), optional
            The scores that came with them: kept beside the new ones, and not used.
        query_id : int or str, optional
            The id of the query, where it may be among its candidates: that one is left out. Default: the id of the
            query, if it and the candidates are Embeddings with ids.

        Returns
        -------
        Reranked
            The same candidates, best first; of equal scores the one with the lower id comes first.
        """
        if hasattr(candidates, "__len__") and not len(candidates):  # as where a filter has left nothing
            candidates = np.empty((0, 1))
        target, others = _query(query), _vectors(candidates, "the candidates")
        self._check_size(target.shape[1], others)
        known = _ids(candidates, ids, len(others))
        given = None if scores is None else _given_scores(scores, len(others))
        kept = np.flatnonzero(~_is_query(query, query_id, candidates, ids, known))
        by_id = kept[np.argsort(known[kept], kind="stable")]
        new = scores_of(self._network, np.concatenate([target, others[by_id]])) if len(kept) else _NONE
        best = np.argsort(-new, kind="stable")
        rows = by_id[best]
        return Reranked(rows, new[best], known[rows], None if given is None else given[rows])

    def _check_size(self, dim: int, candidates: FloatArray) -> None:
        if len(candidates) and candidates.shape[1] != dim:
            raise InputError(
                f"the query has {dim} dimensions and the candidates {candidates.shape[1]}; "
                "both must come from the same encoder: encode one of them again"
            )
        if self._dim not in (None, dim):
            raise ModelError(
                f"the query has {dim} dimensions, but the refiner was fitted on {self._dim}; use vectors of the "
                "encoder it was fitted on, or fit it on these"
            )


def rerank(
    query: Any,
    candidates: Any,
    *,
    ids: Any = None,
    scores: Any = None,
    query_id: Any = None,
    refiner: ContextRefiner | None = None,
) -> Reranked:
    """Order what an index returned for one query anew, by the graph among the query and its candidates.

    Parameters
    ----------
    query, candidates, ids, scores, query_id
        As in `Reranker.rerank`.
    refiner : ContextRefiner, optional
        As in `Reranker`, which is quicker for many queries.

    Returns
    -------
    Reranked
        The same candidates, best first.

    Examples
    --------
    >>> candidates = [[0.6, 0.8], [1.0, 0.1]]
    >>> reranked = rerank([1.0, 0.0], candidates, ids=["a", "b"], scores=[7.0, 9.0])
    >>> reranked.ids.tolist(), reranked.rows.tolist(), reranked.given_scores.tolist()
    (['b', 'a'], [1, 0], [9.0, 7.0])
    """
    return Reranker(refiner).rerank(query, candidates, ids=ids, scores=scores, query_id=query_id)


# ---- scores ------------------------------------------------------------------------------------------------------


def scores_of(network: RelationalNetwork, vectors: FloatArray) -> FloatArray:
    """Score candidates by how near they are to the query after refinement among themselves.

    Parameters
    ----------
    network : RelationalNetwork
        Its base map and scorer are used.
    vectors : ndarray of shape (1 + C, d)
        The query and its candidates, in order of their ids: unit vectors, float32.

    Returns
    -------
    ndarray of shape (C,)
        float32.
    """
    x = _mapped(vectors, network.base_map)
    raw = _cosines(x.vectors)
    if network.blend == 1:  # a refiner that leaves vectors as they are
        return raw
    weighted = WeightedGraph(build_small_graph(x, N_NEIGHBORS), network.scorer, SHARPNESS, BLEND)
    *_, z = weighted.steps(N_STEPS)
    context = weighted.context_of_gallery()
    refined = _cosines(context.refined(x, context.outside, z))
    scores, cautious = (a * raw + (1 - a) * refined for a in (RAW_SHARE, RAW_SHARE_OF_FIRST))
    first = cautious == cautious.max()  # equal candidates stay together
    scores[first] = scores.max()
    scores[~first] = np.minimum(scores[~first], np.nextafter(scores.max(), np.float32(-np.inf)))
    return scores


def _mapped(vectors: FloatArray, base_map: FloatArray | None) -> Embeddings:
    if base_map is None:
        return Embeddings(vectors)
    with np.errstate(over="ignore", invalid="ignore"):
        mapped = normalise(vectors @ base_map)
        usable = np.abs(np.einsum("nd,nd->n", mapped, mapped) - 1) < 1e-3
    return Embeddings(mapped) if usable.all() else apply_base_map(Embeddings(vectors), base_map)  # which says why not


def _cosines(vectors: FloatArray) -> FloatArray:
    """(C,) cosines of the first vector with the others; in float64, rounded once, so that equal vectors tie."""
    exact = vectors.astype(np.float64)
    return (exact[1:] @ exact[0]).astype(np.float32)


# ---- what is given -----------------------------------------------------------------------------------------------


def _network_of(refiner: ContextRefiner | None) -> RelationalNetwork:
    if refiner is None:
        return universal_network()
    if not isinstance(refiner, ContextRefiner):
        raise InputError(f"the refiner is a {type(refiner).__name__}; wanted a fitted ContextRefiner, or None")
    refiner._check_fitted()
    return refiner.network_


def _query(query: Any) -> FloatArray:
    """(1, d) one vector of any kind, a row or a table of one, scaled to length 1."""
    if not isinstance(query, Embeddings):
        shape = getattr(query, "shape", None) or np.shape(query)
        query = [query] if len(shape) == 1 and not holds_lists(query) else query
    vectors = _vectors(query, "the query")
    if len(vectors) != 1:
        raise InputError(f"the query is {len(vectors)} vectors; wanted one: call rerank once for each query")
    return vectors


def _vectors(values: Any, name: str) -> FloatArray:
    """(n, d) vectors of any kind, scaled to length 1."""
    if isinstance(values, Embeddings):
        return values.vectors
    table = as_matrix(values, name)
    if len(table) > MOST_CANDIDATES:
        raise InputError(
            f"{name} are {len(table)}; wanted at most {MOST_CANDIDATES}, the first that an index returns: "
            "refine a whole gallery with ContextRefiner"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = table.astype(np.float32)
        squares = np.einsum("nd,nd->n", vectors, vectors)
    if not ((squares > _LEAST_SQUARE) & (squares < _MOST_SQUARE)).all():  # no direction, or too far off for float32
        with named(name):
            return Embeddings.from_vectors(table).vectors
    vectors /= np.sqrt(squares)[:, None]
    return vectors


def _ids(candidates: Any, ids: Any, count: int) -> LabelArray:
    if ids is None:
        return candidates.ids if isinstance(candidates, Embeddings) else np.arange(count)
    known = checked_column(ids, "ids", count, "candidate")
    check_unique(known)
    return known


def _given_scores(scores: Any, count: int) -> FloatArray:
    given = as_column(scores)
    if given.shape != (count,) or (count and given.dtype.kind not in "fiu"):
        raise InputError(
            f"the scores are {given.dtype} of shape {given.shape}; wanted one number for each of {count} candidates"
        )
    return given


def _is_query(query: Any, query_id: Any, candidates: Any, ids: Any, known: LabelArray) -> BoolArray:
    """(C,) which of the candidates is the query itself, by the id that both were given."""
    named = ids is not None or getattr(candidates, "named", False)
    if query_id is None:
        own = query.ids if isinstance(query, Embeddings) and query.named and named else None
    elif named or not len(known):
        own = checked_column([query_id], "ids", 1, "query")
    else:
        raise InputError(f"query_id is {query_id!r}, but the candidates have no ids to find it among; give ids too")
    if own is None:
        return np.zeros(len(known), bool)
    code, codes = shared_codes(own, known)
    return codes == code[0]
