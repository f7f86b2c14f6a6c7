"""The universal scorer: shipped with the package, used without labels and as the start of learning with them.

It was trained on edges of many small neighbourhood graphs, none of them from a user's data; see docs/refiner.md for
the command that makes it.
"""

import functools
import math
from collections.abc import Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from entourage.refiner.graph import Graph, build_graph, most_neighbors
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.scorer import edge_probabilities, estimated_purity
from entourage.refiner.settings import PURITY_OF, RefinerSettings
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = [
    "LEAST_ITEMS",
    "UNIVERSAL_FILE",
    "Forecast",
    "as_forecast",
    "chance_purity",
    "fit_universal",
    "forecast",
    "judging_by",
    "neighbors_needed",
    "sample_for_chance",
    "universal_for",
    "universal_network",
]

UNIVERSAL_FILE = Path(__file__).with_name("universal.safetensors")
# Random vectors of 32 dimensions and more stay below this; sets above it gained, or lost little.
LEAST_PURITY = 0.17
LEAST_ITEMS = 20
JUDGED = 12  # neighbours that the forecast looks at, as many as the scorer was trained with
_USUAL_PURITY = 0.58  # beyond chance; in galleries below 0.85 of it items are moved less, below half of it not at all
_DRAWN = 2000  # vectors without classes, to see what the scorer believes of those


@dataclass(frozen=True)
class Forecast:
    """What the universal scorer expects of a set without labels."""

    purity: float
    """The estimated share of the PURITY_OF nearest neighbours that are of the item's class."""
    distinct: int
    """Number of items, copies counted once."""
    same_class: float = 0.0
    """How many of the JUDGED nearest are expected to be of the item's class."""

    @property
    def warning(self) -> str | None:
        """Why refinement would not help, or None if it should."""
        if self.distinct < LEAST_ITEMS:
            return f"{self.distinct} distinct vectors have too few neighbours to learn from; {LEAST_ITEMS} are needed"
        if self.purity < LEAST_PURITY:
            below = math.floor(1000 * self.purity) / 10  # rounded down: 16.96 % is below 17 %, and looks so
            return (
                f"only {below:.1f} % of the nearest neighbours seem to belong together, by how many neighbours they "
                f"share; refinement without labels helps from {100 * LEAST_PURITY:.0f} % on"
            )
        return None


@functools.cache
def _shipped_network() -> RelationalNetwork:
    from safetensors.numpy import load_file

    return RelationalNetwork.from_arrays(load_file(UNIVERSAL_FILE))


def universal_network(n_neighbors: int | None = None) -> RelationalNetwork:
    """Return the network with the universal scorer and no base map.

    The less its scorer believes in the neighbours of a gallery, the less the items of that gallery are moved: its
    fallback leaves them as they are.

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours to attend to, if not the number it was trained with.

    Returns
    -------
    RelationalNetwork
        A network that needs no labels.
    """
    network = _shipped_network()
    k = network.n_neighbors if n_neighbors is None else int(n_neighbors)
    unmoved = replace(network, blend=1.0, pull=0.0)
    return replace(network, n_neighbors=k, fallback=unmoved, usual_purity=_USUAL_PURITY)


def judging_by(network: RelationalNetwork, purity: float, chance: float) -> RelationalNetwork:
    """The universal network for vectors in which the scorer would believe even if they had no classes.

    Parameters
    ----------
    network : RelationalNetwork
        The universal one.
    purity : float
        What the scorer estimates for the gallery.
    chance : float
        What it estimates for vectors without classes; see `chance_purity`.

    Returns
    -------
    RelationalNetwork
        One whose share in that gallery is that of a purity of (purity - chance) / (1 - chance).
    """
    beyond = (purity - chance) / max(1 - chance, 1e-6)
    return replace(network, usual_purity=_USUAL_PURITY * purity / max(beyond, 1e-6))


def universal_for(items: Embeddings, n_neighbors: int | None = None) -> RelationalNetwork:
    """The universal network as it suits such items, whether or not it would help.

    Parameters
    ----------
    items : Embeddings
        N items.
    n_neighbors : int, optional
        As in `universal_network`.

    Returns
    -------
    RelationalNetwork
    """
    purity = forecast(items).purity
    return judging_by(
        universal_network(n_neighbors), purity, chance_purity(items.vectors[sample_for_chance(len(items))])
    )


def sample_for_chance(count: int) -> IntArray:
    """The rows of so many vectors that `chance_purity` is to be given, in order."""
    return np.sort(generator(0).choice(count, min(count, _DRAWN), replace=False))


def chance_purity(vectors: FloatArray) -> float:
    """What the scorer estimates for the purity of vectors without classes: normal, with the covariance of these.

    In few dimensions, or few that matter, lists of neighbours overlap whether or not there are classes.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Unit vectors, a sample of those to be refined.

    Returns
    -------
    float
        From 0 to 1.
    """
    mean = vectors.mean(axis=0)
    mixing = generator(0).standard_normal((len(vectors), len(vectors)), np.float32) / np.float32(len(vectors)) ** 0.5
    drawn = Embeddings.from_vectors(mean + mixing @ (vectors - mean))
    return estimated_purity(_shipped_network().scorer, build_graph(drawn, JUDGED), JUDGED)


def forecast(items: Embeddings, *, progress: Progress | None = None, graph: Graph | None = None) -> Forecast:
    """Judge without labels whether the universal scorer would help.

    Parameters
    ----------
    items : Embeddings
        N items.
    progress : callable, optional
        Called as progress(title, done, total).
    graph : Graph, optional
        The graph of the items, if it is known already, with 12 neighbours or more.

    Returns
    -------
    Forecast
    """
    graph = build_graph(items, JUDGED, progress) if graph is None else graph
    judged = graph.with_neighbors(JUDGED)
    if not judged.neighbors.k:
        return Forecast(0.0, len(graph.items))
    chances = edge_probabilities(_shipped_network().scorer, judged)  # (G, k)
    return Forecast(float(chances[:, :PURITY_OF].mean()), len(graph.items), float(chances.sum(axis=1).mean()))


def fit_universal(
    settings: RefinerSettings, items: Embeddings, progress: Progress | None = None, graph: Graph | None = None
) -> tuple[RelationalNetwork, dict[str, Any], Graph | None]:
    """The universal network for items without labels.

    The less the forecast is that neighbours belong together, the less it moves items; where it would not help, it
    leaves vectors as they are, and the report says so.

    Parameters
    ----------
    settings : RefinerSettings
    items : Embeddings
        N items, those that are going to be refined.
    progress : callable, optional
        Called as progress(title, done, total).
    graph : Graph, optional
        The graph of the items, if it is known already, of as many neighbours as the network and the forecast look at.

    Returns
    -------
    network : RelationalNetwork
    report : dict
        {"protocol", "metrics", "warnings"}.
    graph : Graph or None
        The graph of the items that `network.refine(items, items, network.n_neighbors, ...)` would build again; None
        where it would be another one.
    """
    network = universal_network(settings.n_neighbors)
    searched_for = neighbors_needed(network)
    graph = build_graph(items, searched_for, progress) if graph is None else graph
    expected = forecast(items, graph=graph)
    sample = items.vectors[sample_for_chance(len(items))]
    network, report = as_forecast(settings, items, expected, graph.neighbors.method, sample)
    known = graph if network.n_neighbors == searched_for else graph.shortened(network.n_neighbors)
    return network, report, known


def as_forecast(
    settings: RefinerSettings, items: Sized, expected: Forecast, method: str, sample: FloatArray
) -> tuple[RelationalNetwork, dict[str, Any]]:
    """The universal network as it suits a set, and the report of it.

    Parameters
    ----------
    settings : RefinerSettings
    items : Embeddings, or whatever knows how many there are
    expected : Forecast
    method : str
        How neighbours were found.
    sample : ndarray of shape (n, d)
        The vectors at the rows of `sample_for_chance`.

    Returns
    -------
    network : RelationalNetwork
        One that leaves vectors as they are where it would not help.
    report : dict
        {"protocol", "metrics", "warnings"}.
    """
    network = universal_network(settings.n_neighbors)
    if expected.warning:
        network = replace(network, blend=1.0, fallback=None)
    else:
        network = judging_by(network, expected.purity, chance_purity(sample))
    return network, _report(settings, items, network, expected, method)


def neighbors_needed(network: RelationalNetwork) -> int:
    """How many neighbours are searched for, so that one graph serves the forecast and the refinement."""
    return max(network.n_neighbors, JUDGED)


def _report(
    settings: RefinerSettings, items: Sized, network: RelationalNetwork, expected: Forecast, method: str
) -> dict[str, Any]:
    labelled = getattr(items, "labels", None) is not None
    manner = network.manner(network.share_of(expected.purity))
    protocol = {
        "recipe": "relational",
        "labels": "too few classes: the universal scorer" if labelled else "none: the universal scorer",
        "items": len(items),
        "distinct_items": expected.distinct,
        "neighbors": network.n_neighbors,
        "steps": settings.n_steps,
        "context": f"{method} neighbours among distinct items, ties by id, never the item itself",
        "base_map": "none",
        "scorer": "universal",
        "sharpness": round(manner.sharpness, 4),  # what was meant, not the float32 nearest to it
        "blend": round(manner.blend, 4),
        "pull": round(manner.pull, 4),
    }
    warnings = [f"the vectors are only scaled to length 1: {expected.warning}"] if expected.warning else []
    most = most_neighbors(expected.distinct)
    if settings.n_neighbors is not None and settings.n_neighbors > most:
        few = f"an item attends to at most {most} of {expected.distinct} distinct vectors, a quarter"
        warnings.append(f"{settings.n_neighbors} neighbours were requested, but {few}")
    return {"protocol": protocol, "metrics": {"estimated_purity": expected.purity}, "warnings": warnings}
