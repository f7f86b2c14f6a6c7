"""The universal scorer: shipped with the package, used without labels and as the start of learning with them.

It was trained on edges of many small neighbourhood graphs, none of them from a user's data; see docs/refiner.md for
the command that makes it.
"""

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entourage.refiner.graph import Graph, build_graph, most_neighbors
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.scorer import edge_probabilities
from entourage.refiner.settings import PURITY_OF, RefinerSettings
from entourage.runtime.progress import Progress
from entourage.values import Embeddings

__all__ = [
    "LEAST_ITEMS",
    "UNIVERSAL_FILE",
    "Forecast",
    "as_forecast",
    "fit_universal",
    "forecast",
    "neighbors_needed",
    "universal_network",
]

UNIVERSAL_FILE = Path(__file__).with_name("universal.safetensors")
# Random vectors of 32 dimensions and more stay below this; sets above it gained, or lost little.
LEAST_PURITY = 0.17
LEAST_ITEMS = 20
JUDGED = 12  # neighbours that the forecast looks at, as many as the scorer was trained with


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
    return network if n_neighbors is None else replace(network, n_neighbors=int(n_neighbors))


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
    chances = edge_probabilities(universal_network().scorer, judged)  # (G, k)
    return Forecast(float(chances[:, :PURITY_OF].mean()), len(graph.items), float(chances.sum(axis=1).mean()))


def fit_universal(
    settings: RefinerSettings, items: Embeddings, progress: Progress | None = None, graph: Graph | None = None
) -> tuple[RelationalNetwork, dict[str, Any], Graph | None]:
    """The universal network for items without labels.

    Where the forecast is that it would not help, the network leaves vectors as they are, and the report says so.

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
    network, report = as_forecast(settings, items, expected, graph.neighbors.method)
    known = graph if network.n_neighbors == searched_for else graph.shortened(network.n_neighbors)
    return network, report, known


def as_forecast(
    settings: RefinerSettings, items: Embeddings, expected: Forecast, method: str
) -> tuple[RelationalNetwork, dict[str, Any]]:
    """The universal network, which leaves vectors as they are where it would not help, and the report of it."""
    network = universal_network(settings.n_neighbors)
    if expected.warning:
        network = replace(network, blend=1.0)
    return network, _report(settings, items, network, expected, method)


def neighbors_needed(network: RelationalNetwork) -> int:
    """How many neighbours are searched for, so that one graph serves the forecast and the refinement."""
    return max(network.n_neighbors, JUDGED)


def _report(
    settings: RefinerSettings, items: Embeddings, network: RelationalNetwork, expected: Forecast, method: str
) -> dict[str, Any]:
    protocol = {
        "recipe": "relational",
        "labels": "none: the universal scorer" if items.labels is None else "too few classes: the universal scorer",
        "items": len(items),
        "distinct_items": expected.distinct,
        "neighbors": network.n_neighbors,
        "steps": settings.n_steps,
        "context": f"{method} neighbours among distinct items, ties by id, never the item itself",
        "base_map": "none",
        "scorer": "universal",
        "sharpness": round(network.sharpness, 4),  # what was meant, not the float32 nearest to it
        "blend": round(network.blend, 4),
        "pull": round(network.pull, 4),
    }
    warnings = [f"the vectors are only scaled to length 1: {expected.warning}"] if expected.warning else []
    most = most_neighbors(expected.distinct)
    if settings.n_neighbors is not None and settings.n_neighbors > most:
        few = f"an item attends to at most {most} of {expected.distinct} distinct vectors, a quarter"
        warnings.append(f"{settings.n_neighbors} neighbours were requested, but {few}")
    return {"protocol": protocol, "metrics": {"estimated_purity": expected.purity}, "warnings": warnings}
