"""Which device works: the processor, or a graphics card through torch, which is imported only where it has work."""

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from entourage.errors import InputError

if TYPE_CHECKING:
    import torch

__all__ = ["device_named", "graphics_card"]

_CUDA_DRIVERS = ("libcuda.so.1", "nvcuda.dll")  # as Linux and Windows name it
_AMD_DRIVER = Path("/dev/kfd")


def device_named(name: "str | torch.device") -> "torch.device":
    """The torch device of that name.

    Parameters
    ----------
    name
        auto, cpu, cuda, cuda:1 and so on. auto takes CUDA if there is any; among several processes on a machine, cuda
        is each one's own.

    >>> device_named("cpu")
    device(type='cpu')
    """
    import torch

    from entourage.runtime import distributed

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"the device is {name!r}; wanted auto, cpu, cuda or cuda:1") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"the device is {str(name)!r}, but torch finds no CUDA here; use cpu or auto")
    return torch.device("cuda", distributed.local_rank()) if name == "cuda" else device


def graphics_card() -> "torch.device | None":
    """The graphics card that whole sets of vectors are worked on, or None: numpy does it on the processor.

    Torch is asked where this process has loaded it, or where a driver lets it hope for a card. Otherwise it is not
    imported, which takes seconds, and it need not be installed.
    """
    if sys.modules.get("torch") is None and not _has_driver():
        return None
    try:
        device = device_named("auto")
    except ImportError:
        return None
    return None if device.type == "cpu" else device


@cache
def _has_driver() -> bool:
    return _AMD_DRIVER.exists() or any(map(_can_load, _CUDA_DRIVERS))


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
