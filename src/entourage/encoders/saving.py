"""Encoders by name, and as folders: config.json says how to build one, model.safetensors holds its weights."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from entourage.data.image_set import ImageSet, Items
from entourage.data.preprocessing import Preprocessing
from entourage.encoders.huggingface import HuggingFaceEncoder
from entourage.encoders.protocol import Encoder
from entourage.encoders.resnet_weights import is_resnet_weights
from entourage.encoders.sliced import SlicedEncoder
from entourage.encoders.small import SmallResNet
from entourage.encoders.vectors import VectorEncoder
from entourage.errors import CorruptImage, FileError, InputError
from entourage.runtime.config import check_known, check_name, check_options, closest
from entourage.runtime.weights import filled
from entourage.stores import add_weights, read_model, usable_model, write_model
from entourage.stores.documents import read_json
from entourage.stores.filenames import CONFIG, ENCODER
from entourage.values import Embeddings

__all__ = [
    "build_encoder",
    "encoder_fingerprint",
    "load_encoder",
    "save_encoder",
    "saved_encoder",
    "small_encoder_for",
]

_SYSTEM = "encoder"
_KINDS = {"small": SmallResNet, "huggingface": HuggingFaceEncoder, "vectors": VectorEncoder, "sliced": SlicedEncoder}
_SMALL: dict[str, dict[str, Any]] = {
    "small": {"in_channels": 1, "size": 32},
    "small-rgb": {"in_channels": 3, "size": 64},
}
_LOOKED_AT = 8
_OF_VECTORS: dict[str, dict[str, Any]] = {"linear": {}, "mlp": {"hidden": (512,)}}
_ON_THE_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # owner/name


class _Config(TypedDict):
    """What config.json holds of any encoder; the rest depends on its kind."""

    kind: str
    options: dict[str, Any]


def small_encoder_for(items: Items) -> str:
    """The encoder to train from scratch that takes such items.

    Parameters
    ----------
    items : ImageSet or Embeddings
        A few of the pictures are inspected; those that cannot be decoded are ignored.

    Returns
    -------
    str
        "small" for grey pictures, "small-rgb" if one is in colour, "linear" for vectors.
    """
    if isinstance(items, Embeddings):
        return "linear"
    looked_at = {int(row) for row in np.linspace(0, len(items) - 1, _LOOKED_AT)}
    return "small" if all(_is_grey(items, row) for row in looked_at) else "small-rgb"


def _is_grey(items: ImageSet, row: int) -> bool:
    try:
        return items.picture(row).mode in ("1", "L")
    except CorruptImage:
        return True


def build_encoder(name: str, **options: Any) -> Any:
    """Build an encoder by its name, or load one.

    Parameters
    ----------
    name : str
        "small" and "small-rgb" are the small residual net, with new weights (its `size` is that of the pictures, 32 and
        64 if not given, or None to keep theirs); "linear" and "mlp" take vectors of `in_dim` dimensions; a folder
        written by save_encoder, or of a run, is loaded; others are Hugging Face models, by folder or hub name
        (owner/name), or a file of torchvision's ResNet.
    **options
        Options of its class; a saved encoder takes none.

    Returns
    -------
    Encoder
        A torch module.

    Examples
    --------
    >>> build_encoder("small", dim=16).dim
    16
    """
    if name in _SMALL:
        options = _SMALL[name] | options
        size = options.pop("size")
        options.setdefault("preprocessing", Preprocessing.small(size, options["in_channels"]))
        return _with_options(name, SmallResNet, options)
    if name in _OF_VECTORS:
        if "in_dim" not in options:
            raise InputError(
                f"the encoder {name} takes vectors of in_dim dimensions, which is missing; wanted a number"
            )
        return _with_options(name, VectorEncoder, _OF_VECTORS[name] | options)
    saved = saved_encoder(name)
    if saved is not None:
        if options:
            raise InputError(
                f"{name} is a saved encoder, which has options of its own; leave out {', '.join(sorted(options))}"
            )
        return load_encoder(saved)
    if options.get("pretrained", True) and not is_resnet_weights(name):  # if not, it may name an architecture
        _check_may_be_a_model(name)
    return _with_options(name, HuggingFaceEncoder, options, partial(HuggingFaceEncoder.from_name, name))


def saved_encoder(folder: str | PathLike[str]) -> Path | None:
    """Find the encoder in a folder.

    Parameters
    ----------
    folder : path-like
        One that save_encoder wrote, or of a run.

    Returns
    -------
    Path or None
        The folder that `load_encoder` takes; None if there is no encoder.
    """
    places = Path(folder), Path(folder) / ENCODER
    return next((place for place in places if _own_config(place).get("system") == _SYSTEM), None)


def _own_config(folder: Path) -> dict[str, Any]:
    """The config.json of a folder that entourage wrote; an empty one of any other."""
    try:
        config = read_json(folder / CONFIG)
    except FileError:
        return {}
    return config if isinstance(config, dict) and "entourage" in config else {}


def _check_may_be_a_model(name: str) -> None:
    """Refuse what is no Hugging Face model for certain, before its library is asked for: a typing error mostly."""
    folder = Path(name)
    if folder.is_dir():
        if _own_config(folder) or not (folder / CONFIG).is_file():
            raise FileError(
                f"{name} is a folder without an encoder; wanted a run of `entourage train`, a saved encoder, or a "
                "Hugging Face model with config.json and model.safetensors"
            )
        return
    near = _meant(folder)
    if near or folder.exists() or not _ON_THE_HUB.fullmatch(name):
        hint = f" (did you mean {near}?)" if near else ""
        raise FileError(
            f"there is no folder {name} and no encoder of that name{hint}; wanted the folder of a run or of a saved "
            f"encoder, {', '.join(_built_in())} to train one, or a model of the Hugging Face hub as owner/name"
        )


def _meant(folder: Path) -> str | None:
    """What has a name like it: an encoder beside it or, if it names no place, a built-in one."""
    beside = [place for place in folder.parent.glob("*") if place.is_dir() and saved_encoder(place)]
    known = {place.name: str(place) for place in beside}
    if len(folder.parts) == 1:
        known |= {name: name for name in _built_in()}
    return closest(folder.name, known)


def _built_in() -> tuple[str, ...]:
    return *_SMALL, *_OF_VECTORS


def save_encoder(folder: str | PathLike[str], encoder: Encoder, *, overwrite: bool = False) -> None:
    """Write an encoder into a new folder that is enough to load it again, offline.

    Parameters
    ----------
    folder : path-like
        The folder to write.
    encoder : Encoder
        One of entourage.encoders; of others it is not known how to build them.
    overwrite : bool
        Whether an existing model is replaced.
    """
    config = _config(encoder)
    weights = {name: value.detach().cpu().contiguous() for name, value in encoder.state_dict().items()}
    write_model(folder, _SYSTEM, config, weights, overwrite=overwrite)


def load_encoder(folder: str | PathLike[str]) -> Any:
    """Load the encoder that save_encoder wrote.

    Parameters
    ----------
    folder : path-like
        Where it is.

    Returns
    -------
    Encoder
        A torch module in evaluation mode.
    """
    config, weights = read_model(folder, _SYSTEM, _Config, "torch")
    with usable_model(folder):
        return filled(lambda: _from_config(config), weights)


def encoder_fingerprint(encoders: Sequence[Any]) -> str:
    """Identify encoders by their weights and preprocessing, to record which encoder made some vectors.

    Parameters
    ----------
    encoders : sequence of Encoder or CallableEncoder
        Those that made the vectors; one without weights counts by its preprocessing alone.

    Returns
    -------
    str
        16 letters and digits.
    """
    digest = hashlib.sha256()
    for encoder in encoders:
        preprocessing = getattr(encoder, "preprocessing", None)
        digest.update(json.dumps(preprocessing and preprocessing.to_dict()).encode())
        if hasattr(encoder, "state_dict"):
            add_weights(digest, encoder)
    return digest.hexdigest()[:16]


def _config(encoder: Encoder) -> dict[str, Any]:
    """All that is needed to build it again, its weights aside."""
    if isinstance(encoder, SlicedEncoder):
        return {"kind": "sliced", "options": encoder.options, "encoder": _config(encoder.encoder)}
    if isinstance(encoder, VectorEncoder):
        return {"kind": "vectors", "options": encoder.options}
    if isinstance(encoder, SmallResNet):
        config: dict[str, Any] = {"kind": "small"}
    elif isinstance(encoder, HuggingFaceEncoder):
        config = {"kind": "huggingface", "model": json.loads(encoder.backbone.config.to_json_string(use_diff=False))}
    else:
        raise InputError(f"the encoder is a {type(encoder).__name__}; wanted one of entourage.encoders, to be saved")
    return config | {"options": encoder.options, "preprocessing": encoder.preprocessing.to_dict()}


def _from_config(config: dict[str, Any]) -> Any:
    """An encoder with random weights."""
    kind, options = config["kind"], config["options"]
    check_known(kind, _KINDS, "its kind")
    check_options(_KINDS[kind].__init__, options)  # type: ignore[misc]
    if kind == "sliced":
        return SlicedEncoder(_from_config(config["encoder"]), **options)
    if kind == "vectors":
        return VectorEncoder(**options)
    options = options | {"preprocessing": Preprocessing.from_dict(config["preprocessing"])}
    if kind == "small":
        return SmallResNet(**options)
    return HuggingFaceEncoder.from_config(config["model"], **options)


def _with_options(name: str, kind: type, options: dict[str, Any], build: Callable[..., Any] | None = None) -> Any:
    taken = [*signature(kind).parameters.values(), *(signature(build).parameters.values() if build else ())]
    # The backbone is what the name stands for.
    known = {each.name for each in taken if each.kind is not each.VAR_KEYWORD} - {"backbone", "name"}
    for option in options:
        check_name(option, sorted(known), "option", f"of the encoder {name}")
    check_options(kind.__init__, options)  # type: ignore[misc]
    return (build or kind)(**options)
