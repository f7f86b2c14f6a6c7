"""The best of a ranking, ranked anew by conditional similarity: s(q, g) = phi_N(q|g) . phi_N(g|q).

An option for test time: 2 m conditional embeddings for every query, where the unconditional ranking needs none.
"""

import numpy as np
import torch

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import EncodedImages
from entourage.values import Embeddings, Neighbors

__all__ = ["conditional_similarity", "rerank"]

_PAIRS = 2**17  # conditioned together: the more, the less often a context is read


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

    Without a gallery the queries are searched among themselves.
    """
    target = queries if gallery is None else gallery
    items = [Embeddings.from_vectors(images.vectors.numpy()) for images in (queries, target)]
    found = search(items[0], items[0] if gallery is None else items[1], m, progress=progress)
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
    given_right, given_left = [], []
    for start in range(0, len(left_rows), _PAIRS):
        some = slice(start, start + _PAIRS)
        i, j = left_rows[some], right_rows[some]
        given_right.append(blocks.pairs(left.vectors, right.context, i, j, pairs_at_once=pairs_at_once))
        given_left.append(blocks.pairs(right.vectors, left.context, j, i, pairs_at_once=pairs_at_once))
        if progress:
            progress("conditioning", min(start + _PAIRS, len(left_rows)), len(left_rows))
    return (torch.cat(given_right) * torch.cat(given_left)).sum(dim=1).numpy()
