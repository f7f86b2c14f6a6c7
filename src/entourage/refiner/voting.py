"""Whether new items of known classes are classified better by their refined neighbours than by raw ones.

Whole rankings gain by refinement even where votes lose: five raw neighbours err independently of each other, five
refined ones have looked at each other before. So it is rehearsed, with items held out of every class, as in a pipeline.

N items, d dimensions.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import mode

from entourage.neighbors import search
from entourage.refiner.memory import with_fitted
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.settings import RefinerSettings
from entourage.runtime.randomness import generator
from entourage.values import BoolArray, Embeddings, FloatArray, IntArray, label_codes, labels_of

__all__ = ["Votes", "left_as_they_are", "rehearse_votes"]

_VOTERS = 5
_NEW = 0.3
_LEAST_KNOWN = 8


class Votes(NamedTuple):
    """Of how many new items most of the five nearest known items have the class, before refinement and after."""

    new: int
    """How many new items there were."""
    raw: int
    refined: int
    differing: int
    """Of how many it is so either before or after."""

    @property
    def clearly_better(self) -> bool:
        """Whether refinement gains more than the standard error of the difference, the root of how many differ."""
        return self.refined - self.raw >= max(np.sqrt(self.differing), 1)

    @property
    def metrics(self) -> dict[str, float]:
        """The shares, as a report has them."""
        return {
            "rehearsal_votes_raw": self.raw / self.new,
            "rehearsal_votes_refined": self.refined / self.new,
            "rehearsal_votes_error": float(np.sqrt(self.differing)) / self.new,
        }


def left_as_they_are(votes: Votes | None) -> str:
    """Why items of known classes come back as they are."""
    if votes is None:
        why = "has not been rehearsed, as classes have too few items"
    else:
        raw, refined, error = (f"{100 * share:.1f}" for share in votes.metrics.values())
        why = f"is not clear ({refined} % against {raw} % in a rehearsal, ± {error})"
    return (
        "the vectors are only scaled to length 1: whether new items of the classes of fit are classified better by "
        f"refined neighbours than by raw ones {why}; give a context to refine them all the same"
    )


def rehearse_votes(
    items: Embeddings, learn: Callable[[Embeddings], RelationalNetwork], settings: RefinerSettings
) -> Votes | None:
    """Hold items out of every class, refine them among the others, and let these vote.

    What `learn` keeps of the new items makes the vote too good: a base map is learned from the known items alone, while
    a scorer that was adapted, and the settings that were chosen, come from all.

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
    if not new.any() or (~new).sum() < _LEAST_KNOWN:
        return None
    known, arrivals = items.take(~new), items.take(new)
    network = learn(known)
    refined = known.replace_vectors(_refined(network, known, n_steps))
    together = _refined(network, with_fitted(arrivals, known), n_steps)
    before = _elected(known, arrivals)
    after = _elected(refined, arrivals.replace_vectors(together[: len(arrivals)]))
    return Votes(len(arrivals), *(int(count) for count in (before.sum(), after.sum(), (before != after).sum())))


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
