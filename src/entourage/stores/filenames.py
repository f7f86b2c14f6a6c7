"""The names of files and folders that packages below runs/ write in a model folder or a run folder.

runs/layout.py gathers them with the names that runs/ writes itself; no other module spells one.
"""

__all__ = [
    "CHECKPOINT",
    "CONFIG",
    "CROSS_IMAGE",
    "ENCODER",
    "GRADIENTS",
    "LOG",
    "NETWORK",
    "RUN",
    "TENSORBOARD",
    "WEIGHTS",
]

# A model folder; a folder that entourage wrote is known by CONFIG or RUN.
CONFIG = "config.json"
WEIGHTS = "model.safetensors"

# A run folder.
RUN = "run.json"
ENCODER = "encoder"
NETWORK = "network"
CROSS_IMAGE = "cross_image"
CHECKPOINT = "checkpoint.safetensors"
LOG = "log.jsonl"
GRADIENTS = "gradients.jsonl"
TENSORBOARD = "tensorboard"
