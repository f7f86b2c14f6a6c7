"""Query expansion that is learned from labels, with torch; see expansion_network.py for what is computed."""

from typing import TYPE_CHECKING

from entourage.baselines.method import VectorMethod, training_codes
from entourage.runtime.checks import check_not_negative, check_share, check_whole
from entourage.runtime.extras import needs_training
from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.sampling import hold_out_classes
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.baselines.expansion_network import ExpansionNetwork

__all__ = ["AttentionExpansion", "GraphExpansion"]


class AttentionExpansion(VectorMethod):
    """Learned query expansion (LAttQE, Gordo et al. 2020) of all items by their own neighbours.

    A transformer encoder over an item and its neighbours weighs what each of them adds. As every item is replaced, this
    is query expansion with database augmentation. It is smaller than the published one (three layers as wide as the
    vectors), and trained by the loss of all trained baselines; when to stop is decided on classes held out of training.

    **transform depends on what is there: items are expanded by those they are given with and the items of fit.**

    Parameters
    ----------
    k : int
        Number of neighbours of each item; all other items where there are fewer.
    width : int
        Dimensions in which the encoder works, a multiple of 4.
    layers : int
        Layers of the encoder.
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
    network_ : ExpansionNetwork
    history_ : History
        The curve of MAP@R on the held-out classes, and the epoch that was kept.
    """

    _learned = "network_"
    _needs_labels = True
    _least = (2, 1)
    _hops = 1
    network_: "ExpansionNetwork"
    history_: History

    def __init__(
        self,
        k: int = 16,
        width: int = 128,
        layers: int = 2,
        epochs: int = 20,
        learning_rate: float = 3e-4,
        patience: int = 4,
        validation_share: float = 0.2,
        random_state: int = 0,
    ) -> None:
        self.k = k
        self.width = width
        self.layers = layers
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
        for name in ("k", "layers", "epochs", "patience"):
            check_whole(name, getattr(self, name), 1)
        check_whole("width", self.width, 4)
        check_not_negative("learning_rate", self.learning_rate)
        check_share("validation_share", self.validation_share, below_one=True)
        check_whole("random_state", self.random_state, 0)

    def _learn(self, items: Embeddings) -> None:
        with needs_training("learned query expansion"):
            from entourage.baselines.expansion_network import ExpansionNetwork, train_expansion
        seed, width = int(self.random_state), 4 * (self.width // 4)
        held_out = hold_out_classes(training_codes(items), self.validation_share, seed)
        network = seeded_weights(seed, lambda: ExpansionNetwork(items.dim, self.k, width, self.layers, self._hops))
        self.history_ = train_expansion(
            network,
            items.take(~held_out),
            items.take(held_out) if held_out.any() else None,
            self.k,
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        self.network_ = network
        self.items_ = items

    def _moved(self, items: Embeddings) -> Embeddings:
        from entourage.baselines.expansion_network import expanded_by

        return expanded_by(self.network_, items, self.k)


class GraphExpansion(AttentionExpansion):
    """Graph query expansion (GQE, Klein and Wolf 2021): learned expansion by neighbours that were themselves expanded.

    Two aggregators follow one another, so that an item learns from the neighbours of its neighbours. Parameters and
    attributes are those of AttentionExpansion, with fewer neighbours, as training gathers k x k of them for each item.
    """

    _hops = 2

    def __init__(
        self,
        k: int = 8,
        width: int = 128,
        layers: int = 1,
        epochs: int = 20,
        learning_rate: float = 3e-4,
        patience: int = 4,
        validation_share: float = 0.2,
        random_state: int = 0,
    ) -> None:
        super().__init__(k, width, layers, epochs, learning_rate, patience, validation_share, random_state)
