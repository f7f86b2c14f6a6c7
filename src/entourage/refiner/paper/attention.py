"""The cross-attention block the systems share: a vector attends to a set, its context.

Batches of b vectors with k context items each in training; whole sets of N vectors, whose context items are among
M, in refinement. d dimensions.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from entourage.refiner.paper import attention_cpu as cpu
from entourage.refiner.paper.projections import Offer, Projections

__all__ = ["CrossAttention"]

_ITEMS_AT_ONCE = 4096


class CrossAttention(Projections):
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

    def prepare(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Compute hidden keys and hidden values of context items (..., d), each (..., d), for any query."""
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
        table = _room(len(context), 2 * context.shape[1], context) if out is None else out
        (cpu.offer if context.is_cpu else _offer)(self, context, finished, table)
        return Offer(table, finished)

    @torch.no_grad()
    def refined(self, e: Tensor, offer: Offer, rows: Tensor, *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """normalise(e + CA(e, c, c)) (N, d) and weights (N, k) of e (N, d), whose context c are rows (N, k) of what
        is offered."""
        result = _room(len(e), e.shape[1], e) if out is None else out
        weights = torch.empty(rows.shape, dtype=e.dtype, device=e.device)
        (cpu.refined if e.is_cpu else _refined)(self, e, offer, rows, result, weights)
        return result, weights


# ---- whole sets, on other devices than the processor -------------------------------------------------------------


def _room(n: int, d: int, like: Tensor) -> Tensor:
    """An empty (n, d) matrix; numpy asks the system for large pages, which are faster to get and to gather from."""
    if not like.is_cpu:
        return torch.empty(n, d, dtype=like.dtype, device=like.device)
    return torch.from_numpy(np.empty((n, d), like[:0].numpy().dtype))


def _offer(block: CrossAttention, context: Tensor, finished: bool, table: Tensor) -> None:
    for part, items in zip(table.split(_ITEMS_AT_ONCE), context.split(_ITEMS_AT_ONCE), strict=True):
        keys, values = block.prepare(items)
        if finished:
            keys, values = block.key.outer(keys), block.value.outer(values)
        torch.cat([keys, values], dim=1, out=part)


def _refined(block: CrossAttention, e: Tensor, offer: Offer, rows: Tensor, result: Tensor, weights: Tensor) -> None:
    tables = (table.split(_ITEMS_AT_ONCE) for table in (e, rows, result, weights))
    for part, context, place, shares in zip(*tables, strict=True):
        asked = part + block.query(part)
        if not offer.finished:
            asked = asked @ block.key.outer.weight
        keys, values = offer.table[context].chunk(2, dim=2)
        shares[:] = (torch.einsum("bd,bkd->bk", asked, keys) * block.scale).softmax(dim=1)
        update = torch.einsum("bk,bkd->bd", shares, values)
        if not offer.finished:
            update = block.value.outer(update)
        place.copy_(F.normalize(part + update, dim=1))
