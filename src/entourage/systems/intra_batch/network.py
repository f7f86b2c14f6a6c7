"""The message-passing network: every item of a group sends messages to all of them, itself included.

"Learning Intra-Batch Connections for Deep Metric Learning" (Seidenschwarz, Elezi and Leal-Taixé 2021), Eq. 2 to 6.
Groups of s items, of d dimensions; M heads of d / M each. Any dimensions may stand before (s, d): a batch is one group,
many groups are (n, s, d).
"""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from entourage.errors import InputError
from entourage.refiner.paper.projections import glorot_linear

__all__ = ["MessagePassing", "Messages", "Step"]


class Messages(nn.Module):
    """Multi-head dot-product attention, the sum of messages that each receiver i takes from the senders j:

        a_ij^m = softmax_j((W_q^m h_i) . (W_k^m h_j) / sqrt(d / M)),   cat_m(sum_j a_ij^m W^m h_j) W_o   (Eq. 2 to 4)

    Eq. 3 has sqrt(d), which for M = 1 is the same.

    Parameters
    ----------
    dim : int
        d, the dimensions of the embeddings.
    heads : int
        M, a divisor of d.
    dropout : float
        Share of the attention weights left out in training.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if dim % heads:
            raise InputError(
                f"the embeddings have {dim} dimensions, which {heads} heads do not divide evenly; wanted a divisor of "
                f"{dim}: change heads"
            )
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.out = (glorot_linear(dim, dim) for _ in range(4))

    def forward(self, receivers: Tensor, senders: Tensor) -> Tensor:
        """The messages (..., r, d) that receivers (..., r, d) take from senders (..., s, d)."""
        return self.mixed(self.query(receivers), self.key(senders), self.value(senders))

    def mixed(self, query: Tensor, key: Tensor, value: Tensor, senders: Tensor | None = None) -> Tensor:
        """The messages of queries, keys and values that are computed already.

        Parameters
        ----------
        query : Tensor, shape (..., r, d)
            W_q h of the receivers.
        key, value : Tensor, shape (..., s, d)
            W_k h and W h of the senders.
        senders : Tensor of bool, shape (..., s), optional
            Which of them send; default: all.

        Returns
        -------
        Tensor, shape (..., r, d)
            The sum of messages that each receiver takes.
        """
        rate = self.dropout if self.training else 0.0
        q, k, v = (
            x.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for x in (query, key, value)
        )  # (..., M, s, d / M)
        mask = None if senders is None else senders[..., None, None, :]  # alike for all heads and receivers
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        return self.out(mixed.transpose(-3, -2).flatten(-2))


class Step(nn.Module):
    """h <- LayerNorm(f + FF(f)),  f = LayerNorm(h + messages),  FF = Linear - ReLU - Linear   (Eq. 5 and 6).

    Parameters
    ----------
    dim, heads
        As in `Messages`.
    feed_forward : int
        Width of the hidden layer of FF, in multiples of dim.
    dropout : float
        Share of attention weights and of activations left out in training.
    """

    def __init__(self, dim: int, heads: int, feed_forward: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = feed_forward * dim
        self.messages = Messages(dim, heads, dropout)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, dim), nn.Dropout(dropout)
        )
        self.after_messages, self.after_feed_forward = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        """The next states (..., s, d) of groups h (..., s, d)."""
        return self.updated(h, self.messages(h, h))

    def updated(self, h: Tensor, messages: Tensor) -> Tensor:
        """The next states (..., d) of items h (..., d) that took messages (..., d): Eq. 5 and 6, item by item."""
        f = self.after_messages(h + self.dropout(messages))
        return self.after_feed_forward(f + self.feed_forward(f))


class MessagePassing(nn.Module):
    """L steps over groups of embeddings (..., s, d) -> (..., s, d). The order of a group does not matter.

    Parameters
    ----------
    dim : int
        d, the dimensions of the embeddings.
    steps : int
        L, the number of message-passing steps.
    heads, feed_forward, dropout
        As in `Step`.
    """

    steps: Any  # a ModuleList of Step

    def __init__(self, dim: int, steps: int = 1, heads: int = 2, feed_forward: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.options: dict[str, Any] = {
            "dim": dim,
            "steps": steps,
            "heads": heads,
            "feed_forward": feed_forward,
            "dropout": dropout,
        }
        self.steps = nn.ModuleList(Step(dim, heads, feed_forward, dropout) for _ in range(steps))

    @property
    def dim(self) -> int:
        """d, the dimensions of the embeddings."""
        return self.options["dim"]

    def forward(self, h: Tensor) -> Tensor:
        """Refined embeddings (..., s, d) of groups h (..., s, d)."""
        for step in self.steps:
            h = step(h)
        return h
