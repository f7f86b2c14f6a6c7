"""AnnData: refined vectors of cells beside the others in `obsm`, for scanpy's neighbours, maps and clusters.

N cells, d dimensions.
"""

from typing import Any

import numpy as np

from entourage.errors import InputError, few
from entourage.refiner.estimator import ContextRefiner
from entourage.values import Embeddings, as_embeddings

__all__ = ["embeddings_of", "refine_obsm"]


def embeddings_of(adata: Any, key: str = "X_pca", *, labels: str | None = None) -> Embeddings:
    """The vectors of an AnnData as Embeddings, with the names of the cells as ids.

    Parameters
    ----------
    adata : AnnData
        N cells.
    key : str
        Of `obsm`: the vectors (N, d).
    labels : str, optional
        A column of `obs`.

    Returns
    -------
    Embeddings
    """
    if key not in adata.obsm:
        raise InputError(f"obsm has {few(list(adata.obsm), 'keys') if len(adata.obsm) else 'no keys'}, not {key!r}")
    if labels is not None and labels not in adata.obs:
        raise InputError(
            f"obs has {few(list(adata.obs), 'columns') if len(adata.obs.columns) else 'no columns'}, not {labels!r}"
        )
    given = adata.obsm[key]
    vectors = as_embeddings(given.toarray() if hasattr(given, "toarray") else given).vectors
    names = np.asarray(adata.obs_names, str)
    return Embeddings(vectors, names, None if labels is None else np.asarray(adata.obs[labels], str))


def refine_obsm(
    adata: Any,
    key: str = "X_pca",
    into: str | None = None,
    *,
    refiner: ContextRefiner | None = None,
    labels: str | None = None,
) -> None:
    """Refine the vectors in `obsm[key]` among themselves, into `obsm[into]`; `uns[into]` says how.

    Parameters
    ----------
    adata : AnnData
        N cells; it is changed, as scanpy changes it.
    key : str
        Of `obsm`: the vectors (N, d).
    into : str, optional
        Where the refined vectors go; by default "KEY_refined".
    refiner : ContextRefiner, optional
        A fitted refiner. Default: one that is fitted here, without labels.
    labels : str, optional
        A column of `obs` to fit a refiner by, where none is given: it learns from them.
    """
    into = f"{key}_refined" if into is None else into
    cells = embeddings_of(adata, key, labels=labels)
    if refiner is None:
        refiner = ContextRefiner().fit(cells)
    refined = refiner.transform(cells.without_labels(), context=cells.without_labels())
    adata.obsm[into] = np.array(refined.vectors)
    protocol = refiner.report()["protocol"]
    adata.uns[into] = {
        "of": key,
        **{name: value for name, value in protocol.items() if isinstance(value, int | float | str)},
    }
