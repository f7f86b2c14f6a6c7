"""The best of a ranking, ranked anew by conditional similarity: s(q, g) = phi_N(q|g) . phi_N(g|q).

An option for inference: 2 m conditional embeddings for every query, where the unconditional ranking needs none.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.runtime.progress import Progress
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import EncodedImages
from entourage.values import Neighbors

__all__ = ["conditional_similarity", "rerank"]

_PAIRS = 2**17  # conditioned together: the more, the less often a context is read; 2 d values each are held


def rerank(
    blocks: CrossImageBlocks,
    queries: EncodedImages,
    gallery: EncodedImages | None = None,
    m: int = 20,
    *,
    pairs_at_once: int = 2048,
    progress: Progress | None = None,
) -> Neighbors:
    """Rank the m nearest of each query anew by conditional similarity.

    Parameters
    ----------
    blocks : CrossImageBlocks
        The blocks of a run.
    queries : EncodedImages
        N images.
    gallery : EncodedImages, optional
        M images; default: the queries are searched among themselves. No query finds itself: in a gallery it is left
        out by its id, where both sets have ids.
    m : int
        How many, by unconditional similarity.
    pairs_at_once : int
        Pairs whose activations are computed together.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    Neighbors
        rows (N, m) and conditional similarities (N, m); ties stay in the unconditional order.
    """
    target = queries if gallery is None else gallery
    items = queries.embeddings
    found = search(items, items if target is queries else target.embeddings, m, progress=progress)
    rows = np.repeat(np.arange(len(queries)), m), found.rows.ravel()
    pairs = conditional_similarity(blocks, queries, target, *rows, pairs_at_once=pairs_at_once, progress=progress)
    similarity = pairs.reshape(-1, m)
    order = np.argsort(-similarity, axis=1, kind="stable")
    return Neighbors(np.take_along_axis(found.rows, order, 1), np.take_along_axis(similarity, order, 1))


@torch.no_grad()
def conditional_similarity(
    blocks: CrossImageBlocks,
    left: EncodedImages,
    right: EncodedImages,
    left_rows: ArrayLike,
    right_rows: ArrayLike,
    *,
    pairs_at_once: int = 2048,
    progress: Progress | None = None,
) -> np.ndarray:
    """Conditional similarities of pairs of images.

    Parameters
    ----------
    blocks : CrossImageBlocks
        The blocks of a run.
    left, right : EncodedImages
        Two sets, or twice the same.
    left_rows, right_rows : array of int, shape (P,)
        Row left_rows[p] of one set makes a pair with row right_rows[p] of the other.
    pairs_at_once : int
        Pairs whose activations are computed together.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    ndarray of float32, shape (P,)
        s of each pair.
    """
    rows, others = (torch.from_numpy(np.array(r, np.int64)) for r in (left_rows, right_rows))
    if rows.shape != others.shape or rows.ndim != 1:
        shapes = [tuple(r.shape) for r in (rows, others)]
        raise InputError(f"the rows have shapes {shapes}; wanted one of each set for every pair")
    similarity = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _PAIRS):
        some = slice(start, start + _PAIRS)
        i, j = rows[some], others[some]
        given_right = blocks.pairs(left.vectors, right.context, i, j, pairs_at_once=pairs_at_once)
        given_left = blocks.pairs(right.vectors, left.context, j, i, pairs_at_once=pairs_at_once)
        similarity[some] = (given_right * given_left).sum(dim=1).cpu().numpy()
        if progress:
            progress("conditioning", min(start + _PAIRS, len(rows)), len(rows))
    return similarity
