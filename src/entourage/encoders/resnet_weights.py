"""Weights of torchvision's ResNets, in the ResNet of transformers: the nets that the papers begin with.

A file resnet50-0676ba61.pth (torchvision's IMAGENET1K_V1), or a model of timm on the hub or in a folder, whose weights
have the same names: timm/resnet50.tv_in1k holds the same V1 weights as safetensors. Both nets are the same function:
the stride of a bottleneck is in its 3 x 3 convolution in torchvision as in the configuration made here, and in
microsoft/resnet-50, whose weights are others, those of a longer training by timm.

    conv1, bn1                     embedder.embedder.{convolution, normalization}
    layer{s}.{i}.conv{j}, bn{j}    encoder.stages.{s-1}.layers.{i}.layer.{j-1}.{convolution, normalization}
    layer{s}.{i}.downsample.{0,1}  encoder.stages.{s-1}.layers.{i}.shortcut.{convolution, normalization}
    fc                             left out
"""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from entourage.data.preprocessing import Preprocessing
from entourage.encoders.hub import backbone_from_config, model_files
from entourage.errors import FileError, ModelError
from entourage.stores.documents import read_document
from entourage.stores.reading import regular

__all__ = ["is_resnet_weights", "load_resnet", "resnet_of"]

_SUFFIXES = (".pth", ".pt", ".safetensors")
_ON_THE_HUB = re.compile(r"timm/resnet(18|34|50|101|152)(\.[\w-]+)?")
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_STEM = re.compile(r"(conv|bn)1\.(\w+)")
_LAYER = re.compile(r"layer(\d)\.(\d+)\.(conv|bn)(\d)\.(\w+)")
_SHORTCUT = re.compile(r"layer(\d)\.(\d+)\.downsample\.([01])\.(\w+)")
_PARTS = {"conv": "convolution", "bn": "normalization", "0": "convolution", "1": "normalization"}


def is_resnet_weights(name: str) -> bool:
    """Whether a name stands for weights that `load_resnet` reads: a file, a folder or a model of timm.

    >>> [is_resnet_weights(name) for name in ("timm/resnet50.tv_in1k", "microsoft/resnet-50")]
    [True, False]
    """
    path = Path(name)
    if path.is_dir():
        return _timm_config(path / _CONFIG) is not None
    return (path.is_file() and path.suffix in _SUFFIXES) or bool(_ON_THE_HUB.fullmatch(name) and not path.exists())


def load_resnet(name: str) -> tuple[nn.Module, Preprocessing]:
    """Load a ResNet of torchvision or timm as one of transformers.

    Parameters
    ----------
    name : str
        A file of weights (.pth, .pt, .safetensors), a folder with config.json and model.safetensors of timm, or such a
        model on the hub.

    Returns
    -------
    model : torch.nn.Module
        A ResNetModel of transformers.
    preprocessing : Preprocessing
        That of the V1 weights: shorter side 256, centre crop 224, bilinear; timm's where its config says so.
    """
    path = Path(name)
    if path.is_file():
        return resnet_of(_read(path), name), Preprocessing()
    folder = path if path.is_dir() else model_files(name, (_CONFIG, _WEIGHTS))
    return resnet_of(_read(folder / _WEIGHTS), name), _preprocessing(_timm_config(folder / _CONFIG) or {})


def resnet_of(weights: dict[str, Tensor], name: str = "the weights") -> nn.Module:
    """Build the ResNet that torchvision's weights are of.

    Parameters
    ----------
    weights : dict of str to Tensor
        A state dict of torchvision's ResNet-18 to -152, or a smaller one of that form.
    name : str
        What they are called in an error.

    Returns
    -------
    torch.nn.Module
        A ResNetModel of transformers with these weights.
    """
    model = backbone_from_config({"model_type": "resnet", **_shape(weights, name)})
    renamed = {_renamed(key): value for key, value in weights.items() if not key.startswith("fc.")}
    wanted = model.state_dict()
    counters = {key for key in wanted if key.endswith("num_batches_tracked")}  # which older files lack
    unknown, missing = sorted(renamed.keys() - wanted.keys()), sorted(wanted.keys() - renamed.keys() - counters)
    unfit = [key for key in renamed.keys() & wanted.keys() if renamed[key].shape != wanted[key].shape]
    if unknown or missing or unfit:
        key = (unknown or missing or sorted(unfit))[0]
        how = "which such a net lacks" if unknown else "which is missing" if missing else "of another shape"
        raise ModelError(
            f"{name} is no plain ResNet of torchvision: {key}, {how}; wanted a ResNet-18, 34, 50, 101 or 152"
        )
    model.load_state_dict(renamed, strict=False)
    return model


def _shape(weights: dict[str, Tensor], name: str) -> dict[str, Any]:
    """The configuration of a net, by what its weights are called and how large they are."""
    found = [match for match in map(_LAYER.fullmatch, weights) if match]
    stages = sorted({int(match[1]) for match in found})
    if "conv1.weight" not in weights or not stages:
        some = ", ".join(sorted(weights)[:3])
        raise ModelError(f"{name} holds {some}, ...; wanted the weights of torchvision's ResNet: conv1, layer1, ...")
    last = max(int(match[4]) for match in found)  # 3 convolutions in a bottleneck, 2 in a basic layer
    return {
        "embedding_size": len(weights["conv1.weight"]),
        "hidden_sizes": [len(weights[f"layer{stage}.0.conv{last}.weight"]) for stage in stages],
        "depths": [1 + max(int(match[2]) for match in found if int(match[1]) == stage) for stage in stages],
        "layer_type": "bottleneck" if last == 3 else "basic",
    }


def _renamed(key: str) -> str:
    """What transformers calls a weight; what is none of a ResNet keeps its name."""
    if match := _STEM.fullmatch(key):
        return f"embedder.embedder.{_PARTS[match[1]]}.{match[2]}"
    if match := _LAYER.fullmatch(key):
        stage, layer, kind, number, rest = match.groups()
        return f"encoder.stages.{int(stage) - 1}.layers.{layer}.layer.{int(number) - 1}.{_PARTS[kind]}.{rest}"
    if match := _SHORTCUT.fullmatch(key):
        stage, layer, kind, rest = match.groups()
        return f"encoder.stages.{int(stage) - 1}.layers.{layer}.shortcut.{_PARTS[kind]}.{rest}"
    return key


# ---- reading -----------------------------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Tensor]:
    """Tensors by name; of a .pth tensors alone are read, and nothing in it is run."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(regular(path, "the weights"))
        weights = torch.load(regular(path, "the weights"), map_location="cpu", weights_only=True)
    except FileError:
        raise
    except Exception as error:  # a damaged file makes either library raise anything
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FileError(f"{path} cannot be read ({reason}); wanted a state dict of torchvision's ResNet") from error
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise FileError(
            f"{path} holds a {type(weights).__name__}, not tensors by name; wanted a state dict, not a model"
        )
    return weights


def _timm_config(path: Path) -> dict[str, Any] | None:
    """What timm's config.json holds, if it is one of a ResNet."""
    if not path.is_file():
        return None
    values = read_document(path, dict)
    plain = "model_type" not in values and str(values.get("architecture", "")).startswith("resnet")
    return values if plain else None


def _preprocessing(values: dict[str, Any]) -> Preprocessing:
    """The preprocessing that timm's config.json asks for."""
    own = values.get("pretrained_cfg", {})
    size = own.get("input_size", [3, 224, 224])[-1]
    options: dict[str, Any] = {name: tuple(own[name]) for name in ("mean", "std") if name in own}
    return Preprocessing(
        resize=int(size / own.get("crop_pct", 0.875)),
        crop=size,
        resample=own.get("interpolation", "bilinear"),
        **options,
    )
