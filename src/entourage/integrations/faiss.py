"""faiss: an index in memory as Embeddings, and a refined index with the same ids.

Files of indexes are refined by `entourage refine faiss:FILE`. N vectors, d dimensions.
"""

from typing import Any

from entourage.refiner.estimator import ContextRefiner
from entourage.runtime.extras import require
from entourage.stores.databases.faiss_index import index_like, vectors_in
from entourage.values import Embeddings

__all__ = ["embeddings_of", "refined_index"]


def embeddings_of(index: Any) -> Embeddings:
    """The vectors of an index as Embeddings, with the ids that a search of it returns.

    Parameters
    ----------
    index : faiss.Index
        One that gives its vectors back; those of a quantised one are approximations.

    Returns
    -------
    Embeddings
        N items, scaled to length 1.
    """
    require("faiss", "reading an index of faiss")
    keys, vectors = vectors_in(index)
    return Embeddings.from_vectors(vectors, ids=keys)


def refined_index(index: Any, *, refiner: ContextRefiner | None = None) -> Any:
    """Refine all vectors of an index among themselves, into a new index of the same kind with the same ids.

    Parameters
    ----------
    index : faiss.Index
        It stays as it is.
    refiner : ContextRefiner, optional
        A fitted refiner. Default: one that is fitted to the vectors, without labels. Search the new index with
        `refiner.transform(queries, context=embeddings_of(index))`.

    Returns
    -------
    faiss.Index
    """
    items = embeddings_of(index)
    refined = ContextRefiner().fit_transform(items) if refiner is None else refiner.transform(items, context=items)
    return index_like(index, items.ids, refined.vectors)
