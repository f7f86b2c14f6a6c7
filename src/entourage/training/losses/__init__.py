"""Losses of a batch, by name or your own: forward(embeddings (b, d) unit vectors, labels (b,)) -> scalar.

`LOSSES` is the table of those known by name; `build_loss` makes one, or takes any object with the same signature.
"""

from entourage.training.losses.pairwise import multi_similarity, multi_similarity_of
from entourage.training.losses.table import LOSSES, build_loss

__all__ = ["LOSSES", "build_loss", "multi_similarity", "multi_similarity_of"]
