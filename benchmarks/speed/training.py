"""A step of training by the paper's recipe against the naive one: batch 128, d = 512, 8 neighbours, 8 blocks.

The naive step applies both layers of K and V to each neighbour of each item, and Adam as torch gives it.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from entourage.neighbors import search
from entourage.refiner.paper.learning import batch_loss
from entourage.refiner.paper.network import PaperNetwork
from entourage.refiner.paper.settings import PaperSettings
from entourage.runtime.randomness import seeded_weights
from entourage.training.losses import multi_similarity
from entourage.training.sampling import class_balanced_batches
from entourage.values import Embeddings
from refine import BLOCKS, DIM, NEIGHBORS, labelled
from timing import Result, best_times

__all__ = ["run"]

BATCH = 128
MOST_ITEMS = 12_288  # a step does not depend on how many there are


def run(n: int, quick: bool) -> Iterator[Result]:
    items = labelled(min(n, MOST_ITEMS))
    context = search(items, k=NEIGHBORS).rows
    for per_class in (2, 4):
        yield step(items, context, per_class)


def step(items: Embeddings, context: np.ndarray, per_class: int) -> Result:
    settings = PaperSettings(batch_classes=BATCH // per_class, batch_per_class=per_class)
    codes = items.labels
    batch = next(iter(class_balanced_batches(codes, settings.batch_classes, per_class, seed=0, epoch=1)))
    ours, theirs = (seeded_weights(0, lambda: PaperNetwork(DIM, BLOCKS)) for _ in range(2))
    loss = batch_loss(settings, ours, items, codes, np.arange(len(items)), context)
    vectors, labels = torch.from_dlpack(items.vectors), torch.from_dlpack(codes)

    def naive_loss(batch) -> Tensor:
        return multi_similarity(naive_forward(theirs, vectors[batch], vectors[context[batch]]), labels[batch])

    difference = abs(loss(batch).item() - naive_loss(batch).item())
    assert difference < 1e-4, difference
    fused = torch.optim.Adam(ours.parameters(), settings.learning_rate, fused=True)
    usual = torch.optim.Adam(theirs.parameters(), settings.learning_rate)
    contenders = {"ours": lambda: learn(fused, loss, batch), "naive": lambda: learn(usual, naive_loss, batch)}
    seconds = best_times(contenders, repeats=5)
    detail = {
        "batch": f"{BATCH // per_class} classes of {per_class}",
        "distinct_neighbours": len(np.unique(context[batch])) / context[batch].size,
        "threads": torch.get_num_threads(),
        "seconds": seconds,
    }
    name = f"training step, {per_class} of a class"
    return Result(name, "paper's recipe", "naive autograd, Adam", seconds["naive"] / seconds["ours"], 1.6, detail)


def naive_forward(network: PaperNetwork, e: Tensor, context: Tensor) -> Tensor:
    """e^T (b, d) of e (b, d), context (b, k, d)."""
    for block in network.blocks:
        weights = torch.einsum("bd,bkd->bk", e + block.query(e), block.key(context)) * block.scale
        e = F.normalize(e + torch.einsum("bk,bkd->bd", weights.softmax(dim=1), block.value(context)), dim=1)
    return e


def learn(optimizer, loss, batch) -> None:
    value = loss(batch)
    optimizer.zero_grad(set_to_none=True)
    value.backward()
    optimizer.step()
