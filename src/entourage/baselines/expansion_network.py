"""Query expansion whose weights are learned: attention among an item and its neighbours decides what each adds.

"Attention-Based Query Expansion Learning" (Gordo et al. 2020), and, one on top of the other along the graph of nearest
neighbours, "Learning Query Expansion over the Nearest Neighbor Graph" (Klein and Wolf 2021).
b items in a batch, k neighbours of each, d dimensions, w the width of the encoder.
"""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.baselines.method import training_codes, with_vectors
from entourage.evaluation import mean_average_precision_at_r
from entourage.neighbors import search
from entourage.training.history import History
from entourage.training.loop import fit_model
from entourage.training.losses import multi_similarity
from entourage.training.sampling import class_balanced_batches
from entourage.training.settings import FitSettings
from entourage.values import Embeddings

__all__ = ["Aggregator", "ExpansionNetwork", "expanded_both", "expanded_by", "train_expansion"]

_HEADS = 4
_BATCH = (64, 2)  # classes, items of each
_ITEMS_AT_ONCE = 512


class Aggregator(nn.Module):
    """Expand a query by its neighbours with weights from a transformer encoder.

        t = encoder(W x + p),   w_j = cos(t_0, t_j),   q = normalise(x_0 + sum_j w_j x_j)

    x_0 is the query and x_j its j-th neighbour; p_j is learned and tells the encoder which of them is which. What is
    added are the vectors themselves, as in the paper: the encoder's output only weighs them.
    """

    def __init__(self, dim: int, k: int, width: int, layers: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, width)
        self.places = nn.Parameter(0.02 * torch.randn(1 + k, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, _HEADS, 4 * width, dropout=0.1, batch_first=True) for _ in range(layers)
        )
        self.relevant = nn.Linear(width, 1)

    def encoded(self, x: Tensor) -> Tensor:
        """The encoder's output (b, 1 + k, w) for queries and neighbours (b, 1 + k, d)."""
        encoded = self.project(x) + self.places[: x.shape[1]]
        for layer in self.layers:
            encoded = layer(encoded)
        return encoded

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Expanded queries (b, d) and, for each neighbour, the logit (b, k) that it is of the query's class."""
        encoded = self.encoded(x)
        directions = F.normalize(encoded, dim=2)
        weights = torch.einsum("bw,bkw->bk", directions[:, 0], directions[:, 1:])
        expanded = x[:, 0] + torch.einsum("bk,bkd->bd", weights, x[:, 1:])
        return F.normalize(expanded, dim=1), self.relevant(encoded[:, 1:])[:, :, 0]


class ExpansionNetwork(nn.Module):
    """Aggregators one on top of the other: each expands items by neighbours that those below it have expanded.

    One of them is learned query expansion, several are graph query expansion, which reaches as many steps into the
    graph of nearest neighbours.
    """

    def __init__(self, dim: int, k: int, width: int, layers: int, hops: int) -> None:
        super().__init__()
        self.hops = nn.ModuleList(Aggregator(dim, k, width, layers) for _ in range(hops))

    def forward(self, vectors: Tensor, rows: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Expanded nodes (b, d) and logits (b, k) of their neighbours, from vectors (N, d) and neighbours (N, k)."""
        return self._expanded(vectors, rows, nodes, len(self.hops))

    def _expanded(self, vectors: Tensor, rows: Tensor, nodes: Tensor, hops: int) -> tuple[Tensor, Tensor]:
        around = torch.cat([nodes[:, None], rows[nodes]], dim=1)  # (b, 1 + k)
        if hops == 1:
            below = vectors[around]
        else:
            below = self._expanded(vectors, rows, around.flatten(), hops - 1)[0].unflatten(0, around.shape)
        return cast(tuple[Tensor, Tensor], self.hops[hops - 1](below))


def train_expansion(
    network: ExpansionNetwork,
    training: Embeddings,
    held_out: Embeddings | None,
    k: int,
    *,
    epochs: int,
    patience: int,
    learning_rate: float,
    seed: int,
) -> History:
    """Train a network in place; it keeps its best epoch on the held-out items, or its last.

    The loss is that of all trained baselines, multi-similarity of the expanded items, and the paper's auxiliary one:
    cross-entropy of whether each neighbour is of the item's class.
    """
    codes = training_codes(training)
    vectors, labels = torch.from_dlpack(training.vectors), torch.from_numpy(codes)
    rows = torch.from_dlpack(search(training, k=min(k, len(training) - 1)).rows)

    def loss(batch: np.ndarray) -> Tensor:
        nodes = torch.from_numpy(batch)
        expanded, logits = network(vectors, rows, nodes)
        same = (labels[rows[nodes]] == labels[nodes][:, None]).float()
        return multi_similarity(expanded, labels[nodes]) + F.binary_cross_entropy_with_logits(logits, same)

    return fit_model(
        network,
        torch.optim.Adam(network.parameters(), learning_rate),
        FitSettings(epochs=epochs, patience=patience, seed=seed),
        batches=lambda epoch: class_balanced_batches(codes, *_BATCH, seed=seed, epoch=epoch),
        loss=loss,
        evaluate=(lambda: mean_average_precision_at_r(expanded_by(network, held_out, k))) if held_out else None,
    )


@torch.no_grad()
def expanded_by(network: ExpansionNetwork, items: Embeddings, k: int) -> Embeddings:
    """Expand all items among themselves, hop by hop: each expands what the one before has expanded."""
    if len(items) == 1:  # nobody to expand by
        return items
    rows = torch.from_dlpack(search(items, k=min(k, len(items) - 1)).rows)
    around = torch.cat([torch.arange(len(items))[:, None], rows], dim=1)  # (N, 1 + k)
    vectors = torch.from_dlpack(items.vectors)
    for hop in network.hops:
        vectors = torch.cat([hop(vectors[part])[0] for part in around.split(_ITEMS_AT_ONCE)])
    return with_vectors(items, vectors.numpy())


@torch.no_grad()
def expanded_both(
    network: ExpansionNetwork, queries: Embeddings, gallery: Embeddings, k: int
) -> tuple[Embeddings, Embeddings]:
    """Expand a gallery among itself and queries by it, each alone, hop by hop."""
    inside = torch.from_dlpack(search(gallery, k=min(k, len(gallery) - 1)).rows)
    around = torch.cat([torch.arange(len(gallery))[:, None], inside], dim=1)  # (M, 1 + k)
    found = torch.from_dlpack(search(queries, gallery, min(k, len(gallery))).rows)
    own, vectors = torch.from_dlpack(queries.vectors), torch.from_dlpack(gallery.vectors)
    for hop in network.hops:
        parts = zip(own.split(_ITEMS_AT_ONCE), found.split(_ITEMS_AT_ONCE), strict=True)
        own = torch.cat([hop(torch.cat([each[:, None], vectors[rows]], dim=1))[0] for each, rows in parts])
        vectors = torch.cat([hop(vectors[part])[0] for part in around.split(_ITEMS_AT_ONCE)])
    return with_vectors(queries, own.numpy()), with_vectors(gallery, vectors.numpy())
