"""The interface of an encoder, for training and for embedding."""

from collections.abc import Iterator
from typing import Any, Protocol

from torch import Tensor, nn

from entourage.data.preprocessing import Preprocessing

__all__ = ["Encoder", "FeatureMapEncoder"]


class Encoder(Protocol):
    """A torch module from pictures (b, C, H, W), or vectors (b, in_dim), to unit vectors (b, dim)."""

    @property
    def dim(self) -> int:
        """Dimensions of its vectors."""

    @property
    def preprocessing(self) -> Preprocessing | None:
        """How its pictures are prepared; None for an encoder of vectors."""

    def __call__(self, pictures: Tensor, /) -> Tensor:
        """Unit vectors (b, dim)."""

    def projected(self, pictures: Tensor, /) -> Tensor:
        """(b, dim) the vectors before they are scaled to length 1."""

    # What torch.nn.Module brings along.

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def eval(self) -> Any: ...

    def train(self, mode: bool = True) -> Any: ...


class FeatureMapEncoder(Encoder, Protocol):
    """An encoder of pictures whose vectors are made of a feature map (b, c, h, w)."""

    def feature_map(self, pictures: Tensor, /) -> Tensor:
        """(b, c, h, w): c channels at h x w places."""

    def with_map(self, pictures: Tensor, /) -> tuple[Tensor, Tensor]:
        """The unit vectors (b, dim) and the feature map, in one pass."""

    def with_source(self, pictures: Tensor, /) -> tuple[Tensor, Tensor, Tensor]:
        """The unit vectors, the feature map, and the tensor that both are made of, in one pass."""
