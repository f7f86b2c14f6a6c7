"""Modules of torch built only where the weights at hand fit them: a config may ask for more memory than there is."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from entourage.runtime.randomness import network_to_fill

__all__ = ["filled"]

Module = TypeVar("Module", bound=nn.Module)


def filled(build: Callable[[], Module], weights: Mapping[str, Any]) -> Module:
    """Build a module and give it weights, ready for use.

    Parameters
    ----------
    build : callable
        Makes the module; called twice, the first time without memory for its weights.
    weights : dict of str to Tensor
        All its weights and buffers by name.

    Returns
    -------
    torch.nn.Module
        In evaluation mode.

    Raises
    ------
    ValueError
        If a name is missing or unknown, or a shape differs; it names the first.
    """
    with torch.device("meta"):
        planned = build().state_dict()
    for name, value in planned.items():
        if name not in weights:
            raise ValueError(f"the weights {name} are missing; wanted the shape {_shape(value)}")
        if weights[name].shape != value.shape:
            raise ValueError(f"the weights {name} have the shape {_shape(weights[name])}; wanted {_shape(value)}")
    for name in weights:
        if name not in planned:
            raise ValueError(f"there are weights {name}, which the model does not have; wanted none of that name")
    module = network_to_fill(build)
    module.load_state_dict(dict(weights))
    return module.eval()


def _shape(values: Tensor) -> str:
    return f"({', '.join(map(str, values.shape))})"
