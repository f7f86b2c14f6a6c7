"""From a feature map (b, c, h, w) to one vector a picture (b, c)."""

import torch
from torch import Tensor, nn

from entourage.runtime.config import check_known

__all__ = ["GeneralisedMean", "pooling_layer"]


class AveragePooling(nn.Module):
    """The mean of a channel over its places."""

    def forward(self, maps: Tensor) -> Tensor:
        """(b, c) of maps (b, c, h, w)."""
        return maps.mean(dim=(2, 3))


class MaxPooling(nn.Module):
    """The maximum of a channel over its places."""

    def forward(self, maps: Tensor) -> Tensor:
        """(b, c) of maps (b, c, h, w)."""
        return maps.amax(dim=(2, 3))


class AverageAndMaxPooling(nn.Module):
    """The mean of a channel over its places plus its maximum, as in the code of Proxy Anchor (Kim et al. 2020)."""

    def forward(self, maps: Tensor) -> Tensor:
        """(b, c) of maps (b, c, h, w)."""
        return maps.mean(dim=(2, 3)) + maps.amax(dim=(2, 3))


class GeneralisedMean(nn.Module):
    """GeM (Radenović et al. 2018): (mean of x^p)^(1/p) over a channel's places, p learned.

    Parameters
    ----------
    p : float
        What it starts from. p = 1 is the average of what is positive; the larger p, the closer to the maximum.
    floor : float
        The least value that is taken to its power.
    """

    def __init__(self, p: float = 3.0, floor: float = 1e-6) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor(p))
        self.floor = floor  # a power of a negative value has no meaning, and at 0 no gradient

    def forward(self, maps: Tensor) -> Tensor:
        """(b, c) of maps (b, c, h, w)."""
        return maps.clamp(min=self.floor).pow(self.p).mean(dim=(2, 3)).pow(1 / self.p)


_LAYERS: dict[str, type[nn.Module]] = {
    "average": AveragePooling,
    "max": MaxPooling,
    "average+max": AverageAndMaxPooling,
    "gem": GeneralisedMean,
}


def pooling_layer(name: str, others: tuple[str, ...] = ()) -> nn.Module:
    """Build a pooling by its name.

    Parameters
    ----------
    name : {"average", "max", "average+max", "gem"}
        Which pooling.
    others : tuple of str
        Names that the caller knows itself, and an error lists too.

    Returns
    -------
    torch.nn.Module
        From feature maps (b, c, h, w) to (b, c).
    """
    check_known(name, [*_LAYERS, *others], "pooling")
    return _LAYERS[name]()
