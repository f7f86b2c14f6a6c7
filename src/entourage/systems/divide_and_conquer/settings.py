"""How an encoder is trained by divide and conquer."""

from dataclasses import dataclass

from entourage.errors import InputError
from entourage.systems.settings import MetricLossSettings

__all__ = ["DivideSettings"]


@dataclass(frozen=True)
class DivideSettings(MetricLossSettings):
    """K learners, each on a slice of the embedding and a cluster of the data; the defaults are the paper's.

    Two are not: its learning rate, 1e-5, is for a pretrained encoder, ours is for one trained from scratch; and
    conquer_share is that of its authors' code (100 of 200 epochs), as the paper does not say.
    """

    loss: str = "margin"
    """The loss by name; see training.losses.LOSSES. Every learner has one of its own, and so has the whole."""
    batch_classes: int = 20
    """Classes in a batch."""
    learners: int = 8
    """K: slices of the embedding, and clusters of the data; dim is a multiple of it."""
    recluster_every: int = 2
    """T: epochs between two clusterings of the training pictures."""
    conquer_share: float = 0.5
    """Share of the epochs, the last ones, that train the whole embedding on all the data."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("learners", 2, "or more, so that there is something to divide")
        self._check("recluster_every", 1, "or more")
        if not 0 <= self.conquer_share <= 1:
            raise InputError(f"conquer_share is {self.conquer_share}; wanted 0 or more and at most 1")
        if self.dim % self.learners:
            raise InputError(
                f"dim is {self.dim}, which {self.learners} learners do not divide evenly; wanted the same number of "
                f"dimensions for each: make dim a multiple of {self.learners}, or change learners"
            )

    @property
    def divided_epochs(self) -> int:
        """How many epochs train one learner at a time; the others train the whole.

        >>> DivideSettings(epochs=20).divided_epochs
        10
        """
        return self.epochs - round(self.conquer_share * self.epochs)
