"""A residual net for small pictures, trained from scratch in minutes on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.encoders.pooling import pooling_layer
from entourage.errors import InputError
from entourage.preprocessing import Preprocessing

__all__ = ["SmallResNet"]


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions around a skip, halving height and width."""

    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.skip = nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), nn.Conv2d(n_in, n_out, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x))


class SmallResNet(nn.Module):
    """Small pictures with values in [0, 1], (b, H, W) or (b, in_channels, H, W) -> (b, dim) unit vectors."""

    def __init__(
        self,
        dim: int = 128,
        width: int = 32,
        *,
        in_channels: int = 1,
        pooling: str = "average",
        preprocessing: Preprocessing | None = None,
    ):
        super().__init__()
        if dim < 1 or width < 1:
            raise InputError(f"dim is {dim} and width is {width}; wanted 1 or more of each")
        self.dim = dim
        self.preprocessing = preprocessing or Preprocessing.small(channels=in_channels)
        self.options = {"dim": dim, "width": width, "in_channels": in_channels, "pooling": pooling}
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.stages = nn.Sequential(
            ResidualBlock(width, width), ResidualBlock(width, 2 * width), ResidualBlock(2 * width, 4 * width)
        )
        self.pool = pooling_layer(pooling)
        self.projection = nn.Linear(4 * width, dim)
        self.to(memory_format=torch.channels_last)  # the layout CPU convolutions are fastest in

    def feature_map(self, pictures: Tensor) -> Tensor:
        """(b, 4 * width, H / 8, W / 8), rounded up."""
        return self.stages(self.stem(pictures[:, None] if pictures.ndim == 3 else pictures))

    def projected(self, pictures: Tensor) -> Tensor:
        """(b, dim), before they are scaled to length 1."""
        return self.projection(self.pool(self.feature_map(pictures)))

    def forward(self, pictures: Tensor) -> Tensor:
        return F.normalize(self.projected(pictures), dim=1)
