"""The universal scorer: shipped with the package, used without labels and as the start of learning with them.

It was trained on edges of many small neighbourhood graphs, none of them from a user's data; see docs/refiner.md for
the command that makes it.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

from entourage.refiner.network import RelationalNetwork, build_graph, estimated_purity
from entourage.values import Embeddings

__all__ = ["Forecast", "UNIVERSAL_FILE", "fit_universal", "forecast", "universal_network"]  # noqa: RUF022

UNIVERSAL_FILE = Path(__file__).with_name("universal.safetensors")
# Random vectors of 32 dimensions and more stay below this; sets above it gained, or lost little.
LEAST_PURITY = 0.17
LEAST_ITEMS = 20


@dataclass(frozen=True)
class Forecast:
    """What the universal scorer thinks of a set without labels."""

    purity: float
    """The share of the 8 nearest neighbours it takes for the item's class."""
    distinct: int
    """Items, copies counted once."""

    @property
    def doubt(self) -> str | None:
        """Why refinement would not help, or None if it should."""
        if self.distinct < LEAST_ITEMS:
            return f"{self.distinct} distinct vectors have too few neighbours to learn from; {LEAST_ITEMS} are needed"
        if self.purity < LEAST_PURITY:
            return (
                f"only {100 * self.purity:.0f} % of the nearest neighbours seem to belong together, less than the "
                f"{100 * LEAST_PURITY:.0f} % from which on looking at them helps"
            )
        return None


@functools.cache
def _weights() -> dict:
    from safetensors.torch import load_file

    return load_file(UNIVERSAL_FILE)


def universal_network(n_neighbors: int | None = None) -> RelationalNetwork:
    """A new network with the universal scorer and no base map; another number of neighbours on request."""
    network = RelationalNetwork.from_weights(_weights())
    if n_neighbors is not None:
        network.n_neighbors.fill_(n_neighbors)
    return network


def forecast(items: Embeddings, *, progress=None) -> Forecast:
    """Whether the universal scorer would help these items, judged without labels."""
    network = universal_network()
    graph = build_graph(items, int(network.n_neighbors), progress)
    return Forecast(estimated_purity(network.scorer, graph, int(network.n_neighbors)), len(graph.items))


def fit_universal(settings, items: Embeddings, *, progress=None) -> tuple[RelationalNetwork, dict]:
    """The universal network for items without labels, by the settings of a ContextRefiner; (network, report).

    Where the forecast is that it would not help, the network leaves vectors as they are, and the report says so.
    """
    network, expected = universal_network(settings.n_neighbors), forecast(items, progress=progress)
    if expected.doubt:
        network.blend.fill_(1.0)
    protocol = {
        "recipe": "relational",
        "labels": "none: the universal scorer" if items.labels is None else "too few classes: the universal scorer",
        "items": len(items),
        "neighbors": int(network.n_neighbors),
        "steps": int(settings.n_steps),
        "context": "exact neighbours among distinct items, ties by id, never the item itself",
        "base_map": "none",
        "scorer": "universal",
        "sharpness": round(float(network.sharpness), 4),  # what was meant, not the float32 nearest to it
        "blend": round(float(network.blend), 4),
    }
    warnings = [f"the vectors are only scaled to length 1: {expected.doubt}"] if expected.doubt else []
    if settings.n_neighbors is not None and settings.n_neighbors > (most := max(expected.distinct // 4, 1)):
        few = f"of {expected.distinct} distinct vectors an item looks at no more than {most}, a quarter"
        warnings.append(f"{settings.n_neighbors} neighbours are asked for, but {few}")
    return network, {"protocol": protocol, "metrics": {"estimated_purity": expected.purity}, "warnings": warnings}, None
