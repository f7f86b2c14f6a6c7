"""The values that travel along the pipeline: frozen, and checked when they are built.

Embeddings -> search -> Neighbors -> refiner -> Trajectory.
N items, d dimensions, k neighbours, T steps.
"""

from entourage.values.brief import brief
from entourage.values.columns import (
    BoolArray,
    FloatArray,
    IntArray,
    LabelArray,
    Labelled,
    check_unique,
    checked_column,
    label_codes,
    labels_of,
    plural,
    set_frozen,
    shared_codes,
)
from entourage.values.conversion import as_column, as_matrix, holds_lists, library
from entourage.values.embeddings import Embeddings, as_embeddings, unit_factors, without_direction
from entourage.values.neighbors import Neighbors
from entourage.values.refinement import Attention, Trajectory

__all__ = [
    "Attention",
    "BoolArray",
    "Embeddings",
    "FloatArray",
    "IntArray",
    "LabelArray",
    "Labelled",
    "Neighbors",
    "Trajectory",
    "as_column",
    "as_embeddings",
    "as_matrix",
    "brief",
    "check_unique",
    "checked_column",
    "holds_lists",
    "label_codes",
    "labels_of",
    "library",
    "plural",
    "set_frozen",
    "shared_codes",
    "unit_factors",
    "without_direction",
]
