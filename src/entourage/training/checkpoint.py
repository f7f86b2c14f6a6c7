"""The whole state of a run in one safetensors file: weights, best weights, optimiser, history.

A checksum of it all is among them: a file that was damaged is not resumed from.
"""

import json
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from entourage.errors import FileError
from entourage.stores import whole_file
from entourage.stores.reading import regular
from entourage.training.history import History
from entourage.training.settings import Checkpointing

__all__ = ["copied", "is_checkpoint", "load_checkpoint", "save_checkpoint"]

_CHECKSUM = "checksum"
_LENGTH, _BEGINNING = 8, b'{"__metadata__":{"state":'  # safetensors: the length of the header, then the header


def copied(model: nn.Module) -> dict[str, Tensor]:
    """Copy the weights and buffers of a model.

    Parameters
    ----------
    model : torch.nn.Module
        Any model.

    Returns
    -------
    dict of str to Tensor
        By name, as they are now; later steps do not change them.
    """
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def save_checkpoint(
    checkpointing: Checkpointing, model: nn.Module, best: dict[str, Tensor], optimizer: Optimizer, history: History
) -> None:
    """Replace the checkpoint by the state of a run after an epoch, whole or not at all.

    Parameters
    ----------
    checkpointing : Checkpointing
        The file, and the fingerprint that it will be checked by.
    model : torch.nn.Module
        The model as it is now.
    best : dict of str to Tensor
        The weights of its best epoch.
    optimizer : torch.optim.Optimizer
        Whose moments are kept too.
    history : History
        The epochs so far.
    """
    from safetensors.torch import save_file

    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value.contiguous() for name, value in best.items()}
    numbers = {}  # what an optimiser keeps besides tensors
    for index, slots in optimizer.state_dict()["state"].items():
        for name, value in slots.items():
            slot = f"{index}.{name}"
            if isinstance(value, Tensor):
                tensors[f"optimizer.{slot}"] = value.contiguous()
            else:
                numbers[slot] = value
    state: dict[str, Any] = {"fingerprint": checkpointing.fingerprint, "history": asdict(history), "optimizer": numbers}
    state[_CHECKSUM] = _checksum(state, tensors)
    try:
        with whole_file(checkpointing.path, ours=is_checkpoint) as temporary:
            save_file(tensors, temporary, metadata={"state": json.dumps(state)})
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"the checkpoint {checkpointing.path} cannot be written ({error}); free some space or choose another folder"
        ) from error


def is_checkpoint(path: Path) -> bool:
    """Whether a file begins as those that `save_checkpoint` writes, even if it was cut short; or is empty."""
    with path.open("rb") as file:
        beginning = file.read(_LENGTH + len(_BEGINNING))
    return not beginning or beginning[_LENGTH:] == _BEGINNING


def load_checkpoint(
    checkpointing: Checkpointing, model: nn.Module, optimizer: Optimizer
) -> tuple[History, dict[str, Tensor]]:
    """Put weights and optimiser back as they were when the checkpoint was written.

    Parameters
    ----------
    checkpointing : Checkpointing
        The file, and the fingerprint it must have.
    model : torch.nn.Module
        Gets the weights of the last epoch, in place.
    optimizer : torch.optim.Optimizer
        Gets its moments, in place; it has the groups it had then.

    Returns
    -------
    history : History
        The epochs until then.
    best : dict of str to Tensor
        The weights of the best of them.

    Raises
    ------
    FileError
        If the file is damaged, or has another fingerprint.
    """
    from safetensors import SafetensorError, safe_open

    path = checkpointing.path
    try:
        with safe_open(regular(path, "the checkpoint"), framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if state.pop(_CHECKSUM) != _checksum(state, tensors):
            raise ValueError("it is not as it was written")
    except (SafetensorError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise FileError(f"the checkpoint {path} cannot be read ({reason}); delete it and start again") from error
    if state["fingerprint"] != checkpointing.fingerprint:
        raise FileError(
            f"the checkpoint {path} belongs to other data or settings, or began with other weights; resume with "
            "the same ones, or delete it"
        )
    model.load_state_dict(_part(tensors, "model."))
    _load_optimizer(optimizer, _part(tensors, "optimizer.") | state["optimizer"])
    return History(**state["history"]), _part(tensors, "best.")


def _checksum(state: dict[str, Any], tensors: dict[str, Tensor]) -> int:
    """Of everything in a checkpoint but the checksum itself."""
    checksum = zlib.crc32(json.dumps(state, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        described = f"{name} {tensor.dtype} {tuple(tensor.shape)}"
        content = tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().data
        checksum = zlib.crc32(content, zlib.crc32(described.encode(), checksum))
    return checksum


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}


def _load_optimizer(optimizer: Optimizer, values: dict[str, Any]) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    slots: dict[int, dict[str, Any]] = {}
    for name, value in values.items():
        index, slot = name.split(".", 1)
        slots.setdefault(int(index), {})[slot] = _laid_out(value, parameters[int(index)])
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})


def _laid_out(value: Any, parameter: Tensor) -> Any:
    """A state of the parameter's shape gets its memory layout too: fused optimisers walk both side by side."""
    if isinstance(value, Tensor) and value.shape == parameter.shape:
        return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
    return value
