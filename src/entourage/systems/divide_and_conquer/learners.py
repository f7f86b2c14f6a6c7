"""K learners on slices of one embedding: which items are whose, and what each is trained by.

b items of a batch, d dimensions, n training items.
"""

import numpy as np
import torch
from torch import Tensor, nn

from entourage.encoders.sliced import unit_slices
from entourage.evaluation.clustering import few_clusters
from entourage.systems.divide_and_conquer.assignment import as_learners

__all__ = ["Learners"]


class Learners(nn.Module):
    """The learner of every training item, a loss for each learner, and one for the whole embedding.

    The assignment is a buffer: it depends on the weights of an epoch that is over, so that a resumed run could not
    compute it again, and finds it in the checkpoint.
    """

    def __init__(self, n_items: int, losses: list[nn.Module], whole: nn.Module):
        super().__init__()
        self.losses, self.whole = nn.ModuleList(losses), whole
        self.register_buffer("assigned", torch.zeros(n_items, dtype=torch.int64))

    @property
    def count(self) -> int:
        """K."""
        return len(self.losses)

    @property
    def learner_of(self) -> np.ndarray:
        """(n,) the learner of each training item."""
        return self.assigned.cpu().numpy()

    def divide(self, vectors: np.ndarray, rows: np.ndarray, seed: int, *, first: bool) -> None:
        """Cluster the items anew by their whole embeddings (m, d); rows (m,) says which they are.

        Items that are missing, as their pictures cannot be decoded, stay where they are: no batch will hold them.
        """
        clusters = few_clusters(vectors, self.count, seed)
        learners = self.learner_of.copy()
        learners[rows] = clusters if first else as_learners(learners[rows], clusters, self.count)
        self.assigned.copy_(torch.from_numpy(learners))

    def loss_of(self, learner: int, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Of one learner: its slice of (b, d), scaled to length 1, by its own loss."""
        return self.losses[learner](unit_slices(embeddings, self.count)[:, learner], labels)
