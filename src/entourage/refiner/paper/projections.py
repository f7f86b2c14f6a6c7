"""What a cross-attention block is made of: the maps Q, K and V, and the table of keys and values of its context.

M context items, d dimensions.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Offer", "Projection", "Projections", "glorot_linear"]


def glorot_linear(n_in: int, n_out: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer initialised as in the paper's framework: Glorot uniform, zero bias."""
    layer = nn.Linear(n_in, n_out, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class Projection(nn.Module):
    """Linear - SiLU - Linear, (..., d) -> (..., d)."""

    def __init__(self, dim: int, *, outer_bias: bool = True) -> None:
        super().__init__()
        self.inner = glorot_linear(dim, dim)
        self.outer = glorot_linear(dim, dim, bias=outer_bias)

    def hidden(self, x: Tensor) -> Tensor:
        """SiLU(Linear(x)), without the last layer."""
        return F.silu(self.inner(x), inplace=not torch.is_grad_enabled())

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.hidden(x))


@dataclass(frozen=True)
class Offer:
    """What context items offer in one block, whoever asks."""

    table: Tensor
    """(M, 2d): the key and the value of each item, side by side."""
    finished: bool
    """Whether the last layers of K and V are in them, or are left to the query's side."""


class Projections(nn.Module):
    """The learned part of a block: Q, K and V, each (..., d) -> (..., d), and the scale of its logits."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(dim)
        self.query = Projection(dim)
        self.key = Projection(dim, outer_bias=False)
        self.value = Projection(dim)
