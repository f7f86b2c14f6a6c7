"""From a feature map (b, c, h, w) to one vector a picture (b, c)."""

import torch
from torch import Tensor, nn

from entourage.runtime.config import check_known

__all__ = ["GeneralisedMean", "pooling_layer"]


class AveragePooling(nn.Module):
    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(dim=(2, 3))


class MaxPooling(nn.Module):
    def forward(self, maps: Tensor) -> Tensor:
        return maps.amax(dim=(2, 3))


class GeneralisedMean(nn.Module):
    """GeM (Radenović et al. 2018): (mean of x^p)^(1/p) over a channel's places, p learned.

    p = 1 is the average of what is positive; the larger p, the closer to the maximum.
    """

    def __init__(self, p: float = 3.0, floor: float = 1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(p))
        self.floor = floor  # a power of a negative value has no meaning, and at 0 no gradient

    def forward(self, maps: Tensor) -> Tensor:
        return maps.clamp(min=self.floor).pow(self.p).mean(dim=(2, 3)).pow(1 / self.p)


_LAYERS = {"average": AveragePooling, "max": MaxPooling, "gem": GeneralisedMean}


def pooling_layer(name: str, others: tuple[str, ...] = ()) -> nn.Module:
    """The pooling of that name: average, max or gem; `others` are names the caller knows itself."""
    check_known(name, [*_LAYERS, *others], "pooling")
    return _LAYERS[name]()
