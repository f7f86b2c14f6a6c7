"""Vision models of the Hugging Face hub or of a folder: their weights and their preprocessing.

Only safetensors are read and no code of a repository is run. Nothing here needs torchvision: the preprocessing is read
from preprocessor_config.json and done by Pillow.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from entourage.data.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing
from entourage.errors import FileError, MissingExtra, ModelError
from entourage.stores.documents import read_document

__all__ = ["MASK", "POOLER", "applied_to", "backbone_from_config", "load_backbone", "model_files", "read_preprocessing"]

_CONFIG, _PICTURES = "config.json", "preprocessor_config.json"
# Parts that vectors do not depend on: a token of pretraining, and the model's own pooling unless it is asked for.
MASK, POOLER = "mask_token", "pooler"
_RESAMPLE = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers
_IMPLEMENTATION = ("attn_implementation", "attn_implementation_internal", "experts_implementation")
_MOST_LAYERS, _MOST = 1_000, 2**24  # more would be built for ever
_WARPED_FROM = 384  # ConvNeXt's processor crops smaller pictures and warps those of this size or more


def load_backbone(name: str, *, pretrained: bool = True, own_pooling: bool = False) -> tuple[nn.Module, Preprocessing]:
    """Load a vision model and its preprocessing.

    Parameters
    ----------
    name : str
        A name on the hub, or a folder.
    pretrained : bool
        False draws random weights and needs the configuration alone; then the name of an architecture ("resnet", "vit",
        "dinov2", ...) stands for its default configuration, and nothing is downloaded.
    own_pooling : bool
        Whether the weights of the model's own pooling are needed too.

    Returns
    -------
    model : torch.nn.Module
        The vision part of the model.
    preprocessing : Preprocessing
        As its preprocessor_config.json states it, or ImageNet's.
    """
    transformers = _transformers("" if Path(name).exists() else f"there is no folder {name}, and ")
    if not pretrained and name in transformers.CONFIG_MAPPING:
        config = transformers.AutoConfig.for_model(name)
        return backbone_from_config(config), _usual(config)
    local = _only_local(name)
    with _one_sentence(name), _quiet():
        check_config(transformers.PreTrainedConfig.get_config_dict(name, local_files_only=local)[0])
        config = transformers.AutoConfig.from_pretrained(name, local_files_only=local, trust_remote_code=False)
        pictures = _usual(_vision(config))
        file = _picture_file(name, local)
        if file:
            pictures = read_preprocessing(read_document(file, dict))
        if not pretrained:
            return backbone_from_config(config), pictures
        model, report = transformers.AutoModel.from_pretrained(
            name,
            config=_vision(config),
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=local,
            output_loading_info=True,
            trust_remote_code=False,
        )
    _check_complete(name, report, {MASK} if own_pooling else {MASK, POOLER})
    return model, pictures


def backbone_from_config(config: Any) -> nn.Module:
    """Build a model with random weights.

    Parameters
    ----------
    config : transformers.PretrainedConfig or dict
        A configuration, or what its to_dict() gave.

    Returns
    -------
    torch.nn.Module
        The vision part of the model.
    """
    transformers = _transformers()
    if isinstance(config, dict):
        check_config(config)
        config = transformers.AutoConfig.for_model(**config)
    return transformers.AutoModel.from_config(_vision(config), dtype=torch.float32, trust_remote_code=False)


def check_config(values: dict[str, Any]) -> None:
    """Refuse a configuration that asks for code of its own, or for a model without end.

    Parameters
    ----------
    values : dict
        What config.json holds, wherever it comes from.

    Raises
    ------
    ModelError
        It names the field.
    """
    transformers = _transformers()
    if not isinstance(values, dict):
        raise ModelError(f"{_CONFIG} holds a {type(values).__name__}; wanted a table")
    if values.get("auto_map") and values.get("model_type") not in transformers.CONFIG_MAPPING:
        raise ModelError(
            f"model_type is {values.get('model_type')!r}, which needs code of its own (auto_map), and no code of a "
            "model is ever run; wanted a model that transformers knows"
        )
    _check_fields(values)


def _check_fields(values: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _check_fields(value)
        if name.endswith(_IMPLEMENTATION) and "/" in repr(value):
            raise ModelError(f"{name} is {value!r}, code of another repository, which is never run; leave {name} out")
        numbers = value if isinstance(value, list) else [value]
        most = _MOST_LAYERS if "layers" in name or name == "depths" else _MOST
        if any(isinstance(number, int) and abs(number) > most for number in numbers):
            raise ModelError(f"{name} is {value!r}; wanted {most:,} at most")


def read_preprocessing(values: dict[str, Any]) -> Preprocessing:
    """The preprocessing that a preprocessor_config.json asks for.

    Parameters
    ----------
    values : dict
        What the file holds; fields it leaves out are ImageNet's usual ones.

    Returns
    -------
    Preprocessing
        For pictures of any size.

    Examples
    --------
    >>> p = read_preprocessing({"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224})
    >>> p.resize, p.crop
    (256, 224)
    """
    resize, crop = _resize_and_crop(values)
    mean, std = values.get("image_mean") or IMAGENET_MEAN, values.get("image_std") or IMAGENET_STD
    if not values.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    # The file's mean and std are of values times `rescale_factor`, ours of values divided by 255.
    factor = 255 * values.get("rescale_factor", 1 / 255) if values.get("do_rescale", True) else 255
    return Preprocessing(
        resize=resize if values.get("do_resize", True) else None,
        crop=crop,
        mean=tuple(value / factor for value in mean),
        std=tuple(value / factor for value in std),
        resample=_RESAMPLE.get(values.get("resample", 2), "bilinear"),
    )


def _resize_and_crop(values: dict[str, Any]) -> tuple[int | tuple[int, int], int | tuple[int, int] | None]:
    size = _sides(values.get("size", 224))
    if values.get("crop_pct") and isinstance(size, int) and size < _WARPED_FROM:
        return int(size / values["crop_pct"]), size
    if values.get("do_center_crop", False):
        return size, _sides(values.get("crop_size", 224))
    return ((size, size) if isinstance(size, int) else size), None  # pictures of one batch need one shape


def _sides(size: Any) -> int | tuple[int, int]:
    """A size as the many versions of that file write it: the shorter side, or (height, width)."""
    if not isinstance(size, dict):
        return tuple(size) if isinstance(size, list) else size
    return size["shortest_edge"] if "shortest_edge" in size else (size["height"], size["width"])


def _usual(config: Any) -> Preprocessing:
    """ImageNet's preprocessing at the size the model was made for."""
    size = getattr(_vision(config), "image_size", 224)
    return Preprocessing().at_size(size if isinstance(size, int) else min(size))


def _vision(config: Any) -> Any:
    """The picture side of a model of pictures and texts."""
    return getattr(config, "vision_config", config)


def _only_local(name: str) -> bool:
    """Whether to look on this machine alone: the name is a folder, or the hub cannot be reached.

    Asked once and briefly; transformers by itself tries again and again for half a minute.
    """
    if Path(name).is_dir():
        return True
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    if constants.is_offline_mode():
        return True
    try:
        HfApi().model_info(name, timeout=10)
    except HfHubHTTPError:
        return False  # it answers: what is wrong will be said on loading
    except Exception:  # whichever library carries the request has errors of its own
        return True
    return False


def model_files(name: str, files: tuple[str, ...]) -> Path:
    """Download files of a model of the hub, or find them in the cache.

    Parameters
    ----------
    name : str
        The model, as owner/name.
    files : tuple of str
        Their names.

    Returns
    -------
    Path
        The folder they are in.
    """
    _transformers(f"there is no folder {name}, and ")
    from huggingface_hub import hf_hub_download

    local = _only_local(name)
    with _one_sentence(name):
        found = [Path(hf_hub_download(name, file, local_files_only=local)) for file in files]
    return found[0].parent


def _picture_file(name: str, local: bool) -> Path | None:
    if Path(name).is_dir():
        return next((file for file in [Path(name) / _PICTURES] if file.is_file()), None)
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return Path(hf_hub_download(name, _PICTURES, local_files_only=local))
    except (EntryNotFoundError, FileNotFoundError):  # the latter: not in the cache
        return None


def _check_complete(name: str, report: dict[str, Any], dispensable: set[str]) -> None:
    needed = [key for key in report["missing_keys"] if not set(key.split(".")) & dispensable]
    if needed:
        raise ModelError(
            f"{name} lacks {len(needed)} of its weights, {sorted(needed)[0]} among them, which would be random; wanted "
            "all of them: choose a complete model, or random weights on purpose with pretrained=False"
        )


@contextmanager
def applied_to(pictures: Tensor, kind: str) -> Iterator[None]:
    """Turn whatever a model raises in the block into a ModelError: some values of a config only matter as it runs.

    Parameters
    ----------
    pictures : Tensor
        What it is applied to, (b, 3, h, w).
    kind : str
        What the model is called.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            raise
        raise ModelError(
            f"{kind} cannot be applied to pictures of shape {tuple(pictures.shape)} ({_reason(error)}); check the "
            f"{_CONFIG} of the model"
        ) from error


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    try:
        yield
    except (MemoryError, MissingExtra):
        raise
    except Exception as error:  # a config of wrong values makes the library raise anything
        reason = _reason(error)
        if Path(name).is_dir():
            raise FileError(
                f"{name} cannot be loaded as a Hugging Face model ({reason}); wanted a folder with {_CONFIG} and "
                "model.safetensors, as save_pretrained writes it"
            ) from error
        raise FileError(
            f"the model {name!r} was not found: there is no such folder, and the Hugging Face hub or its local cache "
            f"did not give it ({reason}); check the name and the connection, or give a folder"
        ) from error


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the reports of loading, which speak of the parts left out on purpose; a download still shows its bar."""
    from huggingface_hub.utils import enable_progress_bars
    from transformers.utils import logging as reports

    verbosity, bars = reports.get_verbosity(), reports.is_progress_bar_enabled()
    reports.set_verbosity_error()
    reports.disable_progress_bar()
    if bars:
        enable_progress_bars()
    try:
        yield
    finally:
        reports.set_verbosity(verbosity)
        if bars:
            reports.enable_progress_bar()


def _transformers(known: str = "") -> ModuleType:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("images", f"{known}a Hugging Face model") from error
    return transformers
