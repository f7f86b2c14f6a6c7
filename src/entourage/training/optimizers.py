"""The optimisers known by name, each with the defaults of torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from entourage.runtime.config import check_known

__all__ = ["OPTIMIZERS", "build_optimizer"]


def _sgd(groups: list[dict[str, Any]], lr: float, weight_decay: float) -> Optimizer:
    """With Nesterov's momentum of 0.9, as in the code of the metric-learning papers."""
    return torch.optim.SGD(groups, lr, momentum=0.9, nesterov=True, weight_decay=weight_decay, fused=True)


def _adam(groups: list[dict[str, Any]], lr: float, weight_decay: float) -> Optimizer:
    return torch.optim.Adam(groups, lr, weight_decay=weight_decay, fused=True)


def _adamw(groups: list[dict[str, Any]], lr: float, weight_decay: float) -> Optimizer:
    return torch.optim.AdamW(groups, lr, weight_decay=weight_decay, fused=True)


OPTIMIZERS: dict[str, Callable[[list[dict[str, Any]], float, float], Optimizer]] = {
    "adam": _adam,
    "adamw": _adamw,
    "sgd": _sgd,
}


def build_optimizer(name: str, groups: list[dict[str, Any]], lr: float, weight_decay: float) -> Optimizer:
    """Build an optimiser by its name.

    Parameters
    ----------
    name : str
        One of `OPTIMIZERS`.
    groups : list of dict
        Groups of parameters, as {"params": [...], "lr": ..., "weight_decay": ...}.
    lr, weight_decay : float
        Of the groups that have none of their own.

    Returns
    -------
    torch.optim.Optimizer
        Over all groups.
    """
    check_known(name, OPTIMIZERS, "the optimizer")
    return OPTIMIZERS[name](groups, lr, weight_decay)
