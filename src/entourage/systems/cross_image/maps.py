"""Where one image looks in another: attention maps of the blocks, for pairs and for triples."""

import numpy as np
import torch

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import EncodedImages
from entourage.values import Embeddings

__all__ = ["attention_maps", "best_triples"]

_NEAREST = 64


@torch.no_grad()
def attention_maps(blocks: CrossImageBlocks, images: EncodedImages, anchor: int, others) -> np.ndarray:
    """Attn(phi_n(i|a), E(a)) of each of the m other rows i on the map of row a, block by block: (m, N, h, w).

    Row [., n - 1] is what block n reads, asked by phi_{n-1}(i|a). The sum over h w places is 1.
    """
    rows = np.atleast_1d(others)
    if not all(0 <= row < len(images) for row in (anchor, *rows)):
        raise InputError(f"rows are {anchor} and {rows.tolist()}; wanted numbers from 0 to {len(images) - 1}")
    vectors, context = images.vectors[torch.as_tensor(rows)], images.context[[anchor]]
    weights = blocks.attention(vectors[None], context)[:, 0]  # (N, m, L)
    return weights.transpose(0, 1).unflatten(2, images.shape).cpu().numpy()


def best_triples(images: EncodedImages, labels: np.ndarray, count: int) -> np.ndarray:
    """Triples (count, 3) of rows (a, same, other): the nearest image of a's class, and the nearest of another class.

    Those whose nearest other class is nearest: what is hard to tell apart is worth looking at. No class stands in two
    triples. Both must be among the _NEAREST images; there may be fewer triples than asked for.
    """
    labels = np.asarray(labels)
    found = search(Embeddings.from_vectors(images.vectors.numpy()), k=min(_NEAREST, len(images) - 1))
    same = labels[found.rows] == labels[:, None]  # (N, k), nearest first
    triples, margins = [], []
    for row in np.flatnonzero(same.any(axis=1) & ~same.all(axis=1)):
        mate, rival = int(same[row].argmax()), int((~same[row]).argmax())
        triples.append((row, found.rows[row, mate], found.rows[row, rival]))
        margins.append(found.similarities[row, rival])
    chosen, seen = [], set()
    for place in np.argsort(-np.array(margins), kind="stable"):
        row, _, other = triples[place]
        both = {labels[row], labels[other]}
        if not both & seen and len(chosen) < count:
            seen |= both
            chosen.append(triples[place])
    return np.array(chosen, int).reshape(-1, 3)
