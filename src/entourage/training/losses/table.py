"""The losses known by name, each built as builder(n_classes, dim, **options) -> nn.Module.

Multi-similarity is our own; the others are those of pytorch-metric-learning, loaded on first use. Some have
parameters of their own (a proxy per class, a boundary per class): the caller gives them a learning rate.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from entourage.errors import InputError
from entourage.runtime.config import check_known, check_name
from entourage.runtime.randomness import torch_randomness
from entourage.training.losses.pairwise import multi_similarity, multi_similarity_of

__all__ = ["LOSSES", "Loss", "build_loss"]


class MultiSimilarity(nn.Module):
    """`multi_similarity` with settings of its own, which are keyword arguments of that function."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss () of unit vectors (b, d) with labels (b,)."""
        return multi_similarity(embeddings, labels, **self.settings)

    def of_similarities(self, similarity: Tensor, labels: Tensor) -> Tensor:
        """The loss () of similarities (b, b) of items with labels (b,)."""
        return multi_similarity_of(similarity, labels, **self.settings)


class Loss(nn.Module):
    """A loss of pytorch-metric-learning, or one with the same signature, with a miner or without.

    What a miner draws depends on `draws`, the number of batches so far, which is part of the state: a resumed run
    mines what it would have mined, and every process of a distributed run mines the same. A batch without anything
    to learn from gives 0, still differentiable.

    Parameters
    ----------
    criterion : callable
        criterion(embeddings, labels) or, with a miner, criterion(embeddings, labels, indices).
    miner : callable, optional
        miner(embeddings, labels) chooses the pairs or triplets that count.
    """

    draws: Tensor

    def __init__(self, criterion: Callable[..., Tensor], miner: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.criterion, self.miner = criterion, miner
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss () of unit vectors (b, d) with labels (b,)."""
        with torch_randomness(int(self.draws)):
            indices = () if self.miner is None else (self.miner(embeddings, labels),)
            value = self.criterion(embeddings, labels, *indices)
        self.draws += 1
        return value + 0 * embeddings.sum()


# ---- builders ----------------------------------------------------------------------------------------------------


def _ms(
    n_classes: int,
    dim: int,
    *,
    alpha: float = 2.0,
    beta: float = 40.0,
    threshold: float = 0.5,
    mining_margin: float | None = None,
) -> nn.Module:
    return MultiSimilarity(alpha=alpha, beta=beta, threshold=threshold, mining_margin=mining_margin)


def _ms_printed(
    n_classes: int, dim: int, *, alpha: float = 2.0, beta: float = 40.0, threshold: float = 0.5
) -> nn.Module:
    return MultiSimilarity(alpha=alpha, beta=beta, threshold=threshold, form="printed")


def _margin(
    n_classes: int,
    dim: int,
    *,
    margin: float = 0.2,
    beta: float = 1.2,
    learn_beta: bool = False,
    nu: float = 0.0,
    cutoff: float = 0.5,
    nonzero_loss_cutoff: float = 1.4,
) -> nn.Module:
    """Margin loss over distance-weighted pairs (Wu et al. 2017): mean of (margin ± (distance - beta))_+.

    With learn_beta the boundary is learned, one for each class; nu weighs its size.
    """
    from pytorch_metric_learning.losses import MarginLoss

    criterion = MarginLoss(
        margin=margin, nu=nu, beta=beta, learn_beta=learn_beta, num_classes=n_classes if learn_beta else None
    )
    return Loss(criterion, _distance_weighted(cutoff, nonzero_loss_cutoff))


def _proxy_anchor(n_classes: int, dim: int, *, margin: float = 0.1, alpha: float = 32.0) -> nn.Module:
    """Proxy anchor (Kim et al. 2020): a learned proxy per class pulls its items and pushes all others."""
    from pytorch_metric_learning.losses import ProxyAnchorLoss

    return Loss(ProxyAnchorLoss(n_classes, dim, margin=margin, alpha=alpha))


def _normalised_softmax(n_classes: int, dim: int, *, temperature: float = 0.05) -> nn.Module:
    """Normalised softmax (Zhai & Wu 2019): cross-entropy of cosines to a learned vector per class / temperature."""
    from pytorch_metric_learning.losses import NormalizedSoftmaxLoss

    return Loss(NormalizedSoftmaxLoss(n_classes, dim, temperature=temperature))


def _triplet(n_classes: int, dim: int, *, margin: float = 0.2, mining: str = "semihard") -> nn.Module:
    """Triplet loss over mined triplets: "semihard", "all" that violate the margin, or "distance"-weighted."""
    from pytorch_metric_learning.losses import TripletMarginLoss
    from pytorch_metric_learning.miners import TripletMarginMiner

    check_known(mining, ("semihard", "all", "distance"), "the mining")
    miner = _distance_weighted() if mining == "distance" else TripletMarginMiner(margin, type_of_triplets=mining)
    return Loss(TripletMarginLoss(margin=margin), miner)


def _contrastive(n_classes: int, dim: int, *, pos_margin: float = 0.0, neg_margin: float = 1.0) -> nn.Module:
    """Contrastive loss: distances within a class beyond pos_margin, and between classes below neg_margin."""
    from pytorch_metric_learning.losses import ContrastiveLoss

    return Loss(ContrastiveLoss(pos_margin=pos_margin, neg_margin=neg_margin))


def _distance_weighted(cutoff: float = 0.5, nonzero_loss_cutoff: float = 1.4) -> nn.Module:
    from pytorch_metric_learning.miners import DistanceWeightedMiner

    return DistanceWeightedMiner(cutoff=cutoff, nonzero_loss_cutoff=nonzero_loss_cutoff)


LOSSES: dict[str, Callable[..., nn.Module]] = {
    "contrastive": _contrastive,
    "margin": _margin,
    "ms": _ms,
    "ms-printed": _ms_printed,
    "normalised-softmax": _normalised_softmax,
    "proxy-anchor": _proxy_anchor,
    "triplet": _triplet,
}


def build_loss(loss: str | Callable[..., Tensor], n_classes: int, dim: int, **options: Any) -> nn.Module:
    """Build a loss by its name, or of an object with the signature loss(embeddings, labels).

    Parameters
    ----------
    loss : str or callable
        A name in `LOSSES`, or a loss of your own.
    n_classes : int
        Labels are codes 0..n_classes-1.
    dim : int
        Dimensions of the embeddings.
    **options
        Options of the named loss; a loss of your own takes none.

    Returns
    -------
    torch.nn.Module
        forward(embeddings (b, dim), labels (b,)) gives a scalar; it may have parameters of its own.

    Examples
    --------
    >>> batch = torch.eye(4), torch.tensor([0, 0, 1, 1])
    >>> round(build_loss("contrastive", n_classes=2, dim=4)(*batch).item(), 3)
    1.414
    """
    if not isinstance(loss, str):
        if not callable(loss):
            raise InputError(
                f"the loss is {loss!r}; wanted a name ({_listed(LOSSES)}) or a function loss(embeddings, labels)"
            )
        if options:
            raise InputError(
                f"the loss is an object and cannot take the options {_listed(options)}; set them on the object itself"
            )
        return loss if isinstance(loss, Loss | MultiSimilarity) else Loss(loss)
    check_known(loss, LOSSES, "the loss")
    for name in options:
        check_name(name, list(inspect.signature(LOSSES[loss]).parameters)[2:], "option", f"of the loss {loss}")
    return LOSSES[loss](n_classes, dim, **options)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
