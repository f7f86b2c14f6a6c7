"""What baselines share whose network is trained, with torch, until classes held out of training say stop."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from entourage.baselines.method import Method, training_codes
from entourage.runtime.checks import check_not_negative, check_share, check_whole
from entourage.runtime.extras import needs_training
from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.sampling import check_usable_classes, hold_out_classes
from entourage.values import Embeddings

if TYPE_CHECKING:
    from torch import nn

__all__ = ["TrainedMethod"]


class TrainedMethod(Method):
    """A method that trains a network on labelled items. A subclass implements `_new_network` and `_train`.

    It has these parameters beside its own, each with a default, and hands them on.

    Parameters
    ----------
    epochs : int
        At most this many passes over the training items.
    learning_rate : float
        Learning rate of Adam.
    patience : int
        Stop after this many epochs without a better score on the held-out classes.
    validation_share : float
        Share of the training classes held out.
    random_state : int
        Seed of everything that is drawn at random.

    Attributes
    ----------
    network_ : torch.nn.Module
    history_ : History
        The curve of MAP@R on the held-out classes, and the epoch that was kept.
    """

    _learned = "network_"
    _needs_labels = True
    _least = (2, 1)
    _title: str
    """What it is called where torch is missing."""
    _counts: tuple[str, ...] = ()
    """Its own parameters that are whole numbers from 1 on."""
    network_: Any
    history_: History

    def __init__(
        self, epochs: int, learning_rate: float, patience: int, validation_share: float, random_state: int
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation_share = validation_share
        self.random_state = random_state

    @property
    def n_parameters_(self) -> int:
        self._check_fitted()
        return sum(parameter.numel() for parameter in self.network_.parameters())

    @abstractmethod
    def _new_network(self, dim: int) -> "nn.Module":
        """A network for vectors of d dimensions, with weights as torch draws them."""

    @abstractmethod
    def _train(self, network: Any, training: Embeddings, held_out: Embeddings | None, **how: Any) -> History:
        """Train it in place; how: epochs, patience, learning_rate and seed."""

    def _check_settings(self) -> None:
        for name in (*self._counts, "epochs", "patience"):
            check_whole(name, getattr(self, name), 1)
        check_not_negative("learning_rate", self.learning_rate)
        check_share("validation_share", self.validation_share, below_one=True)
        check_whole("random_state", self.random_state, 0)

    def _learn(self, items: Embeddings) -> None:
        codes, seed = training_codes(items), int(self.random_state)
        check_usable_classes(codes)
        held_out = hold_out_classes(codes, self.validation_share, seed)
        with needs_training(self._title):
            network = seeded_weights(seed, lambda: self._new_network(items.dim))
        self.history_ = self._train(
            network,
            items.take(~held_out),
            items.take(held_out) if held_out.any() else None,
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        self.network_ = network
