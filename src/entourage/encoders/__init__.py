"""Encoders: pictures in, unit vectors out.

An encoder is a torch module with `forward(pictures (b, C, H, W)) -> (b, d) unit vectors`,
`feature_map(pictures) -> (b, c, h, w)`, `with_map(pictures)` for both in one pass, `dim`, and the `preprocessing` its
pictures want. `entourage.embedding.embed` takes it from there.
"""

from entourage.encoders.adapter import CallableEncoder
from entourage.encoders.huggingface import HuggingFaceEncoder
from entourage.encoders.saving import build_encoder, load_encoder, save_encoder
from entourage.encoders.small import SmallResNet

__all__ = ["CallableEncoder", "HuggingFaceEncoder", "SmallResNet", "build_encoder", "load_encoder", "save_encoder"]
