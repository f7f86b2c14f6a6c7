"""The network of contextual similarity aggregation: candidates of a query, told apart by whom they are similar to.

"Contextual Similarity Aggregation with Self-attention for Visual Re-ranking" (Ouyang et al. 2021). b queries in a
batch, K candidates and L anchors of each, w the width of the encoder.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.baselines.method import training_codes
from entourage.baselines.ranking import best_of_gallery, best_scored, candidates_first, cosine_blocks
from entourage.evaluation import evaluate_ranking
from entourage.neighbors import search
from entourage.runtime.randomness import generator
from entourage.training.history import History
from entourage.training.loop import fit_model
from entourage.training.settings import FitSettings
from entourage.values import Embeddings, Neighbors

__all__ = ["SimilarityNetwork", "affinities", "aggregation_loss", "ranked_by", "ranked_in", "train_similarity"]

_HEADS = 4
_QUERIES_AT_ONCE = 64
_TEMPERATURE = 2.0
_RECONSTRUCTION = 0.2


def affinities(queries: Tensor, vectors: Tensor, found: Tensor, candidates: int, anchors: int) -> Tensor:
    """Affinity features (b, 1 + K, L) of queries and their candidates: similarities to the anchors of the query.

    Anchors are the query itself and its L - 1 nearest; where there are fewer, the rest is 0. queries (b, d), vectors
    (N, d) of the items, found (b, M) the rows of those nearest to each query.
    """
    own = queries[:, None]
    around = torch.cat([own, vectors[found[:, :candidates]]], dim=1)
    to = torch.cat([own, vectors[found[:, : anchors - 1]]], dim=1)
    similarities = around @ to.mT
    return F.pad(similarities, (0, anchors - similarities.shape[2]))


class SimilarityNetwork(nn.Module):
    """A transformer encoder over the affinity features of a query and its candidates.

    z = encoder(W a), and candidate i scores cos(z_0, z_i). `restore` maps z back to affinities, for the loss alone.
    """

    def __init__(self, anchors: int, width: int, layers: int) -> None:
        super().__init__()
        self.project = nn.Linear(anchors, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, _HEADS, 4 * width, dropout=0.1, batch_first=True) for _ in range(layers)
        )
        self.restore = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, anchors))

    def encoded(self, affinity: Tensor) -> Tensor:
        """Refined features (b, 1 + K, w) of affinity features (b, 1 + K, L)."""
        encoded = self.project(affinity)
        for layer in self.layers:
            encoded = layer(encoded)
        return encoded

    def forward(self, affinity: Tensor) -> Tensor:
        """Scores (b, K) of the candidates."""
        return scores_of(self.encoded(affinity))


def scores_of(encoded: Tensor) -> Tensor:
    """cos(z_0, z_i), of shape (b, K), of refined features z (b, 1 + K, w)."""
    directions = F.normalize(encoded, dim=2)
    return torch.einsum("bw,bkw->bk", directions[:, 0], directions[:, 1:])


def aggregation_loss(network: SimilarityNetwork, affinity: Tensor, same: Tensor) -> Tensor:
    """The contrastive loss of the scores s and, with a weight of 0.2, how far affinities a are from being restored.

        - log(sum_{i of the query's class} exp(s_i / 2) / sum_i exp(s_i / 2)) + 0.2 |normalise(a) - normalise(a')|

    Means over queries that have a candidate of their class (`same` (b, K) says which are), and over all features.
    """
    encoded = network.encoded(affinity)
    logits = scores_of(encoded) / _TEMPERATURE
    possible = same.any(dim=1)
    right = torch.where(same, logits, -torch.inf)[possible].logsumexp(dim=1)
    contrastive = (logits[possible].logsumexp(dim=1) - right).sum() / possible.sum().clamp(min=1)
    apart = F.normalize(affinity, dim=2) - F.normalize(network.restore(encoded), dim=2)
    return contrastive + _RECONSTRUCTION * apart.square().sum(dim=2).clamp(min=1e-4).sqrt().mean()


def train_similarity(
    network: SimilarityNetwork,
    training: Embeddings,
    held_out: Embeddings | None,
    candidates: int,
    anchors: int,
    *,
    epochs: int,
    patience: int,
    learning_rate: float,
    seed: int,
) -> History:
    """Train a network in place, every item a query; it keeps its best epoch on the held-out items, or its last."""
    vectors, labels = torch.from_dlpack(training.vectors), torch.from_numpy(training_codes(training))
    found = torch.from_dlpack(search(training, k=min(max(candidates, anchors - 1, 1), len(training) - 1)).rows)

    def batches(epoch: int) -> list[np.ndarray]:
        order = generator(seed, epoch).permutation(len(training))
        return [order[start : start + _QUERIES_AT_ONCE] for start in range(0, len(order), _QUERIES_AT_ONCE)]

    def loss(batch: np.ndarray) -> Tensor:
        nodes = torch.from_numpy(batch)
        same = labels[found[nodes][:, :candidates]] == labels[nodes][:, None]
        return aggregation_loss(network, affinities(vectors[nodes], vectors, found[nodes], candidates, anchors), same)

    def evaluate() -> float:
        assert held_out is not None
        scores = evaluate_ranking(held_out, lambda items, k: ranked_by(network, items, k, candidates, anchors))
        return float(scores["map@r"].mean())

    return fit_model(
        network,
        torch.optim.Adam(network.parameters(), learning_rate),
        FitSettings(epochs=epochs, patience=patience, seed=seed),
        batches=batches,
        loss=loss,
        evaluate=evaluate if held_out is not None else None,
    )


def ranked_by(
    network: SimilarityNetwork, items: Embeddings, k: int, candidates: int, anchors: int
) -> Iterator[tuple[slice, Neighbors]]:
    """Rank items among themselves: the candidates of each by their scores, then the others by cosine."""
    nearest = search(items, k=min(max(candidates, anchors - 1, 1), len(items) - 1))
    for block, scores in _scored(network, items, items, nearest, candidates, anchors):
        yield block, best_scored(items, block, scores, k)


def ranked_in(
    network: SimilarityNetwork, queries: Embeddings, gallery: Embeddings, k: int, candidates: int, anchors: int
) -> Iterator[tuple[slice, Neighbors]]:
    """Rank a gallery for queries from outside, each alone; see `ranked_by`."""
    nearest = search(queries, gallery, min(max(candidates, anchors - 1, 1), len(gallery)))
    for block, scores in _scored(network, queries, gallery, nearest, candidates, anchors):
        yield block, best_of_gallery(gallery, scores, k)


@torch.no_grad()
def _scored(
    network: SimilarityNetwork,
    queries: Embeddings,
    items: Embeddings,
    nearest: Neighbors,
    candidates: int,
    anchors: int,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Scores (n, N) of all items, candidates first, for n queries at a time."""
    own, vectors = torch.from_dlpack(queries.vectors), torch.from_dlpack(items.vectors)
    found = torch.from_dlpack(nearest.rows)
    for block, cosines in cosine_blocks(items, at_most=_QUERIES_AT_ONCE, queries=queries):
        scores = network(affinities(own[block], vectors, found[block], candidates, anchors)).double().numpy()
        yield block, candidates_first(cosines, nearest.rows[block, :candidates], scores)
