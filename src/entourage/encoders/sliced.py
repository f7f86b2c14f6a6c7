"""An encoder whose embedding is cut into slices, each of the same length."""

import math
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from entourage.data.preprocessing import Preprocessing
from entourage.encoders.protocol import Encoder
from entourage.errors import InputError

__all__ = ["SlicedEncoder", "unit_slices"]


def unit_slices(vectors: Tensor, count: int) -> Tensor:
    """Cut vectors into slices, each scaled to length 1.

    Parameters
    ----------
    vectors : Tensor, shape (b, d)
        Of any length.
    count : int
        K, a divisor of d.

    Returns
    -------
    Tensor, shape (b, K, d / K)
        The slices of each vector.
    """
    return F.normalize(vectors.unflatten(1, (count, -1)), dim=2)


class SlicedEncoder(nn.Module):
    """Another encoder's projection x in K slices: e = [x_1 / |x_1|, ..., x_K / |x_K|] / sqrt(K).

    The cosine of two such vectors is the mean of the cosines of their slices: no slice outweighs another. A slice's
    direction does not depend on the others, so that what is learned from one leaves the others' weights alone.

    Parameters
    ----------
    encoder : Encoder
        The encoder inside.
    slices : int
        K, a divisor of its dimensions.
    """

    encoder: Any  # a module with the methods of an Encoder

    def __init__(self, encoder: Encoder, slices: int) -> None:
        super().__init__()
        if slices < 1 or encoder.dim % slices:
            raise InputError(
                f"the encoder has {encoder.dim} dimensions, which {slices} slices do not divide evenly; wanted the "
                f"same number for each: make dim a multiple of {max(slices, 1)}, or choose another number of slices"
            )
        self.encoder, self.slices, self.dim = encoder, slices, encoder.dim
        self.options = {"slices": slices}

    @property
    def preprocessing(self) -> Preprocessing | None:
        """That of the encoder inside."""
        return self.encoder.preprocessing

    @property
    def in_dim(self) -> int | None:
        """Dimensions of the vectors it takes; None if it takes pictures."""
        return getattr(self.encoder, "in_dim", None)

    def feature_map(self, pictures: Tensor) -> Tensor:
        """(b, c, h, w) of pictures (b, C, H, W): the inner encoder's."""
        return self.encoder.feature_map(pictures)

    def with_map(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """The unit vectors (b, dim) and the inner encoder's feature map (b, c, h, w), in one pass."""
        return self.with_source(pictures)[:2]

    def with_source(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The unit vectors, the inner encoder's feature map, and the tensor that both are made of."""
        vectors, maps, source = self.encoder.with_source(pictures)
        cut = unit_slices(vectors, self.slices).flatten(1) / math.sqrt(self.slices)
        return cut, maps, source  # the length of the whole is nothing to a slice's direction

    def projected(self, pictures: Tensor) -> Tensor:
        """(b, dim) before the whole is scaled to length 1: every slice has length 1."""
        return unit_slices(self.encoder.projected(pictures), self.slices).flatten(1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Unit vectors (b, dim)."""
        return self.projected(pictures) / math.sqrt(self.slices)
