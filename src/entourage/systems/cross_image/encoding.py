"""Images as the blocks see them: embeddings, and the places of their feature maps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from entourage.picture_batches import PictureBatches
from entourage.systems.cross_image.blocks import CrossImageBlocks

__all__ = ["EncodedImages", "encode", "encoded_batches"]


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """vectors (N, d) unit embeddings; context (N, L, d) what a block attends to; shape (h, w) of the map, h w = L."""

    vectors: Tensor
    context: Tensor
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.vectors)


def encode(
    encoder: nn.Module,
    blocks: CrossImageBlocks,
    images,
    *,
    at_once: int = 64,
    workers: int | None = None,
    progress=None,
) -> EncodedImages:
    """All images of a set, in order, on the processor: 4 N (L + 1) d bytes. A picture that cannot be decoded raises."""
    vectors, context, shape = [], [], None
    for _, found, maps in encoded_batches(encoder, images, at_once=at_once, workers=workers, progress=progress):
        vectors.append(found.cpu())
        context.append(blocks.context(maps).detach().cpu())
        shape = tuple(maps.shape[2:])
    return EncodedImages(torch.cat(vectors), torch.cat(context), shape)


def encoded_batches(
    encoder: nn.Module, images, *, at_once: int = 64, workers: int | None = None, progress=None
) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """(rows (b,), vectors (b, d), maps (b, c, h, w)) of one batch after the other, without gradients."""
    encoder.eval()
    device = next(encoder.parameters()).device
    batches = [np.arange(start, min(start + at_once, len(images))) for start in range(0, len(images), at_once)]
    for batch in PictureBatches(images, batches, encoder.preprocessing, workers=workers, strict=True):
        with torch.no_grad():
            vectors, maps = encoder.with_map(batch.pictures.to(device))
        yield batch.rows, vectors, maps
        if progress:
            progress("encoding", int(batch.rows[-1]) + 1, len(images))
