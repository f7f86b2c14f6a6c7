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

    Parameters
    ----------
    n_items : int
        n, the number of training items.
    losses : list of torch.nn.Module
        One for each learner, of slices (b, d / K).
    whole : torch.nn.Module
        The loss of the whole embedding (b, d).
    """

    assigned: Tensor

    def __init__(self, n_items: int, losses: list[nn.Module], whole: nn.Module) -> None:
        super().__init__()
        self.losses, self.whole = nn.ModuleList(losses), whole
        self.register_buffer("assigned", torch.zeros(n_items, dtype=torch.int64))

    @property
    def count(self) -> int:
        """K, the number of learners."""
        return len(self.losses)

    @property
    def learner_of(self) -> np.ndarray:
        """(n,) the learner of each training item."""
        return self.assigned.cpu().numpy()

    def divide(self, vectors: np.ndarray, rows: np.ndarray, seed: int, *, first: bool, **kmeans: int) -> None:
        """Cluster the items anew, and give each cluster to the learner it fits best.

        Parameters
        ----------
        vectors : ndarray of float32, shape (m, d)
            Whole embeddings of m of the training items.
        rows : ndarray of int, shape (m,)
            Which items they are. Those that are missing, as their pictures cannot be decoded, stay where they are: no
            batch will hold them.
        seed : int
            Seed of the clustering.
        first : bool
            Whether no learner has a cluster yet.
        **kmeans
            starts and iterations of the clustering; see `few_clusters`.
        """
        clusters = few_clusters(vectors, self.count, seed, **kmeans)
        learners = self.learner_of.copy()
        learners[rows] = clusters if first else as_learners(learners[rows], clusters, self.count)
        self.assigned.copy_(torch.from_numpy(learners))

    def loss_of(self, learner: int, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss () of one learner: of its slice of embeddings (b, d), scaled to length 1, with labels (b,)."""
        return self.losses[learner](unit_slices(embeddings, self.count)[:, learner], labels)
