"""What refines more vectors than fit into memory: the universal refiner, or a fitted one."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from entourage.errors import FileError, InputError
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.settings import MOST_NEIGHBORS, RefinerSettings
from entourage.refiner.universal import neighbors_needed, universal_network
from entourage.runtime.checks import check_whole

__all__ = ["Recipe"]


class _Asked(Protocol):
    """What is asked for; see `StreamedRequest`."""

    @property
    def model(self) -> Path | None: ...
    @property
    def neighbors(self) -> int | None: ...
    @property
    def steps(self) -> int | None: ...


@dataclass(frozen=True, eq=False)
class Recipe:
    """What refines: a network that was fitted, or the universal one, which is settled when the graph is known."""

    network: RelationalNetwork
    n_neighbors: int
    n_steps: int
    """T, of which `steps` are taken."""
    steps: int
    dim: int | None
    """The size of vectors that it was fitted to; None: any."""
    name: str
    settings: RefinerSettings | None
    """Of the universal one; None for a model."""

    @classmethod
    def of(cls, request: _Asked) -> "Recipe":
        if request.model is None:
            check_whole("--neighbors", request.neighbors, 1, MOST_NEIGHBORS, none=True)
            settings = RefinerSettings(request.neighbors)
            network = universal_network(request.neighbors)
            n_steps, dim, name = settings.n_steps, None, "universal, no labels"
            n_neighbors = network.n_neighbors
        else:
            settings, name = None, str(request.model)
            network, n_neighbors, n_steps, dim = _fitted(request.model, request.neighbors)
        steps = n_steps if request.steps is None else request.steps
        if not 0 <= steps <= n_steps:
            raise InputError(f"steps is {steps}; wanted 0 ≤ steps ≤ {n_steps}, the number of steps")
        return cls(network, n_neighbors, n_steps, steps, dim, name, settings)

    @property
    def asked(self) -> dict[str, Any]:
        """What tells this refinement from others; a model by what it learned, too: its folder may hold another fit."""
        return {
            "model": self.name,
            "neighbors": self.n_neighbors,
            "steps": self.steps,
            "fit of the model": _checksum(self.network),
        }

    @property
    def longest(self) -> int:
        """The longest lists of neighbours that may be needed."""
        if self.settings is not None:
            return neighbors_needed(self.network)
        fallback = self.network.fallback
        return max(self.n_neighbors, 0 if fallback is None else fallback.n_neighbors)

    def check_dim(self, name: str, dim: int) -> None:
        """Refuse vectors of another size than the model was fitted to."""
        if self.dim not in (None, dim):
            raise InputError(
                f"{name} has {dim} dimensions and {self.name} wants {self.dim}; both must come "
                "from the same encoder: encode again, or fit another model"
            )

    def protocol(self, report: dict[str, Any], count: int) -> dict[str, Any]:
        """How so many items were refined."""
        return {
            "items": count,
            "distinct_items": report["distinct"],
            "model": self.name,
            "context": "transductive: the vectors themselves, streamed",
            "neighbors": f"{report['neighbors']}, {report['method']}, ties by id",
            "own_item": "left out of its own context",
            "steps": self.steps,
        }


def _checksum(network: RelationalNetwork) -> str:
    """Of all that it is made of: 16 letters and digits."""
    digest = hashlib.sha256()
    for name, array in sorted(network.to_arrays().items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _fitted(model: Path, neighbors: int | None) -> tuple[RelationalNetwork, int, int, int]:
    from entourage.refiner import load_refiner

    if not model.is_dir():
        raise FileError(f"there is no folder '{model}'; wanted a folder written by `entourage fit`")
    if neighbors is not None:
        raise InputError(f"--neighbors is {neighbors} but {model} was fitted with its own; leave it out or fit again")
    refiner = load_refiner(model)
    if not isinstance(refiner.network_, RelationalNetwork):
        raise InputError(
            f"{model} is a model of the recipe {refiner.recipe}, which refines in memory alone; give one of `entourage "
            "fit` without --recipe, or write the vectors to a smaller file"
        )
    return refiner.network_, int(refiner.n_neighbors_), int(refiner.n_steps_), int(refiner.n_features_in_)
