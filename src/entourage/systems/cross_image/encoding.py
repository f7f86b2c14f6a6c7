"""Images as the blocks see them: embeddings, and the places of their feature maps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from entourage.data.batches import PictureBatches
from entourage.errors import InputError
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.values import Embeddings

__all__ = ["EncodedImages", "check_has_map", "encode", "encoded_batches"]


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """vectors (N, d) unit embeddings; context (N, L, d) what a block attends to; shape (h, w) of the map, h w = L.

    ids (N,): those of the image set; without them no image of this set is known to be one of another.
    """

    vectors: Tensor
    context: Tensor
    shape: tuple[int, int]
    ids: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def embeddings(self) -> Embeddings:
        """The vectors, to be searched."""
        return Embeddings.from_vectors(self.vectors.numpy(), self.ids)


def encode(
    encoder: nn.Module,
    blocks: CrossImageBlocks,
    images,
    *,
    at_once: int = 64,
    workers: int | None = None,
    strict: bool = True,
    corrupt: list | None = None,
    progress=None,
) -> EncodedImages:
    """All images of a set, in order, on the processor: 4 N (L + 1) d bytes.

    A picture that cannot be decoded raises; without `strict` it is missing, and its path is appended to `corrupt`.
    """
    rows, vectors, context, shape = [], [], [], None
    options = {"at_once": at_once, "workers": workers, "strict": strict, "corrupt": corrupt, "progress": progress}
    for numbers, found, maps in encoded_batches(encoder, images, **options):
        rows.append(numbers)
        vectors.append(found.cpu())
        context.append(blocks.context(maps).detach().cpu())
        shape = tuple(maps.shape[2:])
    if not rows:
        raise InputError(f"none of the {len(images)} pictures can be decoded; check the files")
    return EncodedImages(torch.cat(vectors), torch.cat(context), shape, images.ids[np.concatenate(rows)])


def encoded_batches(
    encoder: nn.Module, images, *, at_once: int = 64, strict: bool = True, progress=None, **decoding
) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """(rows (b,), vectors (b, d), maps (b, c, h, w)) of one batch after the other, without gradients.

    decoding: workers and corrupt, as PictureBatches takes them.
    """
    check_has_map(encoder)
    encoder.eval()
    device = next(encoder.parameters()).device
    batches = [np.arange(start, min(start + at_once, len(images))) for start in range(0, len(images), at_once)]
    for batch in PictureBatches(images, batches, encoder.preprocessing, strict=strict, **decoding):
        with torch.no_grad():
            vectors, maps = encoder.with_map(batch.pictures.to(device))
        yield batch.rows, vectors, maps
        if progress:
            progress("encoding", int(batch.rows[-1]) + 1, len(images))


def check_has_map(encoder: nn.Module) -> None:
    """Refuse an encoder whose items have no places to attend to."""
    if not hasattr(encoder, "with_map") or getattr(encoder, "in_dim", None) is not None:
        raise InputError(
            f"the encoder is a {type(encoder).__name__}, which has no feature map to attend to; "
            "wanted one of pictures: small, small-rgb or a Hugging Face model"
        )
