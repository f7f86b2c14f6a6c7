"""The heart: embeddings refined by their neighbours, from a scorer of relations, with labels or without."""

from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.refiner.recipes import load_refiner

__all__ = ["ContextRefiner", "PaperRefiner", "load_refiner"]
