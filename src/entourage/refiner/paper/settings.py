"""Settings of the published recipe."""

from dataclasses import dataclass

from entourage.refiner.settings import MOST_NEIGHBORS, MOST_STEPS
from entourage.runtime.checks import check_finite, check_flag, check_positive, check_share, check_whole
from entourage.runtime.config import check_known

__all__ = ["PaperSettings"]

# The least each whole number can be; a batch needs two classes and two items of each to compare.
_LEAST = {
    "n_neighbors": 1,
    "n_blocks": 1,
    "batch_classes": 2,
    "batch_per_class": 2,
    "epochs": 1,
    "patience": 1,
    "random_state": 0,
}
_MOST = {"n_neighbors": MOST_NEIGHBORS, "n_blocks": MOST_STEPS}


@dataclass(frozen=True)
class PaperSettings:
    """Settings of the published recipe, checked. Defaults are the paper's, which leaves open when to stop."""

    n_neighbors: int = 8
    """k, how many neighbours each item attends to."""
    n_blocks: int = 8
    """T, how many cross-attention blocks follow one another."""
    out_dim: int | None = None
    """Size of the refined vectors, if not that of the input; adds a linear head."""
    alpha: float = 2.0
    """alpha of the multi-similarity loss (Eq. 4), for pairs of one class."""
    beta: float = 40.0
    """beta of the multi-similarity loss, for pairs of two classes."""
    threshold: float = 0.5
    """Threshold of the multi-similarity loss: the similarity that both are measured from."""
    loss_form: str = "usual"
    """"usual", or "printed" as the paper has it; see multi_similarity."""
    learning_rate: float = 1e-4
    """Learning rate of Adam."""
    batch_classes: int = 64
    """How many classes a batch holds."""
    batch_per_class: int = 2
    """How many items of each class a batch holds."""
    epochs: int = 30
    """At most this many passes over the training items."""
    patience: int = 5
    """Stop after this many epochs without a better score on the held-out classes."""
    validation_share: float = 0.2
    """Share of the training classes held out to choose the stopping point."""
    refit: bool = False
    """Whether new blocks are then trained on all classes for as many epochs."""
    random_state: int = 0
    """Seed of everything that is drawn at random."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            check_whole(name, getattr(self, name), least, _MOST.get(name))
        check_whole("out_dim", self.out_dim, 1, 2**20, none=True)
        for name in ("alpha", "beta", "learning_rate"):
            check_positive(name, getattr(self, name))
        check_finite("threshold", self.threshold)
        check_share("validation_share", self.validation_share, below_one=True)
        check_flag("refit", self.refit)
        check_known(self.loss_form, ("usual", "printed"), "loss_form")
