"""The quality of rankings: metrics, the protocol they are measured under, exclusions, clustering, intervals."""

from entourage.evaluation.protocol import Scores, evaluate, evaluate_embeddings
from entourage.evaluation.rankings import (
    evaluate_in_gallery,
    evaluate_ranking,
    mean_average_precision_at_r,
    nearest_matches,
)

__all__ = [
    "Scores",
    "evaluate",
    "evaluate_embeddings",
    "evaluate_in_gallery",
    "evaluate_ranking",
    "mean_average_precision_at_r",
    "nearest_matches",
]
