"""Which device works: the processor, or a graphics card through torch, which is imported only where it has work."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from entourage.errors import InputError
from entourage.runtime.extras import require

if TYPE_CHECKING:
    import torch

__all__ = ["chosen_device", "device_named", "graphics_card", "on_device"]

_CUDA_DRIVERS = ("libcuda.so.1", "nvcuda.dll")  # as Linux and Windows name it
_AMD_DRIVER = Path("/dev/kfd")
_CHOSEN: ContextVar[str] = ContextVar("device", default="auto")


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


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Let what is searched and trained inside the block work on one device.

    Parameters
    ----------
    name : str
        As `device_named` takes it; what is not there is refused before the block begins.
    """
    if name not in ("auto", "cpu"):  # these are always there, without torch, too
        require("torch", f"the device {name!r}")
        device_named(name)
    token = _CHOSEN.set(name)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def chosen_device() -> "torch.device":
    """The device of the block of `on_device` this is in; elsewhere that of "auto"."""
    return device_named(_CHOSEN.get())


def graphics_card() -> "torch.device | None":
    """The graphics card that whole sets of vectors are worked on, or None: numpy does it on the processor.

    Torch is asked where this process has loaded it, or where a driver lets it hope for a card. Otherwise it is not
    imported, which takes seconds, and it need not be installed.
    """
    if _CHOSEN.get() == "cpu" or (sys.modules.get("torch") is None and not _has_driver()):
        return None
    try:
        device = chosen_device()
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
