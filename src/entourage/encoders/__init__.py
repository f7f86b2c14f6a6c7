"""Encoders: pictures in, unit vectors out.

protocol.Encoder says what each offers; those of pictures have a feature map too (protocol.FeatureMapEncoder).
VectorEncoder takes vectors instead of pictures. `embedding.embed` sends many items through an encoder, and
`shards.embed_to_file` into a file.
"""

from entourage.encoders.adapter import CallableEncoder
from entourage.encoders.huggingface import HuggingFaceEncoder
from entourage.encoders.protocol import Encoder, FeatureMapEncoder
from entourage.encoders.saving import build_encoder, load_encoder, save_encoder
from entourage.encoders.sliced import SlicedEncoder
from entourage.encoders.small import SmallResNet
from entourage.encoders.vectors import VectorEncoder

__all__ = [
    "CallableEncoder",
    "Encoder",
    "FeatureMapEncoder",
    "HuggingFaceEncoder",
    "SlicedEncoder",
    "SmallResNet",
    "VectorEncoder",
    "build_encoder",
    "load_encoder",
    "save_encoder",
]
