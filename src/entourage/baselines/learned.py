"""Baselines that are trained like a refiner but never look at a neighbour."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.baselines.method import (
    LinearMap,
    Method,
    check_dimensions,
    check_fitted,
    check_not_negative,
    check_share,
    check_whole,
    training_codes,
    with_vectors,
)
from entourage.evaluation import mean_average_precision_at_r
from entourage.refiner.paper.attention import CrossAttention
from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.linear_maps import head_maps_by_epoch
from entourage.training.loop import fit_model
from entourage.training.losses import multi_similarity
from entourage.training.sampling import class_balanced_batches, hold_out_classes
from entourage.training.settings import FitSettings
from entourage.values import Embeddings

__all__ = ["LinearHead", "SelfAttention", "fit_linear_head"]

_BATCH = (64, 2)  # classes, items of each
_ITEMS_AT_ONCE = 1024


def fit_linear_head(training: Embeddings, *, epochs: int, learning_rate: float, seed: int = 0) -> np.ndarray:
    """A map (d, d) that starts as the identity and is trained by the multi-similarity loss of normalise(x M)."""
    check_whole("seed", seed, 0)
    maps = head_maps_by_epoch(
        training.vectors, training_codes(training), [epochs], learning_rate=learning_rate, seed=seed
    )
    return maps[epochs].astype(np.float64)


@dataclass
class LinearHead(LinearMap):
    """A linear map trained on the labels; see `fit_linear_head`."""

    epochs: int = 6
    learning_rate: float = 3e-4

    def __post_init__(self):
        check_whole("epochs", self.epochs, 1)
        check_not_negative("learning_rate", self.learning_rate)

    def fit(self, training: Embeddings, *, seed: int = 0) -> "LinearHead":
        self.map_ = fit_linear_head(training, epochs=self.epochs, learning_rate=self.learning_rate, seed=seed)
        return self


class SelfAttentionNetwork(nn.Module):
    """T cross-attention blocks in which every item's context is the item itself as it came in:

    e^t = normalise(e^{t-1} + CA^t(e^{t-1}, e^0, e^0)). With one thing to look at, its weight is 1 and CA^t is V(e^0).
    """

    def __init__(self, dim: int, n_blocks: int):
        super().__init__()
        self.blocks = nn.ModuleList(CrossAttention(dim) for _ in range(n_blocks))

    def forward(self, e: Tensor) -> Tensor:
        context = e[:, None]  # (b, 1, d)
        for block in self.blocks:
            e = F.normalize(e + block(e, *block.prepare(context))[0], dim=1)
        return e


@dataclass
class SelfAttention(Method):
    """The refiner without its neighbours: "CA only" in Table 4 of Attend to Context.

    Trained as the refiner is, the stopping point chosen on classes held out of training. n_parameters counts whole
    blocks, though their queries and keys make no difference here and stay as they were drawn.
    """

    n_blocks: int = 8
    epochs: int = 30
    learning_rate: float = 1e-4
    patience: int = 5
    """Stop after this many epochs without a better score on the held-out classes."""
    validation_share: float = 0.2
    """Share of the training classes held out."""

    def __post_init__(self):
        for name in ("n_blocks", "epochs", "patience"):
            check_whole(name, getattr(self, name), 1)
        check_not_negative("learning_rate", self.learning_rate)
        check_share("validation_share", self.validation_share, below_one=True)

    @property
    def n_parameters(self) -> int:
        check_fitted(self, "network_")
        return sum(parameter.numel() for parameter in self.network_.parameters())

    def fit(self, training: Embeddings, *, seed: int = 0) -> "SelfAttention":
        check_whole("seed", seed, 0)
        held_out = hold_out_classes(training_codes(training), self.validation_share, seed)
        network = seeded_weights(seed, lambda: SelfAttentionNetwork(training.dim, self.n_blocks))
        self.history_ = _train(
            network,
            training.take(~held_out),
            training.take(held_out) if held_out.any() else None,
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        self.network_ = network
        return self

    def transform(self, items: Embeddings) -> Embeddings:
        check_fitted(self, "network_")
        check_dimensions(items, self.network_.blocks[0].query.inner.in_features)
        return _applied(self.network_, items)


def _train(
    network, training: Embeddings, held_out: Embeddings | None, *, epochs, patience, learning_rate, seed
) -> History:
    """Train a network (b, d) -> (b, d) in place; it keeps its best epoch on the held-out items, or its last."""
    codes = training_codes(training)
    vectors, labels = torch.from_dlpack(training.vectors), torch.from_numpy(codes)
    return fit_model(
        network,
        torch.optim.Adam(network.parameters(), learning_rate, fused=True),
        FitSettings(epochs=epochs, patience=patience),
        batches=lambda epoch: class_balanced_batches(codes, *_BATCH, seed=seed, epoch=epoch),
        loss=lambda batch: multi_similarity(F.normalize(network(vectors[batch]), dim=1), labels[batch]),
        evaluate=held_out and (lambda: mean_average_precision_at_r(_applied(network, held_out))),
    )


@torch.no_grad()
def _applied(network: nn.Module, items: Embeddings) -> Embeddings:
    parts = torch.from_dlpack(items.vectors).split(_ITEMS_AT_ONCE)
    return with_vectors(items, torch.cat([network(part) for part in parts]).numpy())
