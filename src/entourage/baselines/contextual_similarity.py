"""Contextual similarity aggregation as an estimator, which learns with torch; see similarity_network.py."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from entourage.baselines.trained import TrainedMethod
from entourage.runtime.checks import check_whole
from entourage.training.history import History
from entourage.values import Embeddings, Neighbors

if TYPE_CHECKING:
    from entourage.baselines.similarity_network import SimilarityNetwork

__all__ = ["ContextualSimilarity"]


class ContextualSimilarity(TrainedMethod):
    """Re-rank the candidates of a query by whom they are similar to (CSA, Ouyang et al. 2021).

    Each candidate is described by its similarities to the query's nearest items, a transformer encoder refines these
    descriptions by each other, and candidates are ranked by the cosine of theirs with the query's. The other items
    follow in their first order. Loss and temperature are the published ones; the encoder is smaller (768 wide there,
    with 512 candidates and anchors) and is trained by Adam. When to stop is decided on classes held out of training.

    Parameters
    ----------
    candidates : int
        How many of a query's nearest items are ranked again; all where there are fewer.
    anchors : int
        To how many items, the query itself and its nearest, similarities are taken.
    width : int
        Dimensions in which the encoder works, a multiple of 4.
    layers : int
        Layers of the encoder.
    epochs, learning_rate, patience, validation_share, random_state
        How it is trained; see TrainedMethod.

    Attributes
    ----------
    network_ : SimilarityNetwork
    history_ : History
        As of every TrainedMethod.
    """

    _title = "contextual similarity aggregation"
    _counts = ("candidates", "anchors", "layers")
    network_: "SimilarityNetwork"

    def __init__(
        self,
        candidates: int = 64,
        anchors: int = 64,
        width: int = 128,
        layers: int = 2,
        epochs: int = 20,
        learning_rate: float = 3e-4,
        patience: int = 4,
        validation_share: float = 0.2,
        random_state: int = 0,
    ) -> None:
        self.candidates = candidates
        self.anchors = anchors
        self.width = width
        self.layers = layers
        super().__init__(epochs, learning_rate, patience, validation_share, random_state)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_whole("width", self.width, 4)

    def _new_network(self, dim: int) -> "SimilarityNetwork":
        from entourage.baselines.similarity_network import SimilarityNetwork

        return SimilarityNetwork(self.anchors, 4 * (self.width // 4), self.layers)

    def _train(self, network: Any, training: Embeddings, held_out: Embeddings | None, **how: Any) -> History:
        from entourage.baselines.similarity_network import train_similarity

        return train_similarity(network, training, held_out, self.candidates, self.anchors, **how)

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        from entourage.baselines.similarity_network import ranked_by

        return ranked_by(self.network_, items, k, self.candidates, self.anchors)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        from entourage.baselines.similarity_network import ranked_in

        return ranked_in(self.network_, queries, gallery, k, self.candidates, self.anchors)
