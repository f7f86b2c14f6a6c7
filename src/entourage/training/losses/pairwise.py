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
) -> Tensor:
    """Multi-similarity loss (Eq. 4 of Attend to Context), the mean over anchors q of

        1/alpha log[c + sum_{k in P_q} exp(-alpha (s_qk - threshold))]
      + 1/beta  log[c + sum_{k in N_q} exp( beta  (s_qk - threshold))],   s_qk = e_q . e_k

    embeddings (b, d) unit vectors, labels (b,) integers; P_q: others of q's label, N_q: items of other labels.
    form "usual" has c = 1, so an anchor without positives or negatives adds 0 there; "printed" has c = 0 as in
    the paper's Eq. 4, where such an anchor makes the loss -inf.
    """
    settings = {"alpha": alpha, "beta": beta, "threshold": threshold, "form": form}
    return multi_similarity_of(embeddings @ embeddings.T, labels, **settings)


def multi_similarity_of(
    similarity: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 40.0,
    threshold: float = 0.5,
    form: str = "usual",
) -> Tensor:
    """The same loss of similarities s_qk (b, b), wherever they come from; the diagonal is not read."""
    check_known(form, ("usual", "printed"), "the loss form")
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    pull = _log_sum(-alpha * (similarity - threshold), same & ~itself, form) / alpha
    push = _log_sum(beta * (similarity - threshold), ~same, form) / beta
    return (pull + push).mean()


def _log_sum(exponents: Tensor, chosen: Tensor, form: str) -> Tensor:
    """log(c + sum of exp over the chosen entries of each row), without overflow; (b,)."""
    exponents = exponents.masked_fill(~chosen, -torch.inf)
    if form == "usual":
        exponents = torch.cat([exponents, exponents.new_zeros(len(exponents), 1)], dim=1)  # exp(0) = 1
    return exponents.logsumexp(dim=1)
