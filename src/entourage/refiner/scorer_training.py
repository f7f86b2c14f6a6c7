"""How a scorer learns: from edges whose ends are known to be of one class or not, with torch.

E edges, 22 relations of each.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.refiner.relations import RELATIONS
from entourage.refiner.scorer import HIDDEN, RelationScorer
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import seeded_weights, torch_generator
from entourage.values import BoolArray, FloatArray

__all__ = ["fit_scorer", "new_scorer"]

_BATCH = 2048


class _TrainableScorer(nn.Module):
    """The network of a RelationScorer, for as long as it learns; its arrays have the same names."""

    centre: Tensor
    spread: Tensor

    def __init__(self) -> None:
        super().__init__()
        n = len(RELATIONS)
        self.layers = nn.Sequential(
            nn.Linear(n, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 1)
        )
        self.register_buffer("centre", torch.zeros(n))
        self.register_buffer("spread", torch.ones(n))

    def forward(self, relations: Tensor) -> Tensor:
        """Logits (...) of relations (..., 22)."""
        return self.layers((relations - self.centre) / self.spread).squeeze(-1)

    def value(self) -> RelationScorer:
        """The scorer as it is now, for numpy."""
        return RelationScorer.from_arrays({name: array.numpy() for name, array in self.state_dict().items()})


def new_scorer(relations: FloatArray, seed: int) -> RelationScorer:
    """A scorer with random weights that standardises edges like the given ones.

    Parameters
    ----------
    relations : ndarray of shape (E, 22)
        Features of edges, float32.
    seed : int
        Decides the weights.

    Returns
    -------
    RelationScorer
    """
    module = seeded_weights(seed, _TrainableScorer)
    module.centre.copy_(torch.from_numpy(relations.mean(axis=0)))
    module.spread.copy_(torch.from_numpy(relations.std(axis=0) + 1e-6))
    return module.value()


def fit_scorer(
    scorer: RelationScorer,
    relations: FloatArray,
    same_class: BoolArray,
    *,
    epochs: int,
    seed: int,
    learning_rate: float = 4e-3,
    progress: Progress | None = None,
) -> RelationScorer:
    """Train a scorer further by the binary cross-entropy of "same class", with Adam and a one-cycle schedule.

    Parameters
    ----------
    scorer : RelationScorer
        Where to start; it stays as it is.
    relations : ndarray of shape (E, 22)
        Features of edges, float32.
    same_class : ndarray of shape (E,)
        Whether both ends of each edge are of one class.
    epochs : int
        Passes over the edges.
    seed : int
        Decides their order.
    learning_rate : float
        The highest of the schedule.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    RelationScorer
        The trained one; the same if there is no edge, as where all items are copies of one another.
    """
    if not len(relations):
        return scorer
    module = seeded_weights(0, _TrainableScorer)
    module.load_state_dict({name: torch.tensor(array) for name, array in scorer.to_arrays().items()})
    features, wanted = torch.from_numpy(relations), torch.from_numpy(same_class.astype(np.float32))
    draw = torch_generator(seed)
    n_steps = epochs * -(-len(features) // _BATCH)
    optimizer = torch.optim.Adam(module.parameters(), learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=n_steps + 1)
    for epoch in range(epochs):
        for rows in torch.randperm(len(features), generator=draw).split(_BATCH):
            loss = F.binary_cross_entropy_with_logits(module(features[rows]), wanted[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
        if progress:
            progress("learning which neighbours belong", epoch + 1, epochs)
    return module.value()
