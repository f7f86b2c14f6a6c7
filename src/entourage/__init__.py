"""Entourage: better retrieval by letting every embedding look at its neighbours."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. Modules load on first use: torch takes seconds, and `import entourage` must not.
_HOMES = {
    "Attention": "values",
    "ContextRefiner": "refiner",
    "Embeddings": "values",
    "EntourageError": "errors",
    "EntourageWarning": "errors",
    "Gallery": "refiner.gallery",
    "Neighbors": "values",
    "OpenSetThreshold": "evaluation.separation",
    "PaperRefiner": "refiner",
    "Reranked": "refiner.rerank",
    "Reranker": "refiner.rerank",
    "Scores": "evaluation",
    "Trajectory": "values",
    "compare": "comparison.measuring",
    "doctor": "comparison.diagnosis",
    "evaluate": "evaluation",
    "load_refiner": "refiner",
    "open_set_threshold": "evaluation.separation",
    "rerank": "refiner.rerank",
    "search": "neighbors",
}

__all__ = sorted([*_HOMES, "__version__"])

if TYPE_CHECKING:
    from entourage.comparison.diagnosis import doctor as doctor
    from entourage.comparison.measuring import compare as compare
    from entourage.errors import EntourageError as EntourageError
    from entourage.errors import EntourageWarning as EntourageWarning
    from entourage.evaluation import Scores as Scores
    from entourage.evaluation import evaluate as evaluate
    from entourage.evaluation.separation import OpenSetThreshold as OpenSetThreshold
    from entourage.evaluation.separation import open_set_threshold as open_set_threshold
    from entourage.neighbors import search as search
    from entourage.refiner import ContextRefiner as ContextRefiner
    from entourage.refiner import PaperRefiner as PaperRefiner
    from entourage.refiner import load_refiner as load_refiner
    from entourage.refiner.gallery import Gallery as Gallery
    from entourage.refiner.rerank import Reranked as Reranked
    from entourage.refiner.rerank import Reranker as Reranker
    from entourage.refiner.rerank import rerank as rerank
    from entourage.values import Attention as Attention
    from entourage.values import Embeddings as Embeddings
    from entourage.values import Neighbors as Neighbors
    from entourage.values import Trajectory as Trajectory


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'entourage' has no attribute {name!r}")
    return getattr(import_module(f"entourage.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
