"""The cross-attention block the systems share: a vector attends to a set, its context.

Batches of b vectors with k context items each in training; whole sets of N vectors, whose context items are among
M, in refinement. d dimensions.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage import gathering

__all__ = ["CrossAttention", "Offer", "glorot_linear"]

_ITEMS_AT_ONCE = 4096


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


class CrossAttention(nn.Module):
    """One head of cross-attention, CA(q, c, c) = softmax(Q(q) K(c)^T / sqrt(d)) V(c)  (Eq. 2).

    Q, K and V are Projections; Q has a skip connection around it. What depends on the context alone is
    computed once per item by `prepare`, and only up to the hidden layers of K and V, because the last layers
    can move to the query's side without changing the result:

        Q(q) . (W h + b) = (W^T Q(q)) . h + const,   and the softmax does not see a constant per query;
        sum_j a_j (W h_j + b) = W (sum_j a_j h_j) + b,   as the weights a_j sum to 1.

    So the last layer of K needs no bias, and neither layer runs once per neighbour.

    Whole sets are refined by `offer`, once per context item, and `refined`, once per query; gathering, softmax and
    weighted sum are one pass. What remains are products of an (n, d) matrix with a (d, d) one: two per context item
    and four per query. A finished offer turns it round, four per context item and two per query: less work where
    there are more queries than context items, as when queries keep coming to the same gallery.
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

    def finished(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (..., d) of context items (..., d), their last layers applied, for `among`."""
        return self.key(context), self.value(context)

    def among(self, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Updates (g, m, d) and weights (g, m, k) of m queries (g, m, d) for each of g contexts, each (g, k, d).

        Here many queries share a context, so that two matrix products serve for gathering, and the last layers of K
        and V are applied on the context's side (`finished`): k items instead of m queries.
        """
        logits = (queries + self.query(queries)) @ keys.mT * self.scale
        weights = logits.softmax(dim=2)
        return weights @ values, weights

    @torch.no_grad()
    def offer(self, context: Tensor, *, finished: bool = False, out: Tensor | None = None) -> Offer:
        """What the items of a context (M, d) offer, as a table to gather from; out: where to put it, if anywhere."""
        weight = torch.cat([self.key.inner.weight, self.value.inner.weight])  # (2d, d): both in one product
        bias = torch.cat([self.key.inner.bias, self.value.inner.bias])
        table = _room(len(context), len(weight), context) if out is None else out
        for part, items in zip(table.split(_ITEMS_AT_ONCE), context.split(_ITEMS_AT_ONCE), strict=True):
            F.silu(torch.addmm(bias, items, weight.T, out=part), inplace=True)
            if finished:
                keys, values = part.chunk(2, dim=1)
                torch.cat([self.key.outer(keys), self.value.outer(values)], dim=1, out=part)
        return Offer(table, finished)

    @torch.no_grad()
    def refined(self, e: Tensor, offer: Offer, rows: Tensor, *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """normalise(e + CA(e, c, c)) (N, d) and weights (N, k) of e (N, d), whose context c are rows (N, k) of what
        is offered."""
        result = _room(*e.shape, e) if out is None else out
        weights = torch.empty(rows.shape, dtype=e.dtype, device=e.device)
        tables = (table.split(_ITEMS_AT_ONCE) for table in (e, rows, result, weights))
        for part, context, place, shares in zip(*tables, strict=True):
            asked = self.query(part).add_(part)
            if not offer.finished:
                asked = asked @ self.key.outer.weight
            update, shares[:] = _attend(asked, offer.table, context, self.scale)
            if not offer.finished:
                update = self.value.outer(update)
            _unit_sum(part, update, out=place)
        return result, weights


# ---- on the processor compiled kernels, on other devices torch ---------------------------------------------------


def _compiled_for(tensor: Tensor) -> bool:
    return tensor.is_cpu


def _room(n: int, d: int, like: Tensor) -> Tensor:
    """An empty (n, d) matrix; numpy asks the system for large pages, which are faster to get and to gather from."""
    if not _compiled_for(like):
        return torch.empty(n, d, dtype=like.dtype, device=like.device)
    return torch.from_numpy(np.empty((n, d), like[:0].numpy().dtype))


def _attend(asked: Tensor, table: Tensor, rows: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Mixed values (n, d) and weights (n, k); see gathering.attend."""
    if _compiled_for(asked):
        return tuple(map(torch.from_numpy, gathering.attend(asked.numpy(), table.numpy(), rows.numpy(), scale)))
    keys, values = table[rows].chunk(2, dim=2)
    weights = (torch.einsum("bd,bkd->bk", asked, keys) * scale).softmax(dim=1)
    return torch.einsum("bk,bkd->bd", weights, values), weights


def _unit_sum(x: Tensor, y: Tensor, *, out: Tensor) -> None:
    if _compiled_for(x):
        gathering.unit_sum(1, x.numpy(), 1, y.numpy(), out=out.numpy())
    else:
        out.copy_(F.normalize(x + y, dim=1))
