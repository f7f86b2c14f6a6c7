"""The best of a ranking, ranked anew by conditional similarity: s(q, g) = phi_N(q|g) . phi_N(g|q).

An option for test time: 2 m conditional embeddings for every query, where the unconditional ranking needs none.
"""

import numpy as np
import torch

from entourage.errors import InputError
from entourage.neighbors import search
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
    progress=None,
) -> Neighbors:
    """The m nearest of each query by unconditional similarity, in the order of the conditional one; ties as they were.

    Without a gallery the queries are searched among themselves. No query finds itself: in a gallery it is left out by
    its id, where both sets have ids.
    """
    target = queries if gallery is None else gallery
    items = queries.embeddings
    found = search(items, items if target is queries else target.embeddings, m, progress=progress)
    rows = np.repeat(np.arange(len(queries)), m), found.rows.ravel()
    options = {"pairs_at_once": pairs_at_once, "progress": progress}
    similarity = conditional_similarity(blocks, queries, target, *rows, **options).reshape(-1, m)
    order = np.argsort(-similarity, axis=1, kind="stable")
    return Neighbors(np.take_along_axis(found.rows, order, 1), np.take_along_axis(similarity, order, 1))


@torch.no_grad()
def conditional_similarity(
    blocks: CrossImageBlocks,
    left: EncodedImages,
    right: EncodedImages,
    left_rows,
    right_rows,
    *,
    pairs_at_once: int = 2048,
    progress=None,
) -> np.ndarray:
    """s of P pairs of images, (P,): row left_rows[p] of one set with row right_rows[p] of the other."""
    rows = [torch.from_numpy(np.array(r, np.int64)) for r in (left_rows, right_rows)]
    if rows[0].shape != rows[1].shape or rows[0].ndim != 1:
        raise InputError(f"rows have shapes {[tuple(r.shape) for r in rows]}; wanted one of each set for every pair")
    left_rows, right_rows = rows
    similarity = np.empty(len(left_rows), np.float32)
    for start in range(0, len(left_rows), _PAIRS):
        some = slice(start, start + _PAIRS)
        i, j = left_rows[some], right_rows[some]
        given_right = blocks.pairs(left.vectors, right.context, i, j, pairs_at_once=pairs_at_once)
        given_left = blocks.pairs(right.vectors, left.context, j, i, pairs_at_once=pairs_at_once)
        similarity[some] = (given_right * given_left).sum(dim=1).cpu().numpy()
        if progress:
            progress("conditioning", min(start + _PAIRS, len(left_rows)), len(left_rows))
    return similarity
