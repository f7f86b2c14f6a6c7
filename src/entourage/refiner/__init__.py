"""The core of the package: embeddings refined by their neighbours, with labels or without."""

from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.refiner.recipes import load_refiner

__all__ = ["ContextRefiner", "PaperRefiner", "load_refiner"]
