"""Query expansion that is learned from labels, with torch; see expansion_network.py for what is computed."""

from typing import TYPE_CHECKING, Any

from entourage.baselines.method import VectorMethod
from entourage.baselines.trained import TrainedMethod
from entourage.runtime.checks import check_whole
from entourage.training.history import History
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.baselines.expansion_network import ExpansionNetwork

__all__ = ["AttentionExpansion", "GraphExpansion"]


class AttentionExpansion(TrainedMethod, VectorMethod):
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
    epochs, learning_rate, patience, validation_share, random_state
        How it is trained; see TrainedMethod.

    Attributes
    ----------
    network_ : ExpansionNetwork
    history_ : History
        As of every TrainedMethod.
    """

    _title = "learned query expansion"
    _counts = ("k", "layers")
    _hops = 1
    network_: "ExpansionNetwork"

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
        super().__init__(epochs, learning_rate, patience, validation_share, random_state)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_whole("width", self.width, 4)

    def _learn(self, items: Embeddings) -> None:
        super()._learn(items)
        self.items_ = items

    def _new_network(self, dim: int) -> "ExpansionNetwork":
        from entourage.baselines.expansion_network import ExpansionNetwork

        return ExpansionNetwork(dim, self.k, 4 * (self.width // 4), self.layers, self._hops)

    def _train(self, network: Any, training: Embeddings, held_out: Embeddings | None, **how: Any) -> History:
        from entourage.baselines.expansion_network import train_expansion

        return train_expansion(network, training, held_out, self.k, **how)

    def _moved(self, items: Embeddings) -> Embeddings:
        from entourage.baselines.expansion_network import expanded_by

        return expanded_by(self.network_, items, self.k)

    def _moved_both(self, queries: Embeddings, gallery: Embeddings) -> tuple[Embeddings, Embeddings]:
        from entourage.baselines.expansion_network import expanded_both

        return expanded_both(self.network_, queries, gallery, self.k)


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
