"""The settings that all systems share: the encoder, its batches, its optimiser and when to stop."""

from dataclasses import dataclass, field
from typing import Any

from entourage.errors import InputError
from entourage.runtime.config import check_known, check_types

__all__ = ["NOT_DECISIVE", "EncoderSettings", "MetricLossSettings"]

_FROZEN = ("none", "statistics", "all")
_OPTIMIZERS = ("adam", "adamw", "sgd")  # those of training.optimizers, which needs torch

NOT_DECISIVE = {"workers", "device", "tensorboard"}  # settings a resumed run may change


@dataclass(frozen=True)
class EncoderSettings:
    """Settings that all systems that train an encoder share."""

    encoder: str = "auto"
    """The encoder by name: "small", "small-rgb", "linear", "mlp", a saved one by folder, a Hugging Face vision model by
    hub name or folder; "auto" is the small one that takes the items: grey pictures, colours, or vectors."""
    encoder_options: dict[str, Any] = field(default_factory=dict)
    """Further options of the encoder: pooling, freeze_batch_norm, ..."""
    dim: int = 128
    """Dimensions of the embedding."""
    image_size: int | None = None
    """Height and width the encoder sees; None for the encoder's own, or that of pictures in memory."""
    preprocessing: dict[str, Any] = field(default_factory=dict)
    """How pictures are prepared where it differs from the encoder's own: fields of data.preprocessing.Preprocessing,
    such as resize, crop, random_crop and flip; "none" where a field may be None."""
    batch_classes: int = 32
    """Classes in a batch."""
    batch_per_class: int = 4
    """Pictures of each of them."""
    epochs: int = 20
    """Passes over the training pictures, at most."""
    patience: int = 5
    """Stop when the best score is this many epochs old."""
    evaluate_every: int = 1
    """Epochs between two scores of the classes held out."""
    optimizer: str = "adam"
    """What takes the steps: adam, adamw or sgd (with momentum)."""
    learning_rate: float = 1e-3
    """Learning rate of the encoder; 1e-5 to 1e-4 for a pretrained one."""
    weight_decay: float = 1e-4
    """Weight decay of the encoder."""
    clip: float | None = None
    """The largest norm of the gradient; None for no limit."""
    scheduler: str = "constant"
    """How the learning rates change: constant, cosine or step."""
    step_after: tuple[int, ...] = ()
    """The epochs after which "step" multiplies the learning rates by step_factor."""
    step_factor: float = 0.1
    """What "step" multiplies them by."""
    warmup_epochs: int = 0
    """The first epochs, over which the learning rates grow linearly."""
    head_epochs: int = 0
    """The first epochs, in which of the encoder its projection alone learns."""
    freeze_batch_norm: str = "none"
    """What the encoder's batch norms keep of the encoder training begins with: "none"; their "statistics" alone; "all",
    scale and shift too."""
    validation_share: float = 0.2
    """Share of the training classes held out, to choose the epoch that is kept; 0 keeps the last."""
    refit: bool = True
    """Whether, once the epoch is chosen, a new encoder is trained on all classes for as many epochs."""
    augment: bool = True
    """Random crops and flips in training, as far as the encoder's preprocessing has any."""
    seed: int = 0
    """Decides weights, held-out classes, batches and augmentation."""
    workers: int | None = None
    """Threads that decode pictures; None for one per core."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:1; auto takes CUDA if there is any."""
    amp: bool = False
    """Forward passes in bfloat16, on CUDA; a CPU ignores it."""
    tensorboard: bool = False
    """Also log for TensorBoard."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("dim", "batch_classes", "batch_per_class", "evaluate_every", "patience", "image_size", "workers"):
            self._check(name, 1, "or more")
        self._check("batch_classes", 2, "or more, so that there is something to tell apart")
        self._check("batch_per_class", 2, "or more, so that there is something to bring together")
        for name in ("epochs", "seed", "learning_rate", "weight_decay", "warmup_epochs", "head_epochs"):
            self._check(name, 0, "or more")
        if not 0 < self.step_factor <= 1:
            raise InputError(f"step_factor is {self.step_factor}; wanted more than 0 and at most 1")
        check_known(self.optimizer, _OPTIMIZERS, "the optimizer")
        check_known(self.freeze_batch_norm, _FROZEN, "freeze_batch_norm")
        if self.clip is not None and self.clip <= 0:
            raise InputError(f"clip is {self.clip}; wanted more than 0, or nothing for no limit")
        if not 0 <= self.validation_share < 1:
            raise InputError(f"validation_share is {self.validation_share}; wanted 0 or more and less than 1")

    def _check(self, name: str, least: int, wanted: str) -> None:
        value = getattr(self, name)
        if value is not None and not value >= least:
            raise InputError(f"{name} is {value}; wanted {least} {wanted}")


@dataclass(frozen=True)
class MetricLossSettings(EncoderSettings):
    """Further settings of systems that train with a metric loss."""

    loss: str = "ms"
    """The loss by name; see training.losses.LOSSES."""
    loss_options: dict[str, Any] = field(default_factory=dict)
    """Further options of the loss."""
    loss_learning_rate: float | None = None
    """Learning rate of the loss's own parameters; None for 100 times the encoder's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("loss_learning_rate", 0, "or more")
