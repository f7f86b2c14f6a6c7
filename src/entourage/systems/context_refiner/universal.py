"""The universal scorer: shipped with the package, used without labels and as the start of learning with them.

It was trained on edges of many small neighbourhood graphs, none of them from a user's data; see docs/refiner.md for
the command that makes it.
"""

import functools
from pathlib import Path

from entourage.systems.context_refiner.relational import RelationalNetwork
from entourage.values import Embeddings

__all__ = ["UNIVERSAL_FILE", "fit_universal", "universal_network"]

UNIVERSAL_FILE = Path(__file__).with_name("universal.safetensors")


@functools.cache
def _weights() -> dict:
    from safetensors.torch import load_file

    return load_file(UNIVERSAL_FILE)


def universal_network() -> RelationalNetwork:
    """A new network with the universal scorer and no base map."""
    return RelationalNetwork.from_weights(_weights())


def fit_universal(settings, items: Embeddings, *, progress=None) -> tuple[RelationalNetwork, dict]:
    """The universal network for items without labels, by the settings of a ContextRefiner; (network, report)."""
    network = universal_network()
    if settings.n_neighbors is not None:
        network.n_neighbors.fill_(settings.n_neighbors)
    protocol = {
        "recipe": "relational",
        "labels": "none: the universal scorer",
        "items": len(items),
        "neighbors": int(network.n_neighbors),
        "steps": settings.n_blocks_,
        "context": "exact neighbours among distinct items, ties by id, never the item itself",
        "sharpness": float(network.sharpness),
        "blend": float(network.blend),
    }
    return network, {"protocol": protocol, "metrics": {}, "warnings": []}
