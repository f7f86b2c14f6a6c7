"""LanceDB: a reranker for its searches, of vectors, of texts or of both.

C results of a query, d dimensions.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from entourage.errors import InputError, few
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.rerank import Reranker
from entourage.runtime.extras import optional

with optional("re-ranking in LanceDB"):
    from lancedb.rerankers import Reranker as LanceReranker

__all__ = ["ContextReranker"]

_SCORE = "_relevance_score"


class ContextReranker(LanceReranker):
    """Re-ranks what a LanceDB table returned by the graph among the query and its results.

    LanceDB gives a reranker the text of the query and not its vector. So name the vector, or what makes it of a text;
    results must have their column of vectors.

    Parameters
    ----------
    query : array-like of shape (d,), optional
        The raw vector of the query, for a reranker of this query alone.
    encode : callable, optional
        Makes a vector of the text of any query, such as `model.encode`; needed if there is no `query`.
    column : str
        The column of vectors.
    refiner : ContextRefiner, optional
        A fitted refiner; default: the universal scorer.
    return_score : {"relevance", "all"}
        Whether the distances and scores of LanceDB are kept beside `_relevance_score`.
    """

    def __init__(
        self,
        query: Any = None,
        *,
        encode: Callable[[str], Any] | None = None,
        column: str = "vector",
        refiner: ContextRefiner | None = None,
        return_score: str = "relevance",
    ) -> None:
        super().__init__(return_score)
        if (query is None) == (encode is None):
            raise InputError(
                "a reranker for LanceDB needs the vector of the query or what makes it of a text; wanted one of query "
                "and encode"
            )
        self._query, self._encode, self._column = query, encode, column
        self._reranker = Reranker(refiner)

    def rerank_vector(self, query: str, vector_results: pa.Table) -> pa.Table:
        """Order what a search by vector returned anew."""
        return self._reranked(query, vector_results)

    def rerank_fts(self, query: str, fts_results: pa.Table) -> pa.Table:
        """Order what a search by text returned anew."""
        return self._reranked(query, fts_results)

    def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
        """Order what both searches returned anew, each item once."""
        if self.score == "all":
            return self._reranked(query, self._merge_and_keep_scores(vector_results, fts_results))
        return self._reranked(query, self.merge_results(vector_results, fts_results))

    def _reranked(self, query: str, results: pa.Table) -> pa.Table:
        if not len(results):
            return self._handle_empty_results(results)
        if self._column not in results.column_names:
            raise InputError(
                f"the results have {few(results.column_names, 'columns')} and no vectors in {self._column!r}; select "
                "that column too, or name another with column="
            )
        vector = self._query if self._encode is None else self._encode(query)
        done = self._reranker.rerank(vector, results.column(self._column))
        ordered = results.take(done.rows).append_column(_SCORE, pa.array(done.scores, pa.float32()))
        return self._keep_relevance_score(ordered)
