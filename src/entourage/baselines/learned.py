"""Baselines that are trained like a refiner but do not use neighbours. They learn with torch."""

from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.baselines.method import LinearMap, PointwiseMethod, training_codes
from entourage.baselines.trained import TrainedMethod
from entourage.runtime.checks import check_not_negative, check_whole
from entourage.runtime.extras import needs_training
from entourage.training.history import History
from entourage.training.linear_maps import head_maps_by_epoch
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


class SelfAttention(TrainedMethod, PointwiseMethod):
    """The refiner without its neighbours: "CA only" in Table 4 of Attend to Context.

    Trained as the refiner is, the stopping point chosen on classes held out of training. n_parameters_ counts whole
    blocks, though their queries and keys make no difference here and stay as they were drawn.

    Parameters
    ----------
    n_blocks : int
        T, how many blocks follow one another.
    epochs, learning_rate, patience, validation_share, random_state
        How it is trained; see TrainedMethod.

    Attributes
    ----------
    network_ : SelfAttentionNetwork
    history_ : History
        As of every TrainedMethod.
    """

    _title = "self-attention"
    _counts = ("n_blocks",)
    network_: "SelfAttentionNetwork"

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
        super().__init__(epochs, learning_rate, patience, validation_share, random_state)

    def _new_network(self, dim: int) -> "SelfAttentionNetwork":
        from entourage.baselines.self_attention import SelfAttentionNetwork

        return SelfAttentionNetwork(dim, self.n_blocks)

    def _train(self, network: Any, training: Embeddings, held_out: Embeddings | None, **how: Any) -> History:
        from entourage.baselines.self_attention import train_network

        return train_network(network, training, held_out, **how)

    def _moved(self, items: Embeddings) -> Embeddings:
        from entourage.baselines.self_attention import apply_network

        return apply_network(self.network_, items)
