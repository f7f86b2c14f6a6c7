"""A learned model as a folder: config.json for what it is, model.safetensors for its weights."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from entourage import __version__
from entourage.errors import FileError, ModelError
from entourage.stores.atomic import check_free, new_folder, write_json
from entourage.stores.filenames import CONFIG, WEIGHTS

__all__ = ["add_weights", "read_model", "usable_model", "write_model"]

_LAYOUT = 1  # raised when a folder of today can no longer be read


def write_model(folder, system: str, config: dict, weights: dict, *, overwrite: bool = False) -> None:
    """Write a model into a new folder, whole or not at all; weights: name -> torch tensor."""
    from safetensors.torch import save_file

    folder = check_free(folder, overwrite=overwrite)
    header = {"entourage": __version__, "system": system, "layout": _LAYOUT}
    with new_folder(folder) as filling:
        write_json(filling / CONFIG, header | config)
        save_file(weights, filling / WEIGHTS)


def read_model(folder, system: str) -> tuple[dict, dict]:
    """The config and the weights of a model of that system."""
    from safetensors.torch import load_file

    folder = Path(folder)
    missing = [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"{folder} has no {' and no '.join(missing)}; wanted a folder written by `entourage fit` or save()"
        )
    with usable_model(folder):
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if (config["system"], config["layout"]) != (system, _LAYOUT):
            raise ValueError(f"it is {config['system']}, layout {config['layout']}; wanted {system}, layout {_LAYOUT}")
        return config, load_file(folder / WEIGHTS)


def add_weights(digest, module) -> None:
    """Let a digest of hashlib depend on the weights and buffers of a torch module, and on their names."""
    for name, value in module.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())


@contextmanager
def usable_model(folder) -> Iterator[None]:
    """Whatever a damaged model makes its reader raise, as one sentence."""
    from safetensors import SafetensorError

    try:
        yield
    except KeyError as error:
        raise ModelError(f"the model in {folder} lacks {error} in config.json; fit it again or copy it anew") from error
    except (SafetensorError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"the model in {folder} cannot be used ({reason}); fit it again or copy it anew") from error
