"""How an encoder is trained by divide and conquer."""

from dataclasses import dataclass
from typing import NamedTuple

from entourage.errors import InputError
from entourage.systems.settings import MetricLossSettings

__all__ = ["DivideSettings", "Phases"]


class Phases(NamedTuple):
    """How many epochs each phase of a training has."""

    slices: int
    """Batches of one cluster each train the slice of its learner."""
    clusters: int
    """Batches of one cluster each train the whole embedding."""
    everything: int
    """Batches of all the data train the whole embedding."""


@dataclass(frozen=True)
class DivideSettings(MetricLossSettings):
    """K learners, each on a slice of the embedding and a cluster of the data; the defaults are the paper's.

    What the paper leaves open is as in its authors' code, run as their README says (--finetune-epoch=190 of 200
    epochs): the lengths of the phases, and the k-means. Their learning rate, 1e-5, and their frozen batch norm are for
    a pretrained encoder and stand in the presets; the defaults here are for one trained from scratch.
    """

    loss: str = "margin"
    """The loss by name; see training.losses.LOSSES. Every learner has one of its own, and so has the whole."""
    batch_classes: int = 20
    """Classes in a batch."""
    learners: int = 8
    """K: slices of the embedding, and clusters of the data; dim is a multiple of it."""
    recluster_every: int = 2
    """T: epochs between two clusterings of the training pictures."""
    slice_share: float = 0.4
    """Share of the epochs, the first ones, that train each learner's slice on its cluster: 80 of 200."""
    conquer_share: float = 0.05
    """Share of the epochs, the last ones, that train the whole embedding on all the data: 10 of 200. Those between
    train the whole embedding in batches of one cluster; slice_share = conquer_share = 0.5 has none of them."""
    cluster_starts: int = 5
    """Starts of the k-means, of which the best is kept."""
    cluster_iterations: int = 100
    """Iterations of each start, at most."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("learners", 2, "or more, so that there is something to divide")
        for name in ("recluster_every", "cluster_starts", "cluster_iterations"):
            self._check(name, 1, "or more")
        for name in ("slice_share", "conquer_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; wanted 0 or more and at most 1")
        if self.slice_share + self.conquer_share > 1 + 1e-9:
            raise InputError(
                f"slice_share is {self.slice_share} and conquer_share is {self.conquer_share}; wanted at most 1 "
                "together: lower one of them"
            )
        if self.dim % self.learners:
            raise InputError(
                f"dim is {self.dim}, which {self.learners} learners do not divide evenly; wanted the same number of "
                f"dimensions for each: make dim a multiple of {self.learners}, or change learners"
            )

    @property
    def phases(self) -> Phases:
        """The epochs of each phase; one with a share has an epoch at least, where there are three or more.

        >>> DivideSettings(epochs=200).phases
        Phases(slices=80, clusters=110, everything=10)
        >>> DivideSettings(epochs=12, slice_share=0.5, conquer_share=0.5).phases
        Phases(slices=6, clusters=0, everything=6)
        """
        least = 1 if self.epochs >= len(Phases._fields) else 0
        divided = min(self._until(1 - self.conquer_share), self.epochs - (least if self.conquer_share else 0))
        slices = min(max(self._until(self.slice_share), least if self.slice_share else 0), divided)
        return Phases(slices, divided - slices, self.epochs - divided)

    def _until(self, share: float) -> int:
        """The last epoch of that share of them; both ends of a phase are rounded alike, so that shares add up."""
        return int(share * self.epochs + 0.5 + 1e-9)
