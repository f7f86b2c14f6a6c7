"""LangChain: a document compressor that re-ranks what a retriever returned.

C documents of a query, d dimensions.
"""

from collections.abc import Sequence
from typing import Any

from entourage.errors import InputError
from entourage.refiner.rerank import Reranker
from entourage.runtime.extras import optional

with optional("re-ranking in LangChain"):
    from langchain_core.documents import BaseDocumentCompressor, Document
    from pydantic import ConfigDict, PrivateAttr

__all__ = ["ContextReranker"]

SCORE = "relevance_score"


class ContextReranker(BaseDocumentCompressor):
    """Re-ranks documents by the graph among the query and them, for ContextualCompressionRetriever and by itself.

    Documents come back in the new order, with `metadata["relevance_score"]`; those given are left as they are.

    Parameters
    ----------
    embeddings : Embeddings of LangChain
        What made the vectors of the index; the query is embedded by it and, if they carry no vectors, the documents.
    refiner : ContextRefiner, optional
        A fitted refiner; default: the universal scorer.
    vector_key : str, optional
        Where in their metadata documents carry their vectors, which spares embedding them again.
    top_n : int, optional
        How many documents to keep; all by default.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    embeddings: Any
    refiner: Any = None
    vector_key: str | None = None
    top_n: int | None = None
    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._reranker = Reranker(self.refiner)

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        """Order documents anew.

        Parameters
        ----------
        documents : sequence of Document
            C documents, as a retriever returned them.
        query : str
        callbacks
            Not used.

        Returns
        -------
        list of Document
        """
        if not documents:
            return []
        done = self._reranker.rerank(self.embeddings.embed_query(query), self._vectors(documents))
        scored = zip(done.rows, done.scores.tolist(), strict=True)
        return [
            documents[row].model_copy(update={"metadata": documents[row].metadata | {SCORE: score}})
            for row, score in list(scored)[: self.top_n]
        ]

    def _vectors(self, documents: Sequence[Document]) -> list[Any]:
        """(C, d) those that documents carry, or new ones."""
        if self.vector_key is None:
            return list(self.embeddings.embed_documents([document.page_content for document in documents]))
        vectors = [document.metadata.get(self.vector_key) for document in documents]
        without = sum(vector is None for vector in vectors)
        if without:
            raise InputError(
                f"{without} of {len(vectors)} documents have no {self.vector_key!r} in their metadata; wanted the "
                "vector of each: leave vector_key out to embed them again"
            )
        return vectors
