"""Images as the blocks see them: embeddings, and the places of their feature maps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from entourage.data.batches import PictureBatches
from entourage.data.image_set import ImageSet
from entourage.encoders.protocol import Encoder, FeatureMapEncoder
from entourage.errors import InputError
from entourage.runtime.progress import Progress
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.values import Embeddings, brief

__all__ = ["EncodedImages", "check_has_map", "encode", "encoded_batches"]


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """N images as the blocks see them."""

    vectors: Tensor
    """(N, d) unit embeddings."""
    context: Tensor
    """(N, L, d) the places a block attends to."""
    shape: tuple[int, int]
    """(h, w) of the feature map, h w = L."""
    ids: np.ndarray | None = None
    """(N,) those of the image set; without them no image of this set is known to be one of another."""
    corrupt: tuple[str, ...] = ()
    """Paths of the pictures that cannot be decoded, and are missing."""

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def embeddings(self) -> Embeddings:
        """The vectors as Embeddings, to be searched."""
        return Embeddings.from_vectors(self.vectors.numpy(), self.ids)


def encode(
    encoder: FeatureMapEncoder,
    blocks: CrossImageBlocks,
    images: ImageSet,
    *,
    at_once: int = 64,
    workers: int | None = None,
    strict: bool = True,
    progress: Progress | None = None,
) -> EncodedImages:
    """Encode all images of a set, in order; they are held on the processor, 4 N (L + 1) d bytes.

    Parameters
    ----------
    encoder : FeatureMapEncoder
        The encoder of a run.
    blocks : CrossImageBlocks
        The blocks of the same run.
    images : ImageSet
        N pictures.
    at_once : int
        Pictures in a batch.
    workers : int, optional
        Number of threads that decode; default: one per core.
    strict : bool
        Whether a picture that cannot be decoded raises CorruptImage; if not, it is missing, and named.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    EncodedImages
        The pictures that could be decoded.
    """
    rows, vectors, context = [], [], []
    shape: tuple[int, int] = (0, 0)
    pictures = _pictures(encoder, images, at_once, workers, strict)
    for numbers, found, maps in _encoded(encoder, pictures, progress):
        rows.append(numbers)
        vectors.append(found.cpu())
        context.append(blocks.context(maps).detach().cpu())
        shape = (maps.shape[2], maps.shape[3])
    if not rows:
        raise InputError(f"none of the {len(images)} pictures can be decoded; check the files")
    ids = images.ids[np.concatenate(rows)]
    return EncodedImages(torch.cat(vectors), torch.cat(context), shape, ids, tuple(pictures.corrupt))


def encoded_batches(
    encoder: FeatureMapEncoder,
    images: ImageSet,
    *,
    at_once: int = 64,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Encode a set batch by batch, without gradients; a picture that cannot be decoded raises CorruptImage.

    Parameters
    ----------
    encoder, images, at_once, workers, progress
        As in `encode`.

    Yields
    ------
    rows : ndarray of int, shape (b,)
        Which images.
    vectors : Tensor, shape (b, d)
        Their unit embeddings.
    maps : Tensor, shape (b, c, h, w)
        Their feature maps.
    """
    return _encoded(encoder, _pictures(encoder, images, at_once, workers, strict=True), progress)


def _pictures(
    encoder: FeatureMapEncoder, images: ImageSet, at_once: int, workers: int | None, strict: bool
) -> PictureBatches:
    check_has_map(encoder)
    batches = [np.arange(start, min(start + at_once, len(images))) for start in range(0, len(images), at_once)]
    return PictureBatches(images, batches, encoder.preprocessing, workers=workers, strict=strict)


def _encoded(
    encoder: FeatureMapEncoder, pictures: PictureBatches, progress: Progress | None
) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    encoder.eval()
    device = next(encoder.parameters()).device
    for batch in pictures:
        with torch.no_grad():
            vectors, maps = encoder.with_map(batch.pictures.to(device))
        yield batch.rows, vectors, maps
        if progress:
            progress("encoding", int(batch.rows[-1]) + 1, len(pictures.items))


def check_has_map(encoder: Encoder) -> None:
    """Refuse an encoder without a feature map, whose items have no places to attend to.

    Parameters
    ----------
    encoder : Encoder
        Any encoder.
    """
    if not hasattr(encoder, "with_map") or getattr(encoder, "in_dim", None) is not None:
        raise InputError(
            f"the encoder is a {type(encoder).__name__}, which has no feature map to attend to; "
            "wanted an encoder of pictures: small, small-rgb or a Hugging Face model"
        )
