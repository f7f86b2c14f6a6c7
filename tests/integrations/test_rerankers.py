"""Rerankers where people search: each gives the order of `entourage.rerank`, through the real library."""

import numpy as np
import pytest

from entourage import ContextRefiner, rerank
from entourage.errors import InputError


@pytest.fixture(scope="module")
def found():
    """A query, its 40 candidates, nearest first, and their new order."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 12))
    vectors = (centres[rng.integers(6, size=60)] + 0.9 * rng.normal(size=(60, 12))).astype(np.float32)
    query = centres[0] + 0.9 * rng.normal(size=12)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
    candidates = vectors[np.argsort(-cosines)][:40]
    expected = rerank(query, candidates)
    assert expected.rows.tolist() != list(range(40)), "precondition: the order changes"
    return query, candidates, expected


class Encoder:
    """Texts are names of vectors; embeds them as LangChain, LlamaIndex and LanceDB ask for it."""

    def __init__(self, query, candidates):
        self.of = {"query": query, **{f"text {row}": vector for row, vector in enumerate(candidates)}}

    def encode(self, text):
        return self.of[text]

    embed_query = get_query_embedding = encode

    def embed_documents(self, texts):
        return [self.of[text].tolist() for text in texts]

    get_text_embedding_batch = embed_documents


# ---- LanceDB -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(found, tmp_path_factory):
    lancedb = pytest.importorskip("lancedb")
    _, candidates, _ = found
    rows = [{"vector": vector, "n": n, "text": f"text {n}"} for n, vector in enumerate(candidates)]
    return lancedb.connect(tmp_path_factory.mktemp("lance")).create_table("items", rows)


def test_lancedb_reranks_a_search_by_vector(found, table):
    from entourage.integrations.lance import ContextReranker

    query, _, expected = found
    search = table.search(query.astype(np.float32)).distance_type("cosine").limit(40)
    results = search.rerank(ContextReranker(query), query_string="").to_arrow()
    assert results["n"].to_pylist() == expected.ids.tolist()
    assert results["_relevance_score"].to_pylist() == pytest.approx(expected.scores.tolist(), abs=1e-6)
    assert "_distance" not in results.column_names


def test_lancedb_makes_the_vector_of_a_text_and_keeps_distances_if_asked(found, table):
    from entourage.integrations.lance import ContextReranker

    query, candidates, expected = found
    reranker = ContextReranker(encode=Encoder(query, candidates).encode, return_score="all")
    search = table.search(query.astype(np.float32)).distance_type("cosine").limit(40)
    results = search.rerank(reranker, query_string="query").to_list()
    assert [each["n"] for each in results] == expected.ids.tolist() and "_distance" in results[0]


def test_lancedb_reranks_texts_and_both(found, table):
    from lancedb.index import FTS

    from entourage.integrations.lance import ContextReranker

    query, _, _ = found
    table.create_index("text", config=FTS(), replace=True)
    by_text = table.search("text", query_type="fts").limit(40).rerank(ContextReranker(query)).to_list()
    assert len(by_text) == 40 and "_score" not in by_text[0]
    hybrid = table.search(query_type="hybrid").vector(query.astype(np.float32)).text("text").limit(40)
    both = hybrid.rerank(ContextReranker(query)).to_list()
    assert sorted(each["n"] for each in both) == list(range(40)), "each once"
    assert [each["n"] for each in both] == [each["n"] for each in by_text]


def test_lancedb_says_what_it_needs(found, table):
    from entourage.integrations.lance import ContextReranker

    with pytest.raises(InputError, match="wanted one of query and encode"):
        ContextReranker()
    without = table.search(found[0].astype(np.float32)).select(["n"]).limit(5)
    with pytest.raises(InputError, match="no vectors in 'vector'"):
        without.rerank(ContextReranker(found[0]), query_string="").to_list()
    nothing = table.search(found[0].astype(np.float32)).where("n < 0").rerank(ContextReranker(found[0]), "")
    assert nothing.to_list() == []


# ---- LangChain ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carried", [True, False], ids=["vectors of the documents", "embedded again"])
def test_langchain_compresses_documents_into_the_new_order(found, carried):
    documents = pytest.importorskip("langchain_core.documents")
    from entourage.integrations.langchain import ContextReranker

    query, candidates, expected = found
    given = [
        documents.Document(f"text {row}", metadata={"row": row, "vector": vector.tolist()})
        for row, vector in enumerate(candidates)
    ]
    reranker = ContextReranker(embeddings=Encoder(query, candidates), vector_key="vector" if carried else None, top_n=9)
    ordered = reranker.compress_documents(given, "query")
    assert [each.metadata["row"] for each in ordered] == expected.ids[:9].tolist()
    assert ordered[0].metadata["relevance_score"] == pytest.approx(float(expected.scores[0]), abs=1e-6)
    assert "relevance_score" not in given[0].metadata and reranker.compress_documents([], "query") == []


def test_langchain_says_which_vectors_are_missing(found):
    documents = pytest.importorskip("langchain_core.documents")
    from entourage.integrations.langchain import ContextReranker

    reranker = ContextReranker(embeddings=Encoder(*found[:2]), vector_key="emb")
    with pytest.raises(InputError, match="1 of 1 documents have no 'emb'"):
        reranker.compress_documents([documents.Document("text 0")], "query")


# ---- LlamaIndex --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carried", [True, False], ids=["vectors of the nodes", "embedded again"])
def test_llama_index_postprocesses_nodes_into_the_new_order(found, carried):
    schema = pytest.importorskip("llama_index.core.schema")
    from entourage.integrations.llama_index import ContextReranker

    query, candidates, expected = found
    nodes = [
        schema.NodeWithScore(
            node=schema.TextNode(text=f"text {row}", id_=str(row), embedding=vector.tolist() if carried else None),
            score=0.5,
        )
        for row, vector in enumerate(candidates)
    ]
    asked = schema.QueryBundle("query", embedding=query.tolist() if carried else None)
    reranker = ContextReranker(embed_model=None if carried else Encoder(query, candidates), top_n=9)
    ordered = reranker.postprocess_nodes(nodes, asked)
    assert [each.node.node_id for each in ordered] == [str(row) for row in expected.ids[:9]]
    assert ordered[0].score == pytest.approx(float(expected.scores[0]), abs=1e-6)
    assert reranker.postprocess_nodes([], asked) == []
    with pytest.raises(InputError, match="wanted query_str or query_bundle"):
        reranker.postprocess_nodes(nodes)


def test_llama_index_says_that_it_needs_a_model(found):
    schema = pytest.importorskip("llama_index.core.schema")
    from entourage.integrations.llama_index import ContextReranker

    node = schema.NodeWithScore(node=schema.TextNode(text="text 0"))
    with pytest.raises(InputError, match="wanted embed_model"):
        ContextReranker().postprocess_nodes([node], schema.QueryBundle("query"))


# ---- Haystack ----------------------------------------------------------------------------------------------------


def test_haystack_ranks_in_a_pipeline_that_can_be_saved(found):
    haystack = pytest.importorskip("haystack")
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from entourage.integrations.haystack import ContextRanker

    query, candidates, expected = found
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [haystack.Document(id=str(row), content="", embedding=vector.tolist()) for row, vector in enumerate(candidates)]
    )
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=40, return_embedding=True))
    pipeline.add_component("ranker", ContextRanker(top_k=9))
    pipeline.connect("retriever", "ranker")
    asked = {name: {"query_embedding": query.tolist()} for name in ("retriever", "ranker")}
    ranked = pipeline.run(asked)["ranker"]["documents"]
    assert [each.id for each in ranked] == [str(row) for row in expected.ids[:9]]
    assert ranked[0].score == pytest.approx(float(expected.scores[0]), abs=1e-6)
    saved = pipeline.get_component("ranker").to_dict()
    assert ContextRanker.from_dict(saved).top_k == 9


def test_haystack_says_which_embeddings_are_missing_and_takes_a_model(found, tmp_path):
    haystack = pytest.importorskip("haystack")
    from entourage.integrations.haystack import ContextRanker

    query, candidates, _ = found
    refiner = ContextRefiner().fit(candidates)
    refiner.save(tmp_path / "model")
    ranker = ContextRanker(model=str(tmp_path / "model"))
    documents = [haystack.Document(id=str(row), embedding=v.tolist()) for row, v in enumerate(candidates)]
    ranked = ranker.run(query.tolist(), documents)["documents"]
    assert [each.id for each in ranked] == [str(row) for row in rerank(query, candidates, refiner=refiner).ids]
    with pytest.raises(InputError, match="1 of 1 documents have no embedding"):
        ranker.run(query.tolist(), [haystack.Document(content="a")])
    assert ranker.run(query.tolist(), []) == {"documents": []}
