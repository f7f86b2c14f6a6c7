"""Cross-image attention: an encoder trained by embeddings that are conditional on the image they are compared with.

After *Cross-Image-Attention for Conditional Embeddings in Deep Metric Learning* (Kotovenko et al.), whose supplement
is our source. Blocks of cross-attention (blocks.py) condition e_i on the feature map of image j; the loss is of
conditional and unconditional similarities (training.py). What is used afterwards is the encoder alone: its embedding is
unconditional and costs what it always did. The blocks serve to look inside (maps.py, parts.py, probe.py), or to rank
the best anew (reranking.py).
"""

from entourage.systems.cross_image.blocks import CrossImageBlocks, load_blocks, save_blocks
from entourage.systems.cross_image.encoding import EncodedImages, encode
from entourage.systems.cross_image.maps import attention_maps, best_triples
from entourage.systems.cross_image.parts import FoundParts, KeySpace, find_parts, key_space
from entourage.systems.cross_image.probe import GradientProbe
from entourage.systems.cross_image.reranking import conditional_similarity, rerank
from entourage.systems.cross_image.training import train_cross_image

__all__ = [
    "CrossImageBlocks",
    "EncodedImages",
    "FoundParts",
    "GradientProbe",
    "KeySpace",
    "attention_maps",
    "best_triples",
    "conditional_similarity",
    "encode",
    "find_parts",
    "key_space",
    "load_blocks",
    "rerank",
    "save_blocks",
    "train_cross_image",
]
