"""An encoder whose embedding is cut into slices, each of the same length."""

import math

from torch import Tensor, nn
from torch.nn import functional as F

from entourage.errors import InputError

__all__ = ["SlicedEncoder", "unit_slices"]


def unit_slices(vectors: Tensor, count: int) -> Tensor:
    """(b, d) -> (b, count, d / count), every slice scaled to length 1."""
    return F.normalize(vectors.unflatten(1, (count, -1)), dim=2)


class SlicedEncoder(nn.Module):
    """Another encoder's projection x in K slices: e = [x_1 / |x_1|, ..., x_K / |x_K|] / sqrt(K).

    The cosine of two such vectors is the mean of the cosines of their slices: no slice outweighs another. A slice's
    direction does not depend on the others, so that what is learned from one leaves the others' weights alone.
    """

    def __init__(self, encoder: nn.Module, slices: int):
        super().__init__()
        if slices < 1 or encoder.dim % slices:
            raise InputError(
                f"{encoder.dim} dimensions for {slices} slices; wanted as many for each: "
                f"choose dim a multiple of {max(slices, 1)}, or another number of slices"
            )
        self.encoder, self.slices, self.dim = encoder, slices, encoder.dim
        self.options = {"slices": slices}

    @property
    def preprocessing(self):
        return self.encoder.preprocessing

    @property
    def in_dim(self) -> int | None:
        """Of the vectors it takes; None if it takes pictures."""
        return getattr(self.encoder, "in_dim", None)

    def feature_map(self, pictures: Tensor) -> Tensor:
        return self.encoder.feature_map(pictures)

    def with_map(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors and the inner encoder's feature map, in one pass."""
        return self.with_source(pictures)[:2]

    def with_source(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The vectors, the inner encoder's feature map, and what both are made of."""
        vectors, maps, source = self.encoder.with_source(pictures)
        cut = unit_slices(vectors, self.slices).flatten(1) / math.sqrt(self.slices)
        return cut, maps, source  # the length of the whole is nothing to a slice's direction

    def projected(self, pictures: Tensor) -> Tensor:
        """(b, dim), before they are scaled to length 1: every slice of length 1."""
        return unit_slices(self.encoder.projected(pictures), self.slices).flatten(1)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.projected(pictures) / math.sqrt(self.slices)
