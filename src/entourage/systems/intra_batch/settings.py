"""How an encoder is trained by messages within the batch, and how a student learns from such a run."""

from dataclasses import dataclass
from typing import Any

from entourage.errors import InputError
from entourage.runtime.config import check_known
from entourage.systems.settings import EncoderSettings

__all__ = ["DISTILLATIONS", "PRESETS", "IntraBatchSettings", "StudentSettings"]

DISTILLATIONS = ("class-probabilities", "features", "relations")
_CHOICES = {"auxiliary_head": ("linear", "neck"), "class_columns": ("all", "batch")}


@dataclass(frozen=True)
class IntraBatchSettings(EncoderSettings):
    """An encoder and a message-passing network over its batches, trained together."""

    batch_classes: int = 10
    """Classes in a batch."""
    batch_per_class: int = 7
    """Pictures of each of them."""
    steps: int = 1
    """Message-passing steps, L."""
    heads: int = 2
    """Attention heads of a step, M; a divisor of the embedding's dimensions."""
    feed_forward: int = 4
    """Width of the hidden layer after the attention, in multiples of the embedding's dimensions."""
    dropout: float = 0.1
    """Share of attention weights and of activations left out in training."""
    temperature: float = 0.2
    """Divides the logits of both classifiers."""
    label_smoothing: float = 0.1
    """Share of the target that goes to all classes alike."""
    network_weight: float = 1.0
    """Weight of the cross-entropy after the network; 0 trains by the encoder's own alone."""
    auxiliary_weight: float = 1.0
    """Weight of the cross-entropy on the encoder's embedding; 0 trains by the network's alone."""
    auxiliary_head: str = "linear"
    """The encoder's classifier: "linear", of the projection as it is, or "neck", the network's kind on unit vectors."""
    messages: bool = True
    """Whether the pictures of a batch exchange messages; without, the network sees each alone, as a control."""
    class_columns: str = "all"
    """Which classes the classifiers compute: "all", or those of the "batch", for very many classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("steps", "heads", "feed_forward"):
            self._check(name, 1, "or more")
        for name in ("network_weight", "auxiliary_weight"):
            self._check(name, 0, "or more")
        for name in ("dropout", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; wanted 0 or more and less than 1")
        if not self.temperature > 0:
            raise InputError(f"temperature is {self.temperature}; wanted more than 0")
        if self.network_weight == self.auxiliary_weight == 0:
            raise InputError("network_weight and auxiliary_weight are both 0; wanted one of them above 0 to learn from")
        for name, choices in _CHOICES.items():
            check_known(getattr(self, name), choices, name)


@dataclass(frozen=True)
class StudentSettings(EncoderSettings):
    """An encoder that learns, without labels, what the network of another run makes of the same batches."""

    batch_classes: int = 10
    """Classes in a batch."""
    batch_per_class: int = 7
    """Pictures of each of them."""
    teacher: str = ""
    """The folder of a run trained by messages within the batch."""
    distillation: str = "class-probabilities"
    """What is imitated: class-probabilities, features or relations."""
    distillation_temperature: float = 1.0
    """Divides the logits of teacher and student alike; class-probabilities only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.teacher:
            raise InputError("teacher is empty; wanted the folder of a run of the system intra-batch to learn from")
        check_known(self.distillation, DISTILLATIONS, "distillation")
        if not self.distillation_temperature > 0:
            raise InputError(f"distillation_temperature is {self.distillation_temperature}; wanted more than 0")


def _preset(
    batch: tuple[int, int], steps: int, heads: int, rate: float, decay: float, temperature: float
) -> dict[str, Any]:
    return {
        "encoder": "microsoft/resnet-50",
        "encoder_options": {"pooling": "max"},
        "dim": 512,
        "image_size": 227,
        "epochs": 70,
        "patience": 70,
        "scheduler": "step",
        "step_after": [30, 50],
        "batch_classes": batch[0],
        "batch_per_class": batch[1],
        "steps": steps,
        "heads": heads,
        "learning_rate": rate,
        "weight_decay": decay,
        "temperature": temperature,
    }


# The authors' settings, found by random search, as the configurations of their public code have them.
PRESETS: dict[str, dict[str, Any]] = {
    "cars": _preset((10, 7), steps=2, heads=8, rate=3.67e-4, decay=2.6e-9, temperature=0.111),
    "cub": _preset((6, 9), steps=1, heads=2, rate=1.56e-4, decay=6.1e-6, temperature=0.2),
    "in_shop": _preset((14, 4), steps=1, heads=4, rate=1.13e-4, decay=1.1e-7, temperature=0.186),
    "sop": _preset((15, 6), steps=1, heads=8, rate=2.47e-4, decay=2.8e-13, temperature=0.605),
}
