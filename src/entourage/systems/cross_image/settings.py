"""How an encoder is trained by conditional embeddings: the cross-image system."""

from dataclasses import dataclass, field
from typing import Any

from entourage.errors import InputError
from entourage.runtime.config import check_known
from entourage.systems.settings import EncoderSettings

__all__ = ["CrossImageSettings"]

_LOSSES = ("ms", "ms-printed")


@dataclass(frozen=True)
class CrossImageSettings(EncoderSettings):
    """Cross-attention from an image's embedding into the feature map of the image it is compared with."""

    loss: str = "ms"
    """The loss, a loss of similarities: ms or ms-printed."""
    loss_options: dict[str, Any] = field(default_factory=dict)
    """Further options of the loss."""
    blocks: int = 6
    """Number of cross-attention blocks."""
    conditional_weight: float = 0.5
    """Share of the conditional similarities in the loss, the rest being the unconditional ones'; 0 is the baseline."""
    negatives: int | None = None
    """Condition each image on this many of the most similar images of other classes; None for all of the batch."""
    block_learning_rate: float | None = None
    """Learning rate of the blocks; None for the encoder's."""
    pairs_at_once: int = 2048
    """Pairs whose activations are computed together; fewer take less memory."""
    recompute: bool | None = None
    """Compute activations of pairs again for the gradient instead of holding them; None where they are large."""
    probe_batches: int = 1
    """Batches at the start of every epoch whose gradients at the feature map are counted; 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("blocks", "negatives", "pairs_at_once"):
            self._check(name, 1, "or more")
        for name in ("block_learning_rate", "probe_batches"):
            self._check(name, 0, "or more")
        check_known(self.loss, _LOSSES, "the loss for this system")
        if not 0 <= self.conditional_weight <= 1:
            raise InputError(f"conditional_weight is {self.conditional_weight}; wanted a share between 0 and 1")
