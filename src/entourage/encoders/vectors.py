"""An encoder on top of existing vectors: linear, or with hidden layers."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from entourage.errors import InputError
from entourage.values import Embeddings

__all__ = ["VectorEncoder", "check_takes"]


class VectorEncoder(nn.Module):
    """Vectors (b, in_dim) -> (b, dim) unit vectors: Linear, or Linear-ReLU for each width in `hidden` before it.

    It has no preprocessing and no feature map: what it takes are the vectors of an Embeddings set.

    Parameters
    ----------
    in_dim : int
        Dimensions of the vectors it takes.
    dim : int
        Dimensions of the vectors it gives.
    hidden : tuple of int
        Widths of hidden layers; none makes it linear.
    dropout : float
        Share of the hidden values left out in training.
    """

    preprocessing = None

    def __init__(self, in_dim: int, dim: int = 128, *, hidden: tuple[int, ...] = (), dropout: float = 0.0) -> None:
        super().__init__()
        hidden = tuple(hidden)
        if min(in_dim, dim, *hidden) < 1:
            raise InputError(
                f"in_dim, dim and hidden are {in_dim}, {dim} and {hidden}; wanted 1 or more dimensions each"
            )
        if not 0 <= dropout < 1:
            raise InputError(f"dropout is {dropout}; wanted 0 or more and less than 1")
        self.in_dim, self.dim = in_dim, dim
        self.options = {"in_dim": in_dim, "dim": dim, "hidden": list(hidden), "dropout": dropout}
        layers: list[nn.Module] = []
        for n_in, n_out in zip((in_dim, *hidden), hidden, strict=False):
            layers += [nn.Linear(n_in, n_out), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers)
        self.projection = nn.Linear(hidden[-1] if hidden else in_dim, dim)

    def projected(self, vectors: Tensor) -> Tensor:
        """(b, dim) of vectors (b, in_dim), before they are scaled to length 1."""
        return self.projection(self.layers(vectors))

    def forward(self, vectors: Tensor) -> Tensor:
        """Unit vectors (b, dim) of vectors (b, in_dim)."""
        return F.normalize(self.projected(vectors), dim=1)


def check_takes(encoder: Any, items: Any) -> None:
    """Refuse items that an encoder does not take.

    Parameters
    ----------
    encoder : Encoder or CallableEncoder
        One of vectors has `in_dim`.
    items : ImageSet, Embeddings, ndarray or sequence
        What is to be embedded.

    Raises
    ------
    InputError
        For vectors and an encoder of pictures, pictures and one of vectors, and vectors of other dimensions.
    """
    wanted = getattr(encoder, "in_dim", None)
    given = items.dim if isinstance(items, Embeddings) else None
    if wanted == given:
        return
    if wanted is None:
        raise InputError(f"the items are vectors of {given} dimensions; wanted an encoder of vectors: linear or mlp")
    seen = "pictures" if given is None else f"vectors of {given} dimensions"
    raise InputError(
        f"the items are {seen} and the encoder takes vectors of {wanted} dimensions, as Embeddings; "
        "give it those, or use another encoder"
    )
