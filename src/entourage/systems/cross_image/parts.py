"""Parts found without labels: places of other images that are most alike in the key space of a block.

The key K_n(x) of a place decides who attends to it: places of like keys are places the blocks treat alike.
N images of L = h w places, d dimensions: N L unit vectors, searched exactly by `neighbors.search`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.nn import functional as F

from entourage.data.image_set import ImageSet
from entourage.encoders.protocol import FeatureMapEncoder
from entourage.errors import InputError, few
from entourage.neighbors import search
from entourage.runtime.progress import Progress
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import encoded_batches
from entourage.values import Embeddings, Neighbors, brief

__all__ = ["FoundParts", "KeySpace", "find_parts", "key_space"]


@dataclass(frozen=True, eq=False)
class KeySpace:
    """The keys of every place of N images."""

    keys: Embeddings
    """N L unit vectors, those of image r in rows r L .. (r + 1) L - 1, row by row of its map."""
    shape: tuple[int, int]
    """(h, w) of the map."""

    __repr__ = brief

    @property
    def places(self) -> int:
        """L, the number of places of an image."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        """N, the number of images."""
        return len(self.keys) // self.places


@dataclass(frozen=True, eq=False)
class FoundParts:
    """The k images with the places most like each of q chosen ones, the best place of each image, nearest first."""

    rows: np.ndarray
    """(q, k) the images."""
    places: np.ndarray
    """(q, k, 2) their best places, (y, x) on the map."""
    similarities: np.ndarray
    """(q, k) of the keys."""

    __repr__ = brief


def key_space(
    encoder: FeatureMapEncoder,
    blocks: CrossImageBlocks,
    images: ImageSet,
    *,
    block: int | None = None,
    at_once: int = 64,
    workers: int | None = None,
    progress: Progress | None = None,
) -> KeySpace:
    """Compute the keys of every place of every image, 4 N L d bytes.

    Parameters
    ----------
    encoder, blocks
        The encoder and the blocks of one run.
    images : ImageSet
        N pictures.
    block : int, optional
        Whose keys, counted from 1; default: the last.
    at_once : int
        Pictures in a batch.
    workers : int, optional
        Number of threads that decode; default: one per core.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    KeySpace
        N L keys.
    """
    block = len(blocks) if block is None else block
    if not 1 <= block <= len(blocks):
        raise InputError(f"block is {block}; wanted 1 to {len(blocks)}")
    keys, shape = np.empty((len(images), 0, 0), np.float32), (0, 0)
    for rows, _, maps in encoded_batches(encoder, images, at_once=at_once, workers=workers, progress=progress):
        with torch.no_grad():
            found = F.normalize(blocks.blocks[block - 1].key(blocks.context(maps)), dim=2)  # (b, L, d)
        if not keys.size:
            shape = (maps.shape[2], maps.shape[3])
            keys = np.empty((len(images), *found.shape[1:]), np.float32)
        keys[rows] = found.cpu().numpy()
    return KeySpace(Embeddings(keys.reshape(-1, keys.shape[2])), shape)


def find_parts(space: KeySpace, places: ArrayLike, k: int = 8, *, progress: Progress | None = None) -> FoundParts:
    """Find the places of other images that are most like given ones.

    Parameters
    ----------
    space : KeySpace
        The keys of N images.
    places : array of int, shape (q, 3)
        The chosen places: image row, y and x on the map.
    k : int
        How many other images to find for each.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    FoundParts
        The best place of each of the k images, nearest first. It is exact: the (k + 1) L nearest places are of k other
        images at least.
    """
    chosen = np.asarray(places, int).reshape(-1, 3)
    h, w = space.shape
    limits = (len(space), h, w)
    if not len(chosen) or (chosen < 0).any() or (chosen >= limits).any():
        raise InputError(
            f"the places are {few(chosen.tolist(), 'places')}; wanted one or more (row, y, x) below {limits}"
        )
    if not 1 <= k < len(space):
        raise InputError(f"k is {k} for {len(space)} images; wanted 1 to {len(space) - 1} other images")
    queries = Embeddings(space.keys.vectors[chosen[:, 0] * space.places + chosen[:, 1] * w + chosen[:, 2]])
    found = search(queries, space.keys, min((k + 1) * space.places, len(space.keys)), progress=progress)
    parts = [_best_of_each_image(found, query, row, space, k) for query, row in enumerate(chosen[:, 0])]
    return FoundParts(*(np.stack(values) for values in zip(*parts, strict=True)))


def _best_of_each_image(
    found: Neighbors, query: int, own: int, space: KeySpace, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows (k,), places (k, 2), similarities (k,)): the first hit in each other image."""
    images, places = np.divmod(found.rows[query], space.places)
    first = np.sort(np.unique(images, return_index=True)[1])  # in the order of the ranking
    first = first[images[first] != own][:k]
    where = np.stack(np.unravel_index(places[first], space.shape), axis=1)
    return images[first], where, found.similarities[query, first]
