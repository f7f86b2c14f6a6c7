"""A learned model as a folder: config.json for what it is, model.safetensors for its weights."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage import __version__
from entourage.errors import FileError, ModelError
from entourage.stores.atomic import new_folder, write_json
from entourage.stores.changes import settle_to_read
from entourage.stores.filenames import CONFIG, WEIGHTS
from entourage.stores.paths import StrPath

if TYPE_CHECKING:
    from hashlib import _Hash

__all__ = ["add_weights", "model_config", "read_model", "usable_model", "write_model"]

_LAYOUT = 1  # raised when a folder of today can no longer be read


def write_model(
    folder: StrPath, system: str, config: dict[str, Any], weights: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write a model into a new folder, whole or not at all.

    Parameters
    ----------
    folder : str or path-like
    system : str
        What kind of model it is; `read_model` asks for the same.
    config : dict
        What JSON can hold.
    weights : dict of str to ndarray, or to tensor
        Arrays of numpy or tensors of torch, all of one kind.
    overwrite : bool
        Whether an existing model may be replaced.
    """
    header = {"entourage": __version__, "system": system, "layout": _LAYOUT}
    of_numpy = all(isinstance(values, np.ndarray) for values in weights.values())
    with new_folder(folder, overwrite=overwrite) as filling:
        write_json(filling / CONFIG, header | config)
        _safetensors("numpy" if of_numpy else "torch").save_file(dict(weights), filling / WEIGHTS)


def read_model(folder: StrPath, system: str, framework: str = "numpy") -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a model folder.

    Parameters
    ----------
    folder : str or path-like
    system : str
        What kind of model it must be.
    framework : {"numpy", "torch"}
        Whose arrays the weights become.

    Returns
    -------
    config : dict
    weights : dict of arrays or tensors by name
    """
    config = model_config(folder, system)
    with usable_model(folder):
        return config, _safetensors(framework).load_file(Path(folder) / WEIGHTS)


def model_config(folder: StrPath, *systems: str) -> dict[str, Any]:
    """Read the config of a model folder.

    Parameters
    ----------
    folder : str or path-like
    *systems : str
        What kinds of model it may be; another kind is refused.

    Returns
    -------
    dict
    """
    folder = Path(folder)
    settle_to_read(folder)
    missing = [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"{folder} has no {' and no '.join(missing)}; wanted a folder written by `entourage fit` or save()"
        )
    with usable_model(folder):
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if config["system"] not in systems or config["layout"] != _LAYOUT:
            raise ValueError(
                f"it is {config['system']}, layout {config['layout']}; wanted {' or '.join(systems)}, layout {_LAYOUT}"
            )
        return config


def _safetensors(framework: str) -> ModuleType:
    return import_module(f"safetensors.{framework}")


def add_weights(digest: "_Hash", module: Any) -> None:
    """Update a hashlib digest with the names and values of the weights and buffers of a torch module."""
    for name, value in module.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())


@contextmanager
def usable_model(folder: StrPath) -> Iterator[None]:
    """Turn whatever a damaged model makes its reader raise in the block into a ModelError of one sentence."""
    from safetensors import SafetensorError

    try:
        yield
    except KeyError as error:
        raise ModelError(
            f"the model in {folder} lacks {error} in config.json; fit it again or copy it again"
        ) from error
    except (SafetensorError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"the model in {folder} cannot be used ({reason}); fit it again or copy it again") from error
