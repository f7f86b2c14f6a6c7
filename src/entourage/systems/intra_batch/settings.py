"""How an encoder is trained by messages within the batch, and how a student learns from such a run."""

from dataclasses import dataclass

from entourage.errors import InputError
from entourage.runtime.config import check_known
from entourage.systems.settings import EncoderSettings

__all__ = ["DISTILLATIONS", "IntraBatchSettings", "StudentSettings"]

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
