"""The block over whole sets on the processor: each thread takes some items through the whole of it.

A thread multiplies alone, so none waits for another between a product and what follows it. Numpy multiplies, not torch,
whose library took a tenth longer on the processor this was measured on. Which items go together depends on how many
there are, not on the number of threads, and so neither does the result.

N items, M context items, k neighbours, d dimensions.
"""

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike
from torch import Tensor, nn

from entourage.refiner import gathering
from entourage.refiner.paper.projections import Offer, Projections
from entourage.runtime.threads import blocks, in_threads
from entourage.values import FloatArray

__all__ = ["offer", "refined"]

ITEMS_AT_ONCE, FEWEST_AT_ONCE = 1024, 128  # a small set is cut into eight parts, so that several threads share it
_BEYOND_FLOAT32 = np.errstate(over="ignore", invalid="ignore")  # of a damaged model; vectors are checked when made


def offer(block: Projections, context: Tensor, finished: bool, table: Tensor) -> None:
    """Fill the table (M, 2d) with what the items of a context (M, d) offer; see CrossAttention.offer."""
    items, filled = _arrays(context, table)
    d = items.shape[1]
    key, value = block.key, block.value
    weight = np.concatenate([_weight(key.inner), _weight(value.inner)])  # (2d, d): both in one product
    bias = np.concatenate([_bias(key.inner), _bias(value.inner)])
    scratch = _Scratch()

    @_BEYOND_FLOAT32
    def prepare(rows: slice) -> None:
        part = filled[rows]
        np.matmul(items[rows], weight.T, out=part)
        gathering.silu(part, bias)
        if finished:
            finished_part = scratch.room(0, len(part), d, part.dtype)
            for half, layer in ((part[:, :d], key.outer), (part[:, d:], value.outer)):
                half[:] = np.matmul(half, _weight(layer).T, out=finished_part)
            if value.outer.bias is not None:
                part[:, d:] += _bias(value.outer)

    for _ in in_threads(prepare, _parts(len(items))):
        pass


def refined(block: Projections, e: Tensor, offered: Offer, rows: Tensor, result: Tensor, weights: Tensor) -> None:
    """Fill result (N, d) and weights (N, k); see CrossAttention.refined."""
    items, table, neighbors, place, shares = _arrays(e, offered.table, rows, result, weights)
    query, key, value = block.query, block.key.outer, block.value.outer
    scratch = _Scratch()

    @_BEYOND_FLOAT32
    def refine(part: slice) -> None:
        x = items[part]
        one, other = (scratch.room(which, len(x), x.shape[1], x.dtype) for which in (0, 1))
        hidden = gathering.silu(np.matmul(x, _weight(query.inner).T, out=one), _bias(query.inner))
        asked = gathering.add(np.matmul(hidden, _weight(query.outer).T, out=other), x, _bias(query.outer))
        if not offered.finished:
            asked = np.matmul(asked, _weight(key), out=one)
        update, shares[part] = gathering.attend(asked, table, neighbors[part], block.scale, out=place[part])
        if not offered.finished:
            update = np.matmul(update, _weight(value).T, out=other)
        gathering.unit_sum(1, x, 1, update, bias=None if offered.finished else _bias(value), out=place[part])

    for _ in in_threads(refine, _parts(len(items))):
        pass


def _parts(n: int) -> Iterator[slice]:
    return blocks(n, max(FEWEST_AT_ONCE, min(ITEMS_AT_ONCE, -(-n // 8))))


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().numpy() for tensor in tensors]


def _weight(layer: nn.Linear) -> FloatArray:
    return layer.weight.detach().numpy()


def _bias(layer: nn.Linear) -> FloatArray:
    return layer.bias.detach().numpy()


class _Scratch:
    """Memory that each thread uses again: fresh memory would have to be cleared by the system each time."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def room(self, which: int, n: int, d: int, dtype: DTypeLike) -> FloatArray:
        """An (n, d) array of the calling thread, overwritten by the next call with the same `which`."""
        kept: dict[int, FloatArray] = self._of_thread.__dict__.setdefault("kept", {})
        if which not in kept:
            kept[which] = np.empty((ITEMS_AT_ONCE, d), dtype)
        return kept[which][:n]
