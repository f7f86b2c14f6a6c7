"""The heart: embeddings refined by their neighbours, from a scorer of relations, with labels or without."""

from entourage.refiner.estimator import ContextRefiner

__all__ = ["ContextRefiner"]
