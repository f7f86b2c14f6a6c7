"""The multi-similarity loss, in the usual form and as the paper prints it."""

import torch
from torch import Tensor

from entourage.runtime.config import check_known

__all__ = ["multi_similarity", "multi_similarity_of"]


def multi_similarity(
    embeddings: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 40.0,
    threshold: float = 0.5,
    form: str = "usual",
    mining_margin: float | None = None,
) -> Tensor:
    """Multi-similarity loss of embeddings (Eq. 4 of Attend to Context), the mean over anchors q of

        1/alpha log[c + sum_{k in P_q} exp(-alpha (s_qk - threshold))]
      + 1/beta  log[c + sum_{k in N_q} exp( beta  (s_qk - threshold))],   s_qk = e_q . e_k

    where P_q are the other items of q's label and N_q the items of other labels.

    Parameters
    ----------
    embeddings : Tensor, shape (b, d)
        Unit vectors e.
    labels : Tensor of int, shape (b,)
        Their classes.
    alpha, beta : float
        How sharply positives and negatives are weighted.
    threshold : float
        The similarity that both are measured from.
    form : {"usual", "printed"}
        "usual" has c = 1, so an anchor without positives or negatives adds 0 there; "printed" has c = 0 as in the
        paper's Eq. 4, where such an anchor makes the loss -inf.
    mining_margin : float, optional
        Leave out the easy pairs of each anchor (the mining of Wang et al. 2019): positives more similar than its most
        similar negative by this much or more, and negatives less similar than its least similar positive by this much
        or more. Where no pair of an anchor is left, the usual form adds 0. 0.1 in their code; None takes all pairs.

    Returns
    -------
    Tensor, shape ()
        The loss.
    """
    similarity = embeddings @ embeddings.T
    return multi_similarity_of(
        similarity, labels, alpha=alpha, beta=beta, threshold=threshold, form=form, mining_margin=mining_margin
    )


def multi_similarity_of(
    similarity: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 40.0,
    threshold: float = 0.5,
    form: str = "usual",
    mining_margin: float | None = None,
) -> Tensor:
    """Multi-similarity loss of similarities, wherever they come from; see `multi_similarity`.

    Parameters
    ----------
    similarity : Tensor, shape (b, b)
        s_qk of every pair; the diagonal is not read.
    labels : Tensor of int, shape (b,)
        The classes of the items.
    alpha, beta, threshold, form, mining_margin
        As in `multi_similarity`.

    Returns
    -------
    Tensor, shape ()
        The loss.
    """
    check_known(form, ("usual", "printed"), "the loss form")
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    positive, negative = same & ~itself, ~same
    if mining_margin is not None:
        positive, negative = _hard_pairs(similarity, positive, negative, mining_margin)
    pull = _log_sum(-alpha * (similarity - threshold), positive, form) / alpha
    push = _log_sum(beta * (similarity - threshold), negative, form) / beta
    return (pull + push).mean()


def _hard_pairs(similarity: Tensor, positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """The positives and negatives (b, b) that are not easy for their anchors."""
    similarity = similarity.detach()
    nearest = similarity.masked_fill(~negative, -torch.inf).amax(dim=1, keepdim=True)  # the most similar negative
    farthest = similarity.masked_fill(~positive, torch.inf).amin(dim=1, keepdim=True)  # the least similar positive
    return positive & (similarity - margin < nearest), negative & (similarity + margin > farthest)


def _log_sum(exponents: Tensor, chosen: Tensor, form: str) -> Tensor:
    """log(c + sum of exp over the chosen entries of each row), without overflow; (b,)."""
    exponents = exponents.masked_fill(~chosen, -torch.inf)
    if form == "usual":
        exponents = torch.cat([exponents, exponents.new_zeros(len(exponents), 1)], dim=1)  # exp(0) = 1
    return exponents.logsumexp(dim=1)
