"""Vision models of Hugging Face in miniature, with random weights."""

from copy import deepcopy

import transformers

from entourage.runtime.randomness import seeded_weights

SIZE = 32
TRANSFORMER = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": SIZE,
    "patch_size": 8,
}

CONFIGS = {
    "resnet": transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], layer_type="basic"
    ),
    "convnext": transformers.ConvNextConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 16, 16]),
    "vit": transformers.ViTConfig(**TRANSFORMER),
    "dinov2": transformers.Dinov2Config(**TRANSFORMER),
    "dinov2_with_registers": transformers.Dinov2WithRegistersConfig(num_register_tokens=3, **TRANSFORMER),
    "clip_vision_model": transformers.CLIPVisionConfig(**TRANSFORMER),
    "siglip_vision_model": transformers.SiglipVisionConfig(**TRANSFORMER),
    "swin": transformers.SwinConfig(
        image_size=SIZE, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=4
    ),
}
MAPS = {
    "resnet": (16, 1, 1),
    "convnext": (16, 1, 1),
    "vit": (16, 4, 4),
    "dinov2": (16, 4, 4),
    "dinov2_with_registers": (16, 4, 4),
    "clip_vision_model": (16, 4, 4),
    "siglip_vision_model": (16, 4, 4),
    "swin": (16, 4, 4),
}


def tiny(kind: str):
    """A model of that kind, always with the same weights."""
    return seeded_weights(0, lambda: transformers.AutoModel.from_config(deepcopy(CONFIGS[kind]))).eval()
