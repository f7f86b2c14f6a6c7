"""What encoder and network are trained by: cross-entropy after each of them.

    L = a CE(head_e(x) / T) + b CE(head_n(network(x / |x|)) / T),   both with label smoothing; a = b = 1 in the paper

x is the encoder's projection, not yet scaled to length 1: as in the authors' code, its classifier is linear and sees it
as it is. Two settings are controls, to tell what of a gain is the messages': head_e may be of the network's kind, on
x / |x|, and the network may see every item alone.

b items of a batch, d dimensions, C classes.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.runtime.randomness import torch_randomness
from entourage.systems.intra_batch.network import MessagePassing
from entourage.systems.intra_batch.settings import IntraBatchSettings

__all__ = ["ClassHead", "IntraBatchObjective", "LinearClassifier", "class_loss"]


class ClassHead(nn.Module):
    """Features (b, d) -> logits (b, C): batch norm without shift, then a linear layer without bias.

    Parameters
    ----------
    dim : int
        d, the dimensions of the features.
    n_classes : int
        C, the number of classes.
    """

    def __init__(self, dim: int, n_classes: int) -> None:
        super().__init__()
        self.neck = nn.BatchNorm1d(dim)
        self.neck.bias.requires_grad_(False)
        self.weight = nn.Parameter(torch.empty(n_classes, dim).normal_(std=0.001))

    def forward(self, features: Tensor, classes: Tensor | None = None) -> Tensor:
        """Logits of all classes, or of those given (c,) alone: (b, c)."""
        weight = self.weight if classes is None else self.weight[classes]
        return F.linear(self.neck(features), weight)


class LinearClassifier(nn.Linear):
    """Features (b, d) -> logits (b, C): a linear layer."""

    def forward(self, features: Tensor, classes: Tensor | None = None) -> Tensor:
        """Logits of all classes, or of those given (c,) alone: (b, c)."""
        if classes is None:
            return super().forward(features)
        return F.linear(features, self.weight[classes], self.bias[classes])


def class_loss(
    head: ClassHead | LinearClassifier,
    features: Tensor,
    codes: Tensor,
    *,
    temperature: float = 1.0,
    label_smoothing: float = 0.0,
    columns: str = "all",
) -> Tensor:
    """Cross-entropy of logits / temperature.

    Parameters
    ----------
    head : ClassHead or LinearHead
        The classifier.
    features : Tensor, shape (b, d)
        What it classifies.
    codes : Tensor of int, shape (b,)
        The classes, 0..C-1.
    temperature : float
        Divides the logits.
    label_smoothing : float
        Share of the target that goes to all classes alike.
    columns : {"all", "batch"}
        "batch" takes the classes of the batch for all there are, so that what is computed does not grow with C.

    Returns
    -------
    Tensor, shape ()
        The loss.
    """
    classes = None
    if columns == "batch":
        classes, codes = torch.unique(codes, return_inverse=True)
    return F.cross_entropy(head(features, classes) / temperature, codes, label_smoothing=label_smoothing)


class IntraBatchObjective(nn.Module):
    """The loss of a batch, and all that is trained besides the encoder.

    What dropout draws depends on the seed and on `draws`, the number of batches so far, which is part of the state: a
    resumed run, and every process of a distributed one, leaves out the same.

    Parameters
    ----------
    settings : IntraBatchSettings
        Network, classifiers and weights.
    dim : int
        d, the dimensions of the features.
    n_classes : int
        C, the number of classes.
    """

    draws: Tensor

    def __init__(self, settings: IntraBatchSettings, dim: int, n_classes: int) -> None:
        super().__init__()
        self.settings = settings
        s = settings
        self.network = MessagePassing(dim, s.steps, s.heads, s.feed_forward, s.dropout)
        self.network_head = ClassHead(dim, n_classes)
        self.encoder_head = (ClassHead if s.auxiliary_head == "neck" else LinearClassifier)(dim, n_classes)
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    def forward(self, projected: Tensor, codes: Tensor) -> Tensor:
        """The loss () of projections (b, d) with codes (b,)."""
        s = self.settings
        options: dict[str, Any] = {
            "temperature": s.temperature,
            "label_smoothing": s.label_smoothing,
            "columns": s.class_columns,
        }
        loss = 0 * projected.sum()
        if len(projected) < 2:  # what corrupt files may leave of a batch; a batch norm needs two
            return loss
        embeddings = F.normalize(projected, dim=1)
        if s.auxiliary_weight:
            seen = embeddings if s.auxiliary_head == "neck" else projected
            loss = loss + s.auxiliary_weight * class_loss(self.encoder_head, seen, codes, **options)
        if s.network_weight:
            groups = embeddings if s.messages else embeddings[:, None]  # without messages: groups of one
            with torch_randomness(s.seed, int(self.draws)):
                refined = self.network(groups).view_as(embeddings)
            loss = loss + s.network_weight * class_loss(self.network_head, refined, codes, **options)
        if self.training:
            self.draws += 1
        return loss
