"""The alternatives to a learned refiner, each an estimator with one interface: fit, transform, rank.

Raw                                        the vectors as they are
PCAWhitening, WithinClassWhitening, LDA    linear maps from the training items' covariances
QueryExpansion, QuerySideExpansion,
KReciprocal, Diffusion, GraphNetwork,
SuperGlobal                                the neighbours of the items searched, nothing learned
LinearHead, BaseMap, SelfAttention         trained, but blind to the neighbours
AttentionExpansion, GraphExpansion,
ContextualSimilarity                       the neighbours, by weights that are learned
Chain                                      one after the other
"""

from entourage.baselines.base_map import BaseMap
from entourage.baselines.contextual_similarity import ContextualSimilarity
from entourage.baselines.diffusion import Diffusion, diffuse, mutual_graph
from entourage.baselines.expansion import QueryExpansion, QuerySideExpansion, expand_queries
from entourage.baselines.graph_network import GraphNetwork, propagated_features
from entourage.baselines.learned import LinearHead, SelfAttention, fit_linear_head
from entourage.baselines.learned_expansion import AttentionExpansion, GraphExpansion
from entourage.baselines.method import Chain, Method, Raw, VectorMethod, with_random_state
from entourage.baselines.reciprocal import KReciprocal, jaccard_distances, reciprocal_encodings
from entourage.baselines.super_global import SuperGlobal, refined_candidates, rescored
from entourage.baselines.whitening import (
    LDA,
    PCAWhitening,
    WithinClassWhitening,
    between_class_covariance,
    lda_map,
    pca_whitening_map,
    within_class_covariance,
    within_class_whitening_map,
)

__all__ = [
    "LDA",
    "AttentionExpansion",
    "BaseMap",
    "Chain",
    "ContextualSimilarity",
    "Diffusion",
    "GraphExpansion",
    "GraphNetwork",
    "KReciprocal",
    "LinearHead",
    "Method",
    "PCAWhitening",
    "QueryExpansion",
    "QuerySideExpansion",
    "Raw",
    "SelfAttention",
    "SuperGlobal",
    "VectorMethod",
    "WithinClassWhitening",
    "between_class_covariance",
    "diffuse",
    "expand_queries",
    "fit_linear_head",
    "jaccard_distances",
    "lda_map",
    "mutual_graph",
    "pca_whitening_map",
    "propagated_features",
    "reciprocal_encodings",
    "refined_candidates",
    "rescored",
    "with_random_state",
    "within_class_covariance",
    "within_class_whitening_map",
]
