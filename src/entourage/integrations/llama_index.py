"""LlamaIndex: a node postprocessor that re-ranks what a retriever returned.

C nodes of a query, d dimensions.
"""

from typing import Any

from entourage.errors import InputError
from entourage.refiner.rerank import Reranker
from entourage.runtime.extras import optional

with optional("re-ranking in LlamaIndex"):
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

__all__ = ["ContextReranker"]


class ContextReranker(BaseNodePostprocessor):
    """Re-ranks nodes by the graph among the query and them.

    Parameters
    ----------
    embed_model : embedding model of LlamaIndex, optional
        What made the vectors of the index; needed unless query and nodes carry theirs.
    refiner : ContextRefiner, optional
        A fitted refiner; default: the universal scorer.
    top_n : int, optional
        How many nodes to keep; all by default.
    """

    embed_model: Any = Field(default=None)
    refiner: Any = Field(default=None)
    top_n: int | None = Field(default=None)
    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._reranker = Reranker(self.refiner)

    @classmethod
    def class_name(cls) -> str:
        """What LlamaIndex calls it."""
        return "EntourageContextReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        if query_bundle is None:
            raise InputError("nodes are to be re-ranked without a query; wanted query_str or query_bundle: give one")
        query = query_bundle.embedding
        query = self._model().get_query_embedding(query_bundle.query_str) if query is None else query
        done = self._reranker.rerank(query, self._vectors(nodes))
        scored = zip(done.rows, done.scores.tolist(), strict=True)
        return [NodeWithScore(node=nodes[row].node, score=score) for row, score in list(scored)[: self.top_n]]

    def _vectors(self, nodes: list[NodeWithScore]) -> list[Any]:
        """(C, d) those that all nodes carry, or new ones."""
        carried = [each.node.embedding for each in nodes]
        if all(vector is not None for vector in carried):
            return carried
        texts = [each.node.get_content(metadata_mode=MetadataMode.EMBED) for each in nodes]
        return list(self._model().get_text_embedding_batch(texts))

    def _model(self) -> Any:
        if self.embed_model is None:
            raise InputError(
                "the query or some nodes carry no vectors, and there is no model to make them; wanted embed_model: "
                "give the one that made the index"
            )
        return self.embed_model
