"""Encoders: pictures in, unit vectors out.

An encoder is a torch module with `forward(pictures (b, C, H, W)) -> (b, d) unit vectors`,
`feature_map(pictures) -> (b, c, h, w)`, `with_map(pictures)` for both in one pass, `with_source(pictures)` for both and
the tensor they are made of, `projected(pictures) -> (b, d)` before they are scaled to length 1, `dim`, and the
`preprocessing` its pictures want. `embedding.embed` takes it from there. VectorEncoder takes vectors instead of
pictures and has no map.
"""

from entourage.encoders.adapter import CallableEncoder
from entourage.encoders.huggingface import HuggingFaceEncoder
from entourage.encoders.saving import build_encoder, load_encoder, save_encoder
from entourage.encoders.sliced import SlicedEncoder
from entourage.encoders.small import SmallResNet
from entourage.encoders.vectors import VectorEncoder

__all__ = [
    "CallableEncoder",
    "HuggingFaceEncoder",
    "SlicedEncoder",
    "SmallResNet",
    "VectorEncoder",
    "build_encoder",
    "load_encoder",
    "save_encoder",
]
