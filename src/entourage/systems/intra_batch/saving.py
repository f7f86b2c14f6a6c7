"""The trained network as a folder of its run: config.json says how to build it, model.safetensors holds its weights."""

from dataclasses import dataclass
from pathlib import Path

import torch

from entourage.errors import ModelError
from entourage.stores import read_model, usable_model, write_model
from entourage.stores.filenames import CONFIG, NETWORK
from entourage.systems.intra_batch.network import MessagePassing
from entourage.systems.intra_batch.objective import ClassHead

__all__ = ["TrainedNetwork", "has_network", "load_network", "save_network"]

_SYSTEM = "intra-batch network"


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network as training left it, with what distillation and test time need to know of that training."""

    network: MessagePassing
    head: ClassHead
    """The classifier after the network."""
    classes: list[str]
    """The classes it was trained on, in the order of the classifier's."""
    temperature: float
    """What divided the classifier's logits."""
    batch: tuple[int, int]
    """Classes in a batch, and items of each."""


def has_network(run) -> bool:
    """Whether a folder is a run with a network in it."""
    return (Path(run) / NETWORK / CONFIG).is_file()


def save_network(folder, trained: TrainedNetwork, *, overwrite: bool = False) -> None:
    config = {
        "network": trained.network.options,
        "classes": trained.classes,
        "temperature": trained.temperature,
        "batch": list(trained.batch),
    }
    parts = {"network": trained.network, "head": trained.head}
    weights = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }
    write_model(folder, _SYSTEM, config, weights, overwrite=overwrite)


def load_network(run) -> TrainedNetwork:
    """The network of a run folder, ready to use."""
    folder = Path(run) / NETWORK
    if not has_network(run):
        raise ModelError(
            f"{run} has no {NETWORK} in it; wanted a run of `entourage train --system intra-batch` whose "
            "network_weight is not 0"
        )
    config, weights = read_model(folder, _SYSTEM, "torch")
    with usable_model(folder):
        network = MessagePassing(**config["network"])
        head = ClassHead(network.dim, len(config["classes"]))
        torch.nn.ModuleDict({"network": network, "head": head}).load_state_dict(weights)
        trained = TrainedNetwork(network, head, config["classes"], config["temperature"], tuple(config["batch"]))
    network.eval()
    head.eval()
    return trained
