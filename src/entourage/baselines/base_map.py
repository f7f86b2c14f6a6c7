"""The refiner's base map on its own: whitening, then a head, for rivals that are to stand on the same ground."""

from collections.abc import Mapping

import numpy as np

from entourage.baselines.method import LinearMap, training_codes
from entourage.refiner.base_map import learn_base_maps
from entourage.runtime.checks import check_share, check_whole
from entourage.runtime.extras import needs_training
from entourage.values import Embeddings

__all__ = ["BaseMap"]


class BaseMap(LinearMap):
    """Within-class whitening followed by a linear head trained on the labels, as the relational refiner learns them.

    Parameters
    ----------
    shrinkage : float
        How far the whitening is shrunk towards the identity; 1 is none.
    steps : int
        For how many steps the head is trained; 0 is none.
    random_state : int
        Seed of the batches.

    Attributes
    ----------
    map_ : ndarray of shape (d, d)
    """

    _needs_labels = True

    def __init__(self, shrinkage: float = 0.5, steps: int = 150, random_state: int = 0) -> None:
        self.shrinkage = shrinkage
        self.steps = steps
        self.random_state = random_state

    @property
    def settings(self) -> tuple[float, int]:
        """Shrinkage and steps, as the refiner names a base map."""
        return self.shrinkage, self.steps

    def fit_to(self, learned: Mapping[tuple[float, int], np.ndarray]) -> "BaseMap":
        """Use one of several maps (d, d) that were learned together, by their shrinkage and steps."""
        base_map = learned[self.settings]
        self.n_features_in_ = len(base_map)
        self.mean_, self.map_ = 0.0, base_map.astype(np.float64)
        return self

    def _check_settings(self) -> None:
        check_share("shrinkage", self.shrinkage)
        check_whole("steps", self.steps, 0)
        check_whole("random_state", self.random_state, 0)

    def _learn(self, items: Embeddings) -> None:
        codes = training_codes(items)
        with needs_training("a base map"):
            self.fit_to(learn_base_maps(items.vectors, codes, [self.settings], int(self.random_state)))
