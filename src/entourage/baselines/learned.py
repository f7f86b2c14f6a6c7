"""Baselines that are trained like a refiner but do not use neighbours. They learn with torch."""

from typing import TYPE_CHECKING

import numpy as np

from entourage.baselines.method import LinearMap, VectorMethod, training_codes
from entourage.runtime.checks import check_not_negative, check_share, check_whole
from entourage.runtime.extras import needs_training
from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.linear_maps import head_maps_by_epoch
from entourage.training.sampling import hold_out_classes
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.baselines.self_attention import SelfAttentionNetwork

__all__ = ["LinearHead", "SelfAttention", "fit_linear_head"]


def fit_linear_head(training: Embeddings, *, epochs: int, learning_rate: float, seed: int = 0) -> np.ndarray:
    """Train a map that starts as the identity by the multi-similarity loss of normalise(x M).

    Parameters
    ----------
    training : Embeddings
        N labelled items of d dimensions.
    epochs : int
        Passes over the items.
    learning_rate : float
        Learning rate of Adam.
    seed : int
        Seed of the batch sampling.

    Returns
    -------
    ndarray of shape (d, d)
        M, float64.
    """
    codes = training_codes(training)
    with needs_training("a linear head"):
        maps = head_maps_by_epoch(training.vectors, codes, [epochs], learning_rate=learning_rate, seed=seed)
    return maps[epochs].astype(np.float64)


class LinearHead(LinearMap):
    """A linear map trained on the labels; see `fit_linear_head`.

    Parameters
    ----------
    epochs : int
        Passes over the training items.
    learning_rate : float
        Learning rate of Adam.
    random_state : int
        Seed of the batches.

    Attributes
    ----------
    map_ : ndarray of shape (d, d)
    """

    _needs_labels = True
    _least = (2, 1)

    def __init__(self, epochs: int = 6, learning_rate: float = 3e-4, random_state: int = 0) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit_to(self, learned: np.ndarray) -> "LinearHead":
        """Use a map (d, d) that was learned before, as when one training serves several numbers of epochs."""
        self.n_features_in_ = len(learned)
        self.mean_, self.map_ = 0.0, learned.astype(np.float64)
        return self

    def _check_settings(self) -> None:
        check_whole("epochs", self.epochs, 1)
        check_not_negative("learning_rate", self.learning_rate)
        check_whole("random_state", self.random_state, 0)

    def _learn(self, items: Embeddings) -> None:
        seed = int(self.random_state)
        self.fit_to(fit_linear_head(items, epochs=self.epochs, learning_rate=self.learning_rate, seed=seed))


class SelfAttention(VectorMethod):
    """The refiner without its neighbours: "CA only" in Table 4 of Attend to Context.

    Trained as the refiner is, the stopping point chosen on classes held out of training. n_parameters_ counts whole
    blocks, though their queries and keys make no difference here and stay as they were drawn.

    Parameters
    ----------
    n_blocks : int
        T, how many blocks follow one another.
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
    network_ : SelfAttentionNetwork
    history_ : History
        The curve of MAP@R on the held-out classes, and the epoch that was kept.
    """

    _learned = "network_"
    _needs_labels = True
    _least = (2, 1)
    network_: "SelfAttentionNetwork"
    history_: History

    def __init__(
        self,
        n_blocks: int = 8,
        epochs: int = 30,
        learning_rate: float = 1e-4,
        patience: int = 5,
        validation_share: float = 0.2,
        random_state: int = 0,
    ) -> None:
        self.n_blocks = n_blocks
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation_share = validation_share
        self.random_state = random_state

    @property
    def n_parameters_(self) -> int:
        self._check_fitted()
        return sum(parameter.numel() for parameter in self.network_.parameters())

    def _check_settings(self) -> None:
        for name in ("n_blocks", "epochs", "patience"):
            check_whole(name, getattr(self, name), 1)
        check_not_negative("learning_rate", self.learning_rate)
        check_share("validation_share", self.validation_share, below_one=True)
        check_whole("random_state", self.random_state, 0)

    def _learn(self, items: Embeddings) -> None:
        with needs_training("self-attention"):
            from entourage.baselines.self_attention import SelfAttentionNetwork, train_network
        seed = int(self.random_state)
        held_out = hold_out_classes(training_codes(items), self.validation_share, seed)
        network = seeded_weights(seed, lambda: SelfAttentionNetwork(items.dim, self.n_blocks))
        self.history_ = train_network(
            network,
            items.take(~held_out),
            items.take(held_out) if held_out.any() else None,
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        self.network_ = network

    def _moved(self, items: Embeddings) -> Embeddings:
        from entourage.baselines.self_attention import apply_network

        return apply_network(self.network_, items)
