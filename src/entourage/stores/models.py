"""A learned model as a folder: config.json for what it is, model.safetensors for its weights."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entourage import __version__
from entourage.errors import FileError, ModelError
from entourage.stores.atomic import check_free, new_folder, write_json
from entourage.stores.paths import StrPath

if TYPE_CHECKING:
    from hashlib import _Hash

__all__ = ["add_weights", "read_model", "usable_model", "write_model"]

_LAYOUT = 1  # raised when a folder of today can no longer be read
_FILES = ("config.json", "model.safetensors")


def write_model(
    folder: StrPath, system: str, config: dict[str, Any], weights: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Write a model into a new folder, whole or not at all.

    Parameters
    ----------
    folder : str or path-like
    system : str
        What kind of model it is; `read_model` asks for the same.
    config : dict
        What JSON can hold.
    weights : dict of torch tensors by name
    overwrite : bool, default False
        Whether to replace a model that lies there.
    """
    from safetensors.torch import save_file

    folder = check_free(folder, overwrite=overwrite)
    header = {"entourage": __version__, "system": system, "layout": _LAYOUT}
    with new_folder(folder) as filling:
        write_json(filling / "config.json", header | config)
        save_file(weights, filling / "model.safetensors")


def read_model(folder: StrPath, system: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a model.

    Parameters
    ----------
    folder : str or path-like
        A folder that `write_model` wrote.
    system : str
        What kind of model is wanted; another kind is refused.

    Returns
    -------
    config : dict
    weights : dict of torch tensors by name
    """
    from safetensors.torch import load_file

    folder = Path(folder)
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"{folder} has no {' and no '.join(missing)}; wanted a folder written by `entourage fit` or save()"
        )
    with usable_model(folder):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if (config["system"], config["layout"]) != (system, _LAYOUT):
            raise ValueError(f"it is {config['system']}, layout {config['layout']}; wanted {system}, layout {_LAYOUT}")
        return config, load_file(folder / "model.safetensors")


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
