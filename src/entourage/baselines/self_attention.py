"""Attention to the item itself, trained as the published refiner is.

b items in a batch, d dimensions.
"""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.baselines.method import training_codes, with_vectors
from entourage.evaluation import mean_average_precision_at_r
from entourage.refiner.paper.attention import CrossAttention
from entourage.training.history import History
from entourage.training.loop import fit_model
from entourage.training.losses import multi_similarity
from entourage.training.sampling import class_balanced_batches
from entourage.training.settings import FitSettings
from entourage.values import Embeddings

__all__ = ["SelfAttentionNetwork", "apply_network", "train_network"]

_BATCH = (64, 2)  # classes, items of each
_ITEMS_AT_ONCE = 1024


class SelfAttentionNetwork(nn.Module):
    """T cross-attention blocks in which every item's context is the item itself as it came in:

    e^t = normalise(e^{t-1} + CA^t(e^{t-1}, e^0, e^0)). With one item to attend to, its weight is 1 and CA^t is V(e^0).
    """

    def __init__(self, dim: int, n_blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(CrossAttention(dim) for _ in range(n_blocks))

    def forward(self, e: Tensor) -> Tensor:
        context = e[:, None]  # (b, 1, d)
        for block in (cast(CrossAttention, each) for each in self.blocks):
            e = F.normalize(e + block(e, *block.prepare(context))[0], dim=1)
        return e


def train_network(
    network: nn.Module,
    training: Embeddings,
    held_out: Embeddings | None,
    *,
    epochs: int,
    patience: int,
    learning_rate: float,
    seed: int,
) -> History:
    """Train a network (b, d) -> (b, d) in place; it keeps its best epoch on the held-out items, or its last."""
    codes = training_codes(training)
    vectors, labels = torch.from_dlpack(training.vectors), torch.from_numpy(codes)

    def loss(batch: np.ndarray) -> Tensor:
        return multi_similarity(F.normalize(network(vectors[batch]), dim=1), labels[batch])

    return fit_model(
        network,
        torch.optim.Adam(network.parameters(), learning_rate, fused=True),
        FitSettings(epochs=epochs, patience=patience),
        batches=lambda epoch: class_balanced_batches(codes, *_BATCH, seed=seed, epoch=epoch),
        loss=loss,
        evaluate=(lambda: mean_average_precision_at_r(apply_network(network, held_out))) if held_out else None,
    )


@torch.no_grad()
def apply_network(network: nn.Module, items: Embeddings) -> Embeddings:
    """Return the items with the vectors that a network (b, d) -> (b, d) computes from theirs."""
    parts = torch.from_dlpack(items.vectors).split(_ITEMS_AT_ONCE)
    return with_vectors(items, torch.cat([network(part) for part in parts]).numpy())
