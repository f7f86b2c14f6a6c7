"""Any Hugging Face vision model as an encoder: feature map, pooling, projection, unit length.

b pictures, c channels of the model, h x w places of its feature map, d dimensions.
"""

import inspect
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.data.preprocessing import Preprocessing
from entourage.encoders.batch_norm import batch_norms
from entourage.encoders.hub import MASK, POOLER, applied_to, backbone_from_config, load_backbone
from entourage.encoders.pooling import pooling_layer
from entourage.encoders.resnet_weights import is_resnet_weights, load_resnet
from entourage.errors import InputError

__all__ = ["HuggingFaceEncoder"]

# Models whose last norm stands after their own pooling: it is applied after ours.
_NORM_AFTER_POOLING = {
    "clip_vision_model": "post_layernorm",
    "convnext": "layernorm",
    "convnextv2": "layernorm",
}
_OTHER_POOLING = ("cls", "own")


class HuggingFaceEncoder(nn.Module):
    """Pictures (b, 3, H, W), preprocessed -> (b, dim) unit vectors.

    Parameters
    ----------
    backbone : torch.nn.Module
        A vision model of transformers.
    dim : int, optional
        Dimensions of a linear projection; None has no projection and keeps the model's.
    pooling : str, optional
        "average", "max", their sum "average+max" or "gem" (learned p) over the feature map; "cls", the class token;
        "own", what the model itself gives (SigLIP's attention). None takes "cls" where there is a class token, else
        "average".
    freeze_batch_norm : bool
        Whether batch norms keep the statistics and weights they were loaded with.
    freeze_backbone : bool
        Whether only pooling and projection learn.
    preprocessing : Preprocessing, optional
        How pictures are prepared; default: as in the metric-learning papers.
    """

    backbone: Any  # a model of transformers, whose attributes depend on its kind

    def __init__(
        self,
        backbone: nn.Module,
        *,
        dim: int | None = None,
        pooling: str | None = None,
        freeze_batch_norm: bool = False,
        freeze_backbone: bool = False,
        preprocessing: Preprocessing | None = None,
    ) -> None:
        super().__init__()
        if dim is not None and dim < 1:
            raise InputError(f"dim is {dim}; wanted 1 or more dimensions, or None for the model's own")
        self.backbone = backbone
        accepted = inspect.signature(backbone.forward).parameters
        # For position embeddings learned at another size than the pictures'.
        self._any_size = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in accepted else {}
        self.preprocessing = preprocessing or Preprocessing()
        self.preprocessing.check_channels(getattr(backbone.config, "num_channels", 3))
        self.pooling = pooling or ("cls" if _has_class_token(backbone) else "average")
        if self.pooling == "cls" and not _has_class_token(backbone):
            raise InputError(f"pooling is 'cls', but {_kind(backbone)} has no class token; use average, max or gem")
        self.pool = None if self.pooling in _OTHER_POOLING else pooling_layer(self.pooling, _OTHER_POOLING)
        channels = _channels(backbone)
        self.projection = nn.Identity() if dim is None else nn.Linear(channels, dim)
        self.dim = dim or channels
        self.freeze_batch_norm, self.freeze_backbone = freeze_batch_norm, freeze_backbone
        self.options = {
            "dim": dim,
            "pooling": self.pooling,
            "freeze_batch_norm": freeze_batch_norm,
            "freeze_backbone": freeze_backbone,
        }
        self._fix_weights()

    @classmethod
    def from_name(
        cls, name: str, *, pretrained: bool = True, size: int | None = None, **options: Any
    ) -> "HuggingFaceEncoder":
        """An encoder of a model by its name.

        Parameters
        ----------
        name : str
            A name on the hub, a folder, or a file of torchvision's ResNet.
        pretrained : bool
            False draws random weights; then the name of an architecture ("resnet" is ResNet-50) will do.
        size : int, optional
            Size of the pictures, if not the model's own.
        **options
            Options of the constructor.

        Returns
        -------
        HuggingFaceEncoder
            With the model's own preprocessing, unless the options have another.
        """
        inspect.signature(cls).bind(None, **options)  # an unknown option is refused before anything is downloaded
        own_pooling = options.get("pooling") == "own"
        if pretrained and is_resnet_weights(name):
            backbone, preprocessing = load_resnet(name)
        else:
            backbone, preprocessing = load_backbone(name, pretrained=pretrained, own_pooling=own_pooling)
        preprocessing = options.pop("preprocessing", None) or preprocessing
        preprocessing = preprocessing.at_size(size) if size else preprocessing
        return cls(backbone, preprocessing=preprocessing, **options)

    @classmethod
    def from_config(cls, config: Any, **options: Any) -> "HuggingFaceEncoder":
        """An encoder with random weights, of a configuration of transformers, or the dict it gives."""
        return cls(backbone_from_config(config), **options)

    def projected(self, pictures: Tensor) -> Tensor:
        """(b, dim) the vectors before they are scaled to length 1."""
        output = self._output(pictures)
        maps = None if self.pool is None else self._map(output.last_hidden_state, pictures)
        return self.projection(self._pooled(output, maps))

    def forward(self, pictures: Tensor) -> Tensor:
        """Unit vectors (b, dim)."""
        return F.normalize(self.projected(pictures), dim=1)

    def feature_map(self, pictures: Tensor) -> Tensor:
        """(b, c, h, w): a conv net's last map, or a transformer's patch tokens in their places."""
        return self._map(self._output(pictures).last_hidden_state, pictures)

    def with_map(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """The unit vectors (b, dim) and the feature map (b, c, h, w), in one pass."""
        return self.with_source(pictures)[:2]

    def with_source(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The unit vectors, the feature map, and the tensor that both are made of.

        That tensor is the map where it is pooled; with cls and own, whose vectors do not come from the map, it is all
        that the model gives (b, tokens, c) or (b, c, h, w).
        """
        output = self._output(pictures)
        maps = self._map(output.last_hidden_state, pictures)
        vectors = F.normalize(self.projection(self._pooled(output, maps)), dim=1)
        return vectors, maps, output.last_hidden_state if self.pool is None else maps

    def train(self, mode: bool = True) -> "HuggingFaceEncoder":
        """Set training mode, or evaluation mode; what is frozen stays in evaluation mode."""
        super().train(mode)
        if self.freeze_backbone:
            self.backbone.eval()
        if self.freeze_batch_norm:
            for norm in batch_norms(self.backbone):
                norm.eval()  # the statistics learned before stay in use, and stay as they are
        return self

    def _fix_weights(self) -> None:
        """Frozen weights, and those the output does not depend on, ask for no gradient."""
        self.backbone.requires_grad_(not self.freeze_backbone)
        unused = {MASK} if self.pooling == "own" else {MASK, POOLER, "head"}  # SigLIP's pooling is called head
        for name, weight in self.backbone.named_parameters():
            if unused & set(name.split(".")):
                weight.requires_grad_(False)
        if self.freeze_batch_norm:
            for norm in batch_norms(self.backbone):
                norm.requires_grad_(False)
        self.train(self.training)

    def _output(self, pictures: Tensor) -> Any:
        with applied_to(pictures, _kind(self.backbone)), torch.no_grad() if self.freeze_backbone else nullcontext():
            return self.backbone(pixel_values=pictures, **self._any_size)

    def _pooled(self, output: Any, maps: Tensor | None) -> Tensor:
        """(b, c) of what the model gives; maps (b, c, h, w), where they are pooled, are of that same output."""
        if self.pooling == "own":
            return output.pooler_output.flatten(1)
        pooled = output.last_hidden_state[:, 0] if self.pool is None else self.pool(maps)  # the class token comes first
        norm = _NORM_AFTER_POOLING.get(self.backbone.config.model_type)
        return getattr(self.backbone, norm)(pooled) if norm else pooled

    def _map(self, hidden: Tensor, pictures: Tensor) -> Tensor:
        """(b, c, h, w) as it is, or (b, tokens, c) without the class and register tokens, which come first."""
        if hidden.ndim == 4:
            return hidden
        stride = _stride(self.backbone.config)
        h, w = pictures.shape[2] // stride, pictures.shape[3] // stride
        if not 0 < h * w <= hidden.shape[1]:
            raise InputError(
                f"{_kind(self.backbone)} gives {hidden.shape[1]} tokens for pictures of {tuple(pictures.shape[2:])}, "
                f"which do not make a map of {h} x {w} places; use pictures whose sides are multiples of {stride}"
            )
        return hidden[:, -h * w :].transpose(1, 2).unflatten(2, (h, w))


def _kind(backbone: nn.Module) -> str:
    """The name of a model's class."""
    return type(backbone).__name__


def _has_class_token(backbone: nn.Module) -> bool:
    return any(name.endswith(("cls_token", "class_embedding")) for name, _ in backbone.named_parameters())


def _channels(backbone: nn.Module) -> int:
    """How many channels its feature map has."""
    config: Any = backbone.config
    for name in ("hidden_size", "hidden_dim", "num_features"):
        if isinstance(getattr(config, name, None), int):
            return getattr(config, name)
    if getattr(config, "hidden_sizes", None):
        return config.hidden_sizes[-1]
    raise InputError(
        f"the configuration of {_kind(backbone)} does not say how many channels it gives; wanted hidden_size or "
        "hidden_sizes: use another model"
    )


def _stride(config: Any) -> int:
    """Pixels between neighbouring places of a transformer's map; each stage after the first halves it (Swin)."""
    patch = config.patch_size if isinstance(config.patch_size, int) else config.patch_size[0]
    return patch * 2 ** (len(getattr(config, "depths", [1])) - 1)
