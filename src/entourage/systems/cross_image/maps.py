"""Where one image looks in another: attention maps of the blocks, for pairs and for triples."""

import numpy as np
import torch
from numpy.typing import ArrayLike

from entourage.errors import InputError, few
from entourage.neighbors import search
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import EncodedImages
from entourage.values import Embeddings

__all__ = ["attention_maps", "best_triples"]

_NEAREST = 64


@torch.no_grad()
def attention_maps(blocks: CrossImageBlocks, images: EncodedImages, anchor: int, others: ArrayLike) -> np.ndarray:
    """Where some images look in another: Attn(phi_n(i|a), E(a)), block by block.

    Parameters
    ----------
    blocks : CrossImageBlocks
        N blocks.
    images : EncodedImages
        What the rows are of.
    anchor : int
        Row a, the image looked at.
    others : array of int, shape (m,)
        Rows i, the images that look.

    Returns
    -------
    ndarray of float32, shape (m, N, h, w)
        At [., n - 1] what block n reads, asked by phi_{n-1}(i|a); the sum over the h w places is 1.
    """
    rows = np.atleast_1d(others)
    if not all(0 <= row < len(images) for row in (anchor, *rows)):
        seen = few(rows.tolist(), "rows")
        raise InputError(f"the rows are {anchor} and {seen}; wanted numbers from 0 to {len(images) - 1}")
    vectors, context = images.vectors[torch.as_tensor(rows)], images.context[[anchor]]
    weights = blocks.attention(vectors[None], context)[:, 0]  # (N, m, L)
    return weights.transpose(0, 1).unflatten(2, images.shape).cpu().numpy()


def best_triples(images: EncodedImages, labels: np.ndarray, count: int) -> np.ndarray:
    """Find images that are hard to tell apart, and so worth looking at.

    Parameters
    ----------
    images : EncodedImages
        N images.
    labels : ndarray, shape (N,)
        Their classes.
    count : int
        How many triples.

    Returns
    -------
    ndarray of int, shape (count, 3)
        Rows (a, same, other): an image, the nearest of its class and the nearest of another class, both among its 64
        nearest. The triples are those whose other class is nearest; no class stands in two of them. There may be fewer
        than asked for.
    """
    labels = np.asarray(labels)
    found = search(Embeddings.from_vectors(images.vectors.numpy()), k=min(_NEAREST, len(images) - 1))
    same = labels[found.rows] == labels[:, None]  # (N, k), nearest first
    triples, margins = [], []
    for row in np.flatnonzero(same.any(axis=1) & ~same.all(axis=1)):
        mate, rival = int(same[row].argmax()), int((~same[row]).argmax())
        triples.append((row, found.rows[row, mate], found.rows[row, rival]))
        margins.append(found.similarities[row, rival])
    chosen: list[tuple[int, int, int]] = []
    seen: set[object] = set()
    for place in np.argsort(-np.array(margins), kind="stable"):
        row, _, other = triples[place]
        both = {labels[row], labels[other]}
        if not both & seen and len(chosen) < count:
            seen |= both
            chosen.append(triples[place])
    return np.array(chosen, int).reshape(-1, 3)
