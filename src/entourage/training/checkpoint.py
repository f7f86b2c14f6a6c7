"""Everything that decides how a run goes on, in one safetensors file: weights, best weights, optimiser, history."""

import json
from dataclasses import asdict

import torch
from torch import Tensor, nn

from entourage.errors import FileError
from entourage.stores import whole_file
from entourage.training.history import History

__all__ = ["copied", "load_checkpoint", "save_checkpoint"]


def copied(model: nn.Module) -> dict[str, Tensor]:
    """The weights and buffers as they are now."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def save_checkpoint(path, model, best, optimizer, history, fingerprint) -> None:
    from safetensors.torch import save_file

    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value.contiguous() for name, value in best.items()}
    numbers = {}  # what an optimiser keeps besides tensors
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            slot = f"{index}.{name}"
            if isinstance(value, Tensor):
                tensors[f"optimizer.{slot}"] = value.contiguous()
            else:
                numbers[slot] = value
    state = json.dumps({"fingerprint": fingerprint, "history": asdict(history), "optimizer": numbers})
    try:
        with whole_file(path) as temporary:
            save_file(tensors, temporary, metadata={"state": state})
    except OSError as error:
        raise FileError(f"the checkpoint {path} cannot be written ({error}); make room or choose another") from error


def load_checkpoint(path, model, optimizer, fingerprint) -> tuple[History, dict[str, Tensor]]:
    """Put weights and optimiser back as they were; (history, best weights)."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            history, belongs_to = History(**state["history"]), state["fingerprint"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"the checkpoint {path} cannot be read ({error}); delete it and start again") from error
    if belongs_to != fingerprint:
        raise FileError(
            f"the checkpoint {path} belongs to other data or settings, or began with other weights; resume with "
            "the same ones, or delete it"
        )

    def part(prefix):
        return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}

    model.load_state_dict(part("model."))
    _load_optimizer(optimizer, part("optimizer.") | state.get("optimizer", {}))
    return history, part("best.")


def _load_optimizer(optimizer, values: dict) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    slots: dict[int, dict] = {}
    for name, value in values.items():
        index, slot = name.split(".", 1)
        slots.setdefault(int(index), {})[slot] = _laid_out(value, parameters[int(index)])
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})


def _laid_out(value, parameter):
    """A state of the parameter's shape gets its memory layout too: fused optimisers walk both side by side."""
    if isinstance(value, Tensor) and value.shape == parameter.shape:
        return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
    return value
