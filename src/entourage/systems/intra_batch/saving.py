"""The trained network as a folder of its run: config.json says how to build it, model.safetensors holds its weights."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

from torch import nn

from entourage.errors import ModelError
from entourage.runtime.checks import check_positive
from entourage.runtime.weights import filled
from entourage.stores import read_model, usable_model, write_model
from entourage.stores.filenames import CONFIG, NETWORK
from entourage.systems.intra_batch.network import MessagePassing
from entourage.systems.intra_batch.objective import ClassHead
from entourage.values import brief

__all__ = ["TrainedNetwork", "has_network", "load_network", "save_network"]

_SYSTEM = "intra-batch network"
_SIZE = Annotated[int, range(1, 2**20)]


class _Options(TypedDict):
    dim: _SIZE
    steps: Annotated[int, range(1, 1001)]
    heads: _SIZE
    feed_forward: _SIZE
    dropout: float


class _Config(TypedDict):
    """What config.json holds of a network."""

    network: _Options
    classes: list[str]
    temperature: float
    batch: list[_SIZE]


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network as training left it, with what distillation and inference need to know of that training."""

    network: MessagePassing
    """With the weights of the best epoch."""
    head: ClassHead
    """The classifier after the network."""
    classes: list[str]
    """The classes it was trained on, in the order of the classifier's."""
    temperature: float
    """What divided the classifier's logits."""
    batch: tuple[int, int]
    """Classes in a batch, and items of each."""

    __repr__ = brief


def has_network(run: str | PathLike[str]) -> bool:
    """Whether a folder is a run with a network in it.

    Parameters
    ----------
    run : path-like
        A folder.

    Returns
    -------
    bool
        True if `load_network` will find one.
    """
    return (Path(run) / NETWORK / CONFIG).is_file()


def save_network(folder: str | PathLike[str], trained: TrainedNetwork, *, overwrite: bool = False) -> None:
    """Write a network into a new folder that is enough to load it again.

    Parameters
    ----------
    folder : path-like
        Where to; `load_network` looks in RUN / "network".
    trained : TrainedNetwork
        The network.
    overwrite : bool
        Whether an existing model is replaced.
    """
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


def load_network(run: str | PathLike[str]) -> TrainedNetwork:
    """Load the network of a run.

    Parameters
    ----------
    run : path-like
        The run folder.

    Returns
    -------
    TrainedNetwork
        In evaluation mode.
    """
    folder = Path(run) / NETWORK
    if not has_network(run):
        raise ModelError(
            f"{run} has no {NETWORK} in it; wanted a run of `entourage train --system intra-batch` whose "
            "network_weight is not 0"
        )
    config, weights = read_model(folder, _SYSTEM, _Config, "torch")
    with usable_model(folder):
        parts = filled(lambda: _parts(config), weights)
        n_classes, per_class = config["batch"]
        check_positive("temperature", config["temperature"])
    network, head = cast(MessagePassing, parts["network"]), cast(ClassHead, parts["head"])
    return TrainedNetwork(network, head, config["classes"], config["temperature"], (n_classes, per_class))


def _parts(config: dict[str, Any]) -> nn.ModuleDict:
    """The network and the classifier, with random weights."""
    network = MessagePassing(**config["network"])
    return nn.ModuleDict({"network": network, "head": ClassHead(network.dim, len(config["classes"]))})
