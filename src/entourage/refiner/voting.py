"""Whether new items of known classes are classified better by their refined neighbours than by raw ones.

Whole rankings gain by refinement even where votes lose: five raw neighbours err independently of each other, five
refined ones have looked at each other before. So it is rehearsed, with items held out of every class, as in a pipeline.

N items, d dimensions.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import mode

from entourage.evaluation.exclusions import labels_of
from entourage.neighbors import search
from entourage.refiner.memory import with_fitted
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.settings import RefinerSettings
from entourage.runtime.randomness import generator
from entourage.values import BoolArray, Embeddings, FloatArray, IntArray, label_codes

__all__ = ["Votes", "rehearse_votes"]

_VOTERS = 5
_NEW = 0.3
_LEAST_KNOWN = 8


class Votes(NamedTuple):
    """The share of new items whose class most of their five nearest known items have."""

    raw: float
    refined: float
    error: float
    """Standard error of their difference, which rests on the items where both disagree."""

    @property
    def warning(self) -> str | None:
        """What to say where votes do not surely win."""
        if self.refined - self.raw >= self.error:
            return None
        shares = f"{100 * self.refined:.1f} % against {100 * self.raw:.1f} % in a rehearsal, ± {100 * self.error:.1f}"
        return (
            f"the vectors are only scaled to length 1: new items of the classes of fit are classified no better by "
            f"refined neighbours than by raw ones ({shares}); give a context to refine them all the same"
        )

    @property
    def metrics(self) -> dict[str, float]:
        """Themselves, as a report has them."""
        return {f"rehearsal_votes_{name}": value for name, value in self._asdict().items()}


def rehearse_votes(
    items: Embeddings, learn: Callable[[Embeddings], RelationalNetwork], settings: RefinerSettings
) -> Votes | None:
    """Hold items out of every class, refine them among the others, and let these vote.

    Parameters
    ----------
    items : Embeddings
        N labelled items.
    learn : callable
        The network that known items teach.
    settings : RefinerSettings

    Returns
    -------
    Votes or None
        None where there are too few items to tell.
    """
    n_steps, new = settings.n_steps, _some_of_each_class(label_codes(labels_of(items)), settings.random_state)
    known, arrivals = items.take(~new), items.take(new)
    if not new.any() or len(known) < _LEAST_KNOWN:
        return None
    network = learn(known)
    refined = known.replace_vectors(_refined(network, known, n_steps))
    together = _refined(network, with_fitted(arrivals, known), n_steps)
    before = _elected(known, arrivals)
    after = _elected(refined, arrivals.replace_vectors(together[: len(arrivals)]))
    error = np.sqrt((before != after).sum()) / len(arrivals)
    return Votes(float(before.mean()), float(after.mean()), float(error))


def _some_of_each_class(codes: IntArray, seed: int) -> BoolArray:
    """(N,) three of ten items of each class, drawn at random and rounded down: at least one stays."""
    place = np.empty(len(codes), np.int64)  # of each item in its class, in an order drawn at random
    order = np.lexsort((generator(seed).random(len(codes)), codes))
    starts = np.r_[0, np.cumsum(np.bincount(codes))[:-1]]
    place[order] = np.arange(len(codes)) - starts[codes[order]]
    return place < np.floor(_NEW * np.bincount(codes)[codes])


def _refined(network: RelationalNetwork, items: Embeddings, n_steps: int) -> FloatArray:
    *_, (vectors, _, _) = network.refine(items, items, network.n_neighbors, n_steps, last_only=True)
    return vectors


def _elected(known: Embeddings, new: Embeddings) -> BoolArray:
    """(n,) whether the vote of the nearest known items is right for each new one."""
    voters = search(Embeddings(new.vectors), Embeddings(known.vectors), k=min(_VOTERS, len(known))).rows  # (n, 5)
    codes = label_codes(np.concatenate([labels_of(known), labels_of(new)]))
    return np.asarray(mode(codes[: len(known)][voters], axis=1).mode == codes[len(known) :])
