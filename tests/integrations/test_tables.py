"""Vectors in and out of the tables, matrices and indexes of other libraries, in one line each."""

import numpy as np
import pytest

from entourage import ContextRefiner
from entourage.errors import InputError


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 6))
    return (centres[np.arange(120) % 8] + 0.4 * rng.normal(size=(120, 6))).astype(np.float32)


@pytest.fixture(scope="module")
def refined(vectors):
    return ContextRefiner().fit_transform(vectors)


@pytest.mark.parametrize("kind", ["pandas", "polars", "datasets"])
def test_a_column_of_a_table_is_refined_into_another(kind, vectors, refined):
    from entourage.integrations.tables import refine_column

    library = pytest.importorskip(kind)
    columns = {"sku": [f"s{n}" for n in range(len(vectors))], "vector": vectors.tolist()}
    table = library.Dataset.from_dict(columns) if kind == "datasets" else library.DataFrame(columns)
    done = refine_column(table, "vector")
    names = ["sku", "vector", "vector_refined"]
    assert list(done.column_names if kind == "datasets" else done.columns) == names
    assert np.allclose(np.array(list(done["vector_refined"])), refined, atol=1e-6)
    assert "vector_refined" not in (table.column_names if kind == "datasets" else table.columns), "the given one stays"
    again = refine_column(done, "vector", "vector_refined", refiner=ContextRefiner().fit(vectors))
    assert list(again.column_names if kind == "datasets" else again.columns) == names


def test_a_column_may_be_refined_among_a_gallery(vectors):
    pandas = pytest.importorskip("pandas")
    from entourage.integrations.tables import refine_column

    frame = pandas.DataFrame({"vector": list(vectors[:10])}, index=range(5, 15))
    done = refine_column(frame, "vector", "better", context=vectors[10:])
    expected = ContextRefiner().fit(vectors[10:]).transform(vectors[:10], context=vectors[10:])
    assert np.allclose(np.stack(done["better"]), expected, atol=1e-6) and done.index.tolist() == frame.index.tolist()


def test_what_is_no_table_or_has_no_such_column_is_refused(vectors):
    pandas = pytest.importorskip("pandas")
    from entourage.integrations.tables import refine_column

    with pytest.raises(InputError, match="the table is a ndarray; wanted a DataFrame"):
        refine_column(vectors, "vector")
    with pytest.raises(InputError, match="no 'vector'"):
        refine_column(pandas.DataFrame({"a": [1]}), "vector")


# ---- AnnData -----------------------------------------------------------------------------------------------------


def test_obsm_of_an_anndata_is_refined_beside_the_others(vectors, refined):
    anndata = pytest.importorskip("anndata")
    from entourage.integrations.anndata import embeddings_of, refine_obsm

    adata = anndata.AnnData(obsm={"X_pca": vectors}, obs={"type": [f"t{n % 8}" for n in range(120)]})
    refine_obsm(adata)
    assert np.allclose(adata.obsm["X_pca_refined"], refined, atol=1e-6)
    assert adata.uns["X_pca_refined"]["of"] == "X_pca" and adata.uns["X_pca_refined"]["neighbors"] == 12
    cells = embeddings_of(adata, labels="type")
    assert cells.ids[0] == adata.obs_names[0] and cells.labels[9] == "t1"
    with pytest.raises(InputError, match=r"obsm has .*X_pca.*, not 'X_umap'"):
        embeddings_of(adata, "X_umap")
    with pytest.raises(InputError, match=r"obs has .*type.*, not 'kind'"):
        embeddings_of(adata, labels="kind")


def test_scanpy_finds_neighbours_in_refined_vectors(vectors):
    anndata, scanpy = pytest.importorskip("anndata"), pytest.importorskip("scanpy")
    from entourage.integrations.anndata import refine_obsm

    adata = anndata.AnnData(obsm={"X_pca": vectors})
    refine_obsm(adata, into="X_better")
    scanpy.pp.neighbors(adata, n_neighbors=10, use_rep="X_better", metric="cosine")  # compiles for half a minute
    rows, others = adata.obsp["distances"].nonzero()
    assert (rows % 8 == others % 8).mean() > 0.5  # an eighth by chance


# ---- faiss -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Flat", "IDMap,Flat", "IVF4,Flat"])
def test_an_index_of_faiss_is_refined_into_one_with_the_same_ids(kind, vectors, refined):
    faiss = pytest.importorskip("faiss")
    from entourage.integrations.faiss import embeddings_of, refined_index

    index = faiss.index_factory(6, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    keys = np.arange(len(vectors))
    if kind == "Flat":
        index.add(vectors)
    else:
        keys = keys * 7 + 3
        index.add_with_ids(vectors, keys)
    items = embeddings_of(index)
    assert items.ids.tolist() == keys.tolist() and np.allclose(
        items.vectors, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-6
    )
    new = refined_index(index)
    assert type(new) is type(index) and np.allclose(embeddings_of(new).vectors, refined, atol=1e-5)
    assert new.search(refined[5:6], 1)[1][0, 0] == keys[5]


def test_what_is_no_index_of_faiss_is_refused(vectors):
    pytest.importorskip("faiss")
    from entourage.integrations.faiss import refined_index

    with pytest.raises(InputError, match=r"the index is a ndarray; wanted one of faiss"):
        refined_index(vectors)
