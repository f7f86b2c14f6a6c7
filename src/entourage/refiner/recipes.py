"""The refiners by name: as recipes to choose from, and by what a model folder says it holds."""

from typing import Any

from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.refiner.saving import REFINERS
from entourage.stores import model_config

__all__ = ["RECIPES", "load_refiner"]

RECIPES: dict[str, type[ContextRefiner] | type[PaperRefiner]] = {
    refiner.recipe: refiner for refiner in (ContextRefiner, PaperRefiner)
}


def load_refiner(folder: Any) -> ContextRefiner | PaperRefiner:
    """Load a fitted refiner from a model folder.

    Parameters
    ----------
    folder : path
        Written by `ContextRefiner.save`, `PaperRefiner.save` or `entourage fit`.

    Returns
    -------
    ContextRefiner or PaperRefiner
        The refiner, ready to transform.
    """
    system = model_config(folder, *REFINERS)["system"]
    return next(refiner for refiner in RECIPES.values() if refiner.system == system).load(folder)
