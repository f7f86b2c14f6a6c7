"""Contextual similarity aggregation as an estimator, which learns with torch; see similarity_network.py."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from entourage.baselines.method import Method, training_codes
from entourage.runtime.checks import check_not_negative, check_share, check_whole
from entourage.runtime.extras import needs_training
from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.sampling import check_usable_classes, hold_out_classes
from entourage.values import Embeddings, Neighbors

if TYPE_CHECKING:
    from entourage.baselines.similarity_network import SimilarityNetwork

__all__ = ["ContextualSimilarity"]


class ContextualSimilarity(Method):
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
    network_ : SimilarityNetwork
    history_ : History
        The curve of MAP@R on the held-out classes, and the epoch that was kept.
    """

    _learned = "network_"
    _needs_labels = True
    _least = (2, 1)
    network_: "SimilarityNetwork"
    history_: History

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
        for name in ("candidates", "anchors", "layers", "epochs", "patience"):
            check_whole(name, getattr(self, name), 1)
        check_whole("width", self.width, 4)
        check_not_negative("learning_rate", self.learning_rate)
        check_share("validation_share", self.validation_share, below_one=True)
        check_whole("random_state", self.random_state, 0)

    def _learn(self, items: Embeddings) -> None:
        with needs_training("contextual similarity aggregation"):
            from entourage.baselines.similarity_network import SimilarityNetwork, train_similarity
        seed, width, codes = int(self.random_state), 4 * (self.width // 4), training_codes(items)
        check_usable_classes(codes)
        held_out = hold_out_classes(codes, self.validation_share, seed)
        network = seeded_weights(seed, lambda: SimilarityNetwork(self.anchors, width, self.layers))
        self.history_ = train_similarity(
            network,
            items.take(~held_out),
            items.take(held_out) if held_out.any() else None,
            self.candidates,
            self.anchors,
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        self.network_ = network

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        from entourage.baselines.similarity_network import ranked_by

        return ranked_by(self.network_, items, k, self.candidates, self.anchors)
