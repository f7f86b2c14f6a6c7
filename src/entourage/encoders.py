"""Encoders: pictures in, unit vectors out.

b pictures of H x W grey pixels, d dimensions.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["SmallResNet", "embed"]


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
    """A residual net for small grey pictures, (b, H, W) in [0, 1] -> (b, dim) unit vectors."""

    def __init__(self, dim: int = 128, width: int = 32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.stages = nn.Sequential(
            ResidualBlock(width, width), ResidualBlock(width, 2 * width), ResidualBlock(2 * width, 4 * width)
        )
        self.projection = nn.Linear(4 * width, dim)
        self.to(memory_format=torch.channels_last)  # the layout CPU convolutions are fastest in

    def forward(self, pictures: Tensor) -> Tensor:
        maps = self.stages(self.stem(pictures[:, None]))  # (b, 4 * width, H / 8, W / 8)
        pooled = maps.mean(dim=(2, 3))
        return F.normalize(self.projection(pooled), dim=1)


@torch.no_grad()
def embed(encoder: nn.Module, pixels: np.ndarray, *, at_once: int = 256, progress=None) -> np.ndarray:
    """Vectors (N, d) float32 of pixels (N, H, W) uint8."""
    encoder.eval()
    vectors = []
    for start in range(0, len(pixels), at_once):
        vectors.append(encoder(as_pictures(pixels[start : start + at_once])).numpy())
        if progress:
            progress("embedding", min(start + at_once, len(pixels)), len(pixels))
    return np.concatenate(vectors)


def as_pictures(pixels: np.ndarray) -> Tensor:
    """uint8 pixels (b, H, W) as a tensor of values in [0, 1]."""
    return torch.from_numpy(pixels.astype(np.float32) / 255)
