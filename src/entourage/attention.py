"""The cross-attention block the systems share: a vector attends to a set, its context.

b vectors, k context items each, d dimensions.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CrossAttention", "glorot_linear"]


def glorot_linear(n_in: int, n_out: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer initialised as in the paper's framework: Glorot uniform, zero bias."""
    layer = nn.Linear(n_in, n_out, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class Projection(nn.Module):
    """Linear - SiLU - Linear, (..., d) -> (..., d)."""

    def __init__(self, dim: int, *, outer_bias: bool = True):
        super().__init__()
        self.inner = glorot_linear(dim, dim)
        self.outer = glorot_linear(dim, dim, bias=outer_bias)

    def hidden(self, x: Tensor) -> Tensor:
        return F.silu(self.inner(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.hidden(x))


class CrossAttention(nn.Module):
    """One head of cross-attention, CA(q, c, c) = softmax(Q(q) K(c)^T / sqrt(d)) V(c)  (Eq. 2).

    Q, K and V are Projections; Q has a skip connection around it. What depends on the context alone is
    computed once per item by `prepare`, and only up to the hidden layers of K and V, because the last layers
    can move to the query's side without changing the result:

        Q(q) . (W h + b) = (W^T Q(q)) . h + const,   and the softmax does not see a constant per query;
        sum_j a_j (W h_j + b) = W (sum_j a_j h_j) + b,   as the weights a_j sum to 1.

    So the last layer of K needs no bias, and neither layer runs once per neighbour.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.scale = 1 / math.sqrt(dim)
        self.query = Projection(dim)
        self.key = Projection(dim, outer_bias=False)
        self.value = Projection(dim)

    def prepare(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """What a context item (..., d) offers, whoever asks: hidden keys and hidden values, each (..., d)."""
        return self.key.hidden(context), self.value.hidden(context)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Update (b, d) and weights (b, k) for query (b, d) and its prepared context, each (b, k, d)."""
        asked = (query + self.query(query)) @ self.key.outer.weight  # (b, d): W^T Q(q)
        logits = torch.einsum("bd,bkd->bk", asked, keys) * self.scale
        weights = logits.softmax(dim=1)
        return self.value.outer(torch.einsum("bk,bkd->bd", weights, values)), weights
