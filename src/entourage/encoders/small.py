"""A residual net for small pictures, trained from scratch in minutes on a CPU."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.data.preprocessing import Preprocessing
from entourage.encoders.pooling import pooling_layer
from entourage.errors import InputError

__all__ = ["SmallResNet"]


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions around a skip connection.

    Parameters
    ----------
    n_in, n_out : int
        Channels that come in and go out.
    stride : int
        2 halves height and width.
    """

    def __init__(self, n_in: int, n_out: int, stride: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.skip = nn.Sequential(nn.AvgPool2d(stride, ceil_mode=True), nn.Conv2d(n_in, n_out, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        """(b, n_out, H / stride, W / stride), rounded up, of x (b, n_in, H, W)."""
        return F.relu(self.body(x) + self.skip(x))


class SmallResNet(nn.Module):
    """Small pictures with values in [0, 1], (b, H, W) or (b, in_channels, H, W) -> (b, dim) unit vectors.

    Parameters
    ----------
    dim : int
        Dimensions of the vectors.
    width : int
        Channels of the first stage; the last has four times as many.
    in_channels : int
        1 for grey pictures, 3 for colours.
    pooling : {"average", "max", "average+max", "gem"}
        How the feature map becomes one vector.
    last_stride : int
        1 keeps the feature map at H / 4 x W / 4 places instead of H / 8 x W / 8, for methods that attend to places.
    preprocessing : Preprocessing, optional
        How pictures are prepared; default: they keep their size.
    """

    def __init__(
        self,
        dim: int = 128,
        width: int = 32,
        *,
        in_channels: int = 1,
        pooling: str = "average",
        last_stride: int = 2,
        preprocessing: Preprocessing | None = None,
    ) -> None:
        super().__init__()
        if dim < 1 or width < 1:
            raise InputError(f"dim is {dim} and width is {width}; wanted 1 or more of each")
        if in_channels not in (1, 3):
            raise InputError(f"in_channels is {in_channels}; wanted 1 for grey pictures or 3 for colours")
        if last_stride not in (1, 2):
            raise InputError(f"last_stride is {last_stride}; wanted 2, or 1 for a finer feature map")
        self.dim = dim
        self.preprocessing = preprocessing or Preprocessing.small(channels=in_channels)
        self.preprocessing.check_channels(in_channels)
        self.options: dict[str, Any] = {"dim": dim, "width": width, "in_channels": in_channels, "pooling": pooling}
        self.options["last_stride"] = last_stride
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.stages = nn.Sequential(
            ResidualBlock(width, width),
            ResidualBlock(width, 2 * width),
            ResidualBlock(2 * width, 4 * width, last_stride),
        )
        self.pool = pooling_layer(pooling)
        self.projection = nn.Linear(4 * width, dim)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the layout CPU convolutions are fastest in

    def feature_map(self, pictures: Tensor) -> Tensor:
        """(b, 4 width, H / 8, W / 8), rounded up, of pictures; with last_stride 1, H / 4 and W / 4."""
        return self.stages(self.stem(pictures[:, None] if pictures.ndim == 3 else pictures))

    def projected(self, pictures: Tensor) -> Tensor:
        """(b, dim) the vectors before they are scaled to length 1."""
        return self.projection(self.pool(self.feature_map(pictures)))

    def with_map(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """The unit vectors (b, dim) and the feature map they come from, in one pass."""
        maps = self.feature_map(pictures)
        return F.normalize(self.projection(self.pool(maps)), dim=1), maps

    def with_source(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The unit vectors, the feature map, and the tensor that both are made of: the map itself."""
        vectors, maps = self.with_map(pictures)
        return vectors, maps, maps

    def forward(self, pictures: Tensor) -> Tensor:
        """Unit vectors (b, dim)."""
        return self.with_map(pictures)[0]
