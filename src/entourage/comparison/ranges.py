"""The ranges from which methods choose their settings, stage by stage, and how far each may be extended."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from entourage.comparison.validation import BASE_SHRINKAGES, BASE_STEPS

__all__ = [
    "BASE_EXPANSION",
    "BASE_RECIPROCAL",
    "DIFFUSION",
    "EXPANSION",
    "FURTHER_BASE",
    "FURTHER_DIFFUSION",
    "FURTHER_EXPANSION",
    "FURTHER_GRAPH_NETWORK",
    "FURTHER_HEAD",
    "FURTHER_RECIPROCAL",
    "FURTHER_SHRINKAGE",
    "FURTHER_SUPER_GLOBAL",
    "GRAPH_NETWORK",
    "PLAIN_EXPANSION",
    "RECIPROCAL",
    "SECOND_EXPANSION",
    "SHRINKAGE",
    "SUPER_GLOBAL",
    "grid",
]

Settings = dict[str, Sequence[Any]]
"""Values by the name of a setting."""


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination in the given order, as ties go to the first (scikit-learn's ParameterGrid sorts the names).

    >>> grid(k=[1, 2], alpha=[0])
    [{'k': 1, 'alpha': 0}, {'k': 2, 'alpha': 0}]
    """
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


SHRINKAGE = grid(shrinkage=[0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98])
# A first stage names every setting, so that the choice is reported whole.
EXPANSION = [
    grid(k=[8, 16, 32, 64], alpha=[1, 3], steps=[1, 2], blend=[0]),
    grid(blend=[0.15, 0.3, 0.5]),
    grid(alpha=[0, 2, 5]),
    grid(k=[4, 128]),
]
PLAIN_EXPANSION: Settings = {"k": [8], "alpha": [3], "steps": [1], "blend": [0]}
# What remains of the budget after six settings of the first part.
SECOND_EXPANSION = [
    grid(k=[8, 16, 32, 64], alpha=[1, 3, 5]),
    [{"steps": 2}],
    grid(blend=[0.15, 0.3, 0.5]),
    grid(k=[4, 128]),
]
RECIPROCAL = [grid(k1=[8, 12, 20, 30, 40], k2=[3, 6, 10], weight=[0.3]), grid(weight=[0, 0.1, 0.2, 0.5, 0.7])]
DIFFUSION = [grid(k=[5, 10, 20, 30, 50], alpha=[0.7, 0.8, 0.9, 0.95], gamma=[3]), grid(gamma=[1, 2, 5])]
GRAPH_NETWORK = [
    grid(k1=[8, 16, 26, 40, 60], k2=[3, 7, 12], alpha=[2], layers=[2]),
    grid(layers=[1, 3]),
    grid(alpha=[1, 3]),
]
SUPER_GLOBAL = [grid(candidates=[100], k=[4, 9, 19], beta=[0.15, 0.5, 1.0]), grid(candidates=[50, 200, 400])]
# Whitening and head are chosen with a plain expansion or re-ranking, as the refiner chooses them with a plain scorer.
BASE: Settings = {"shrinkage": list(BASE_SHRINKAGES), "head_steps": [0]}
HEADS = grid(head_steps=[steps for steps in BASE_STEPS if steps])
BASE_ALONE = [grid(**BASE), HEADS]
BASE_EXPANSION = [
    grid(**BASE, **PLAIN_EXPANSION),
    HEADS,
    grid(k=[8, 16, 32, 64], alpha=[1, 3]),
    [{"steps": 2}],
    grid(blend=[0.15, 0.3]),
    grid(k=[4, 128]),
    [{"alpha": 5}],
]
BASE_RECIPROCAL = [
    grid(**BASE, k1=[20], k2=[6], weight=[0.3]),
    HEADS,
    grid(k1=[8, 12, 20, 30, 40], k2=[3, 6]),
    grid(weight=[0, 0.1, 0.2, 0.5]),
    [{"k2": 10}],
]

# How far ranges are extended where their end is best.
FURTHER_SHRINKAGE: Settings = {
    "shrinkage": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
}
FURTHER_EXPANSION: Settings = {
    "k": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "alpha": (0, 1, 2, 3, 5, 8, 12, 20, 30),
    "steps": (1, 2, 3, 4, 6, 9, 13),
    "blend": (0, 0.15, 0.3, 0.5, 0.7, 0.85),
}
FURTHER_RECIPROCAL: Settings = {
    "k1": (2, 4, 8, 12, 20, 30, 40, 60, 90, 130),
    "k2": (1, 2, 3, 6, 10, 15, 22, 32),
    "weight": (0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1),
}
FURTHER_DIFFUSION: Settings = {
    "k": (2, 3, 5, 10, 20, 30, 50, 80, 120, 200),
    "alpha": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    "gamma": (0, 1, 2, 3, 5, 8, 12, 20),
}
FURTHER_GRAPH_NETWORK: Settings = {
    "k1": (1, 2, 4, 8, 16, 26, 40, 60, 90, 130, 200),
    "k2": (1, 2, 3, 7, 12, 18, 26, 40),
    "alpha": (0, 1, 2, 3, 5, 8),
    "layers": (1, 2, 3, 4, 6, 9),
}
FURTHER_SUPER_GLOBAL: Settings = {
    "candidates": (10, 25, 50, 100, 200, 400, 800),
    "k": (1, 2, 4, 9, 19, 39, 79),
    "beta": (0, 0.05, 0.15, 0.5, 1.0, 2.0, 4.0),
}
FURTHER_HEAD: Settings = {
    "epochs": (1, 2, 4, 6, 9, 13, 18, 25, 35, 50),
    "learning_rate": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
}
FURTHER_NEIGHBORS: Settings = {"n_neighbors": (2, 4, 6, 12, 24, 48, 96, 192)}
FURTHER_BASE: Settings = {
    "shrinkage": (*FURTHER_SHRINKAGE["shrinkage"], 1.0),
    "head_steps": (0, 60, 150, 300, 600, 1200),
}
