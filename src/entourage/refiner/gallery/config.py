"""How the items of a gallery are refined and which encoder they come from: a model folder of its own."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np

from entourage.errors import FileError, InputError, ModelError
from entourage.refiner.encoder_profile import checked_profile
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.gallery.encoder import Encoder
from entourage.refiner.gallery.state import Recipe
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.settings import MOST_NEIGHBORS, MOST_STEPS, RefinerSettings
from entourage.refiner.universal import universal_network
from entourage.runtime.checks import check_not_negative
from entourage.stores import read_model, usable_model, write_model
from entourage.stores.filenames import CONFIG

__all__ = ["Settings", "create_folder", "open_folder"]

_SYSTEM = "gallery"
_EPS = 1e-3
_CANARIES, _PROFILE = "canaries", "encoder_profile"


class _Config(TypedDict):
    """What config.json holds of a gallery."""

    neighbors: Annotated[int, range(1, MOST_NEIGHBORS + 1)]
    steps: Annotated[int, range(1, MOST_STEPS + 1)]
    dim: int | None
    encoder: str | None
    eps: float


@dataclass(frozen=True, eq=False)
class Settings:
    """What does not change as long as there is the gallery."""

    recipe: Recipe
    encoder: Encoder
    eps: float

    def with_dim(self, dim: int) -> "Settings":
        """The same, now that it is known how many dimensions vectors have."""
        return self if self.encoder.dim == dim else replace(self, encoder=replace(self.encoder, dim=dim))


def create_folder(
    folder: Path, refiner: ContextRefiner | None, encoder: str | None, canaries: Any, eps: float | None
) -> None:
    """Make the folder of a gallery, whole or not at all, if there is none."""
    if folder.exists():
        return
    recipe = _recipe_of(refiner)
    known = (
        Encoder(encoder)
        if refiner is None
        else Encoder(encoder, refiner.n_features_in_, None, refiner.encoder_profile_)
    )
    known = known.with_canaries(canaries)
    eps = _EPS if eps is None else eps
    check_not_negative("eps", eps)
    arrays = recipe.network.to_arrays()
    of_encoder = {_CANARIES: known.canaries, _PROFILE: known.profile}
    arrays |= {name: array for name, array in of_encoder.items() if array is not None}
    config = _Config(neighbors=recipe.n_neighbors, steps=recipe.n_steps, dim=known.dim, encoder=encoder, eps=float(eps))
    write_model(folder, _SYSTEM, dict(config), arrays)


def open_folder(folder: Path, refiner: ContextRefiner | None, eps: float | None) -> Settings:
    """Read what a gallery was made with; another refiner, or another eps, is refused."""
    if not (folder / CONFIG).is_file():
        raise FileError(f"{folder} has no {CONFIG}, so it is no gallery; give the folder of one, or a new name")
    config, arrays = read_model(folder, _SYSTEM, _Config)
    canaries, profile = arrays.pop(_CANARIES, None), arrays.pop(_PROFILE, None)
    with usable_model(folder):
        recipe = Recipe(RelationalNetwork.from_arrays(arrays), config["neighbors"], config["steps"])
        profile = checked_profile(profile, config["dim"] or 0)
    settings = Settings(recipe, Encoder(config["encoder"], config["dim"], canaries, profile), config["eps"])
    if refiner is not None and not _same(recipe, _recipe_of(refiner)):
        raise ModelError(
            f"{folder} was made with another refiner; open it without one, or make another gallery for this one"
        )
    if eps not in (None, settings.eps):
        raise InputError(f"eps is {eps}, but {folder} was made with {settings.eps:g}; leave it out")
    return settings


def _recipe_of(refiner: ContextRefiner | None) -> Recipe:
    """How a refiner refines."""
    if refiner is None:
        network = universal_network()
        return Recipe(network, network.n_neighbors, RefinerSettings.n_steps)
    if not isinstance(refiner, ContextRefiner):
        raise InputError(f"the refiner is a {type(refiner).__name__}; wanted a fitted ContextRefiner, or None")
    refiner._check_fitted()
    return Recipe(refiner.network_, refiner.n_neighbors_, refiner.n_steps_)


def _same(one: Recipe, other: Recipe) -> bool:
    """Whether two recipes refine alike, to the bit."""
    arrays, others = one.network.to_arrays(), other.network.to_arrays()
    alike = arrays.keys() == others.keys() and all(
        np.array_equal(np.float32(array), np.float32(others[name])) for name, array in arrays.items()
    )
    return alike and (one.n_neighbors, one.n_steps) == (other.n_neighbors, other.n_steps)
