"""Haystack: a ranker for pipelines, between a retriever and what reads its documents.

C documents of a query, d dimensions.
"""

from dataclasses import replace
from typing import Any

from entourage.errors import InputError
from entourage.refiner import load_refiner
from entourage.refiner.rerank import Reranker
from entourage.runtime.extras import optional

with optional("re-ranking in Haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict

__all__ = ["ContextRanker"]


@component
class ContextRanker:
    """Re-ranks documents, which carry their embeddings, by the graph among the query and them.

    Retrievers return embeddings with their documents if they are told to (`return_embedding=True`); the query's own
    comes from a text embedder.

    Parameters
    ----------
    model : str, optional
        A folder of a fitted refiner; default: the universal scorer.
    top_k : int, optional
        How many documents to keep; all by default.
    """

    def __init__(self, model: str | None = None, top_k: int | None = None) -> None:
        self.model, self.top_k = model, top_k
        refiner: Any = None if model is None else load_refiner(model)
        self._reranker = Reranker(refiner)

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Order documents anew.

        Parameters
        ----------
        query_embedding : list of float
            (d,) the raw vector of the query.
        documents : list of Document
            C documents with embeddings, in any order.
        top_k : int, optional
            How many to keep, if not as many as the component was made for.

        Returns
        -------
        dict
            "documents": in the new order, with their new scores.
        """
        without = sum(document.embedding is None for document in documents)
        if without:
            raise InputError(
                f"{without} of {len(documents)} documents have no embedding; wanted one for each: tell the retriever "
                "to return them (return_embedding=True)"
            )
        vectors = [document.embedding for document in documents]
        done = self._reranker.rerank(query_embedding, vectors)
        scored = list(zip(done.rows, done.scores.tolist(), strict=True))[: top_k or self.top_k]
        return {"documents": [replace(documents[row], score=score) for row, score in scored]}

    def to_dict(self) -> dict[str, Any]:
        """What a saved pipeline keeps of it."""
        return default_to_dict(self, model=self.model, top_k=self.top_k)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ContextRanker":
        """The ranker of a saved pipeline."""
        return default_from_dict(cls, data)
