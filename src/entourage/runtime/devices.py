"""Which device torch works on."""

import torch

from entourage.errors import InputError
from entourage.runtime import distributed

__all__ = ["device_named"]


def device_named(name: str | torch.device) -> torch.device:
    """auto takes CUDA if there is any; among several processes on a machine, cuda is each one's own.

    >>> device_named("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"the device is {name!r}; wanted auto, cpu, cuda or cuda:1") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"the device is {str(name)!r}, but torch finds no CUDA here; use cpu or auto")
    return torch.device("cuda", distributed.local_rank()) if name == "cuda" else device
