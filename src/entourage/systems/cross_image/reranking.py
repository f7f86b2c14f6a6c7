"""The best of a ranking, ranked anew by conditional similarity: s(q, g) = phi_N(q|g) . phi_N(g|q).

An option for test time: 2 m conditional embeddings for every query, where the unconditional ranking needs none.
"""

import numpy as np
import torch
from torch import Tensor

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import EncodedImages
from entourage.values import Embeddings, Neighbors

__all__ = ["conditional_similarity", "rerank"]


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
    given_right = _given(blocks, left.vectors[rows[0]], right.context, rows[1], pairs_at_once, progress)
    given_left = _given(blocks, right.vectors[rows[1]], left.context, rows[0], pairs_at_once, progress)
    return (given_right * given_left).sum(dim=1).numpy()


@torch.no_grad()
def _given(blocks: CrossImageBlocks, vectors: Tensor, context: Tensor, rows: Tensor, at_once: int, progress) -> Tensor:
    """phi_N (P, d) of vectors (P, d), each given context[rows[p]] of (M, L, d); block by block, so that the keys and
    values of one block are held at a time."""
    state = vectors.clone()
    needed, places = rows.unique(return_inverse=True)
    order = places.argsort(stable=True)  # pairs of one context side by side: its keys are read from the cache
    for number, block in enumerate(blocks.blocks):
        keys, values = _finished(block, context[needed], at_once)
        for some in order.split(at_once):
            where = places[some]
            state[some] = blocks.step(block, state[some, None], keys[where], values[where])[0][:, 0]
        if progress:
            progress("conditioning", number + 1, len(blocks))
    return state


def _finished(block, context: Tensor, at_once: int) -> tuple[Tensor, Tensor]:
    parts = [block.finished(some) for some in context.split(at_once)]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
