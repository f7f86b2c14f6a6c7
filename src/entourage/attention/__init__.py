"""The cross-attention block the systems share."""

from entourage.attention.block import CrossAttention, Offer, glorot_linear

__all__ = ["CrossAttention", "Offer", "glorot_linear"]
