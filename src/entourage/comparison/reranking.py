"""Re-ranking as one of the methods: raw search, whose first results are re-ranked by the graph among them."""

from collections.abc import Iterator

import numpy as np

from entourage.baselines import Method
from entourage.neighbors import search_blocks
from entourage.refiner import ContextRefiner
from entourage.refiner.rerank import Reranker
from entourage.runtime.checks import check_whole
from entourage.values import Embeddings, IntArray, Neighbors

__all__ = ["RerankedSearch"]


class RerankedSearch(Method):
    """Rank by raw vectors, then re-rank the first `candidates` of each query; those beyond stay as they are.

    Parameters
    ----------
    candidates : int
    universal : bool
        Whether the universal scorer re-ranks; else a refiner fitted on the training items.
    random_state : int

    Attributes
    ----------
    reranker_ : Reranker
    """

    _learned = "reranker_"

    def __init__(self, candidates: int = 100, universal: bool = True, random_state: int = 0) -> None:
        self.candidates = candidates
        self.universal = universal
        self.random_state = random_state

    @property
    def n_parameters_(self) -> int:
        self._check_fitted()
        return self.reranker_.n_parameters

    def _check_settings(self) -> None:
        check_whole("candidates", self.candidates, 1)

    def _learn(self, items: Embeddings) -> None:
        refiner = None if self.universal else ContextRefiner(random_state=self.random_state).fit(items)
        self.reranker_ = Reranker(refiner)

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        depth = min(max(k, self.candidates), len(items) - 1)
        return self._lists(search_blocks(items, k=depth), items, items, k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        depth = min(max(k, self.candidates), len(gallery))
        return self._lists(search_blocks(queries, gallery, depth), queries, gallery, k)

    def _lists(
        self, found: Iterator[tuple[slice, Neighbors]], queries: Embeddings, items: Embeddings, k: int
    ) -> Iterator[tuple[slice, Neighbors]]:
        for block, lists in found:
            each = zip(queries.vectors[block], lists.rows, lists.similarities, strict=True)
            reranked = [self._reranked(query, items, *listed) for query, *listed in each]
            rows, scores = (np.stack(column)[:, :k] for column in zip(*reranked, strict=True))
            yield block, Neighbors(rows, scores)

    def _reranked(
        self, query: np.ndarray, items: Embeddings, rows: IntArray, similarities: np.ndarray
    ) -> tuple[IntArray, np.ndarray]:
        first, rest = rows[: self.candidates], rows[self.candidates :]
        done = self.reranker_.rerank(query, items.vectors[first], ids=items.ids[first])
        scores = np.concatenate([done.scores, similarities[self.candidates :]])
        return np.concatenate([first[done.rows], rest]), np.minimum.accumulate(
            scores
        )  # the rest are not above the last
