"""The names of files and folders that are written in a model folder, a run folder, or a folder of shards.

runs/layout.py says what each of a run holds; no other module spells one. A folder is replaced only if it holds nothing
but what we write in a folder of its kind (replacing.py).
"""

import re
from collections.abc import Iterable

__all__ = [
    "CHECKPOINT",
    "CONFIG",
    "CONTEXT",
    "CONTEXT_REFINED",
    "CROSS_IMAGE",
    "DEMO_PICTURES",
    "DONE",
    "ENCODER",
    "GRADIENTS",
    "ITEMS",
    "LOG",
    "MAP",
    "METRICS",
    "MODEL",
    "NEIGHBORS",
    "NETWORK",
    "PARQUET",
    "PARTS",
    "PLAN",
    "QUERIES",
    "REFINED",
    "REFIT_CHECKPOINT",
    "REFIT_LOG",
    "REPORT",
    "RUN",
    "TENSORBOARD",
    "TEXTS",
    "TRAIN",
    "WEIGHTS",
    "WRITTEN",
]

# A model folder.
CONFIG = "config.json"
WEIGHTS = "model.safetensors"

# A run folder.
RUN = "run.json"
METRICS = "metrics.json"
REPORT = "report.html"

# Of a training run.
ENCODER = "encoder"
NETWORK = "network"
CROSS_IMAGE = "cross_image"
CHECKPOINT = "checkpoint.safetensors"
LOG = "log.jsonl"
REFIT_CHECKPOINT, REFIT_LOG = "refit.safetensors", "refit.jsonl"
GRADIENTS = "gradients.jsonl"
TENSORBOARD = "tensorboard"

# Of a refinement run.
ITEMS, REFINED, CONTEXT, CONTEXT_REFINED = "items.npz", "refined.npz", "context.npz", "context_refined.npz"
NEIGHBORS, QUERIES, TEXTS, MODEL = "neighbors.npz", "queries.npz", "texts.json", "model"
MAP = "map.npz"

# Of the demo.
TRAIN = "train.npz"
DEMO_PICTURES = {"drift": "drift.png", "query": "query.png", "sheet": "retrieval.png", "steps": "steps.png"}

# A folder of shards, or of a refinement in stages; how far each stage is.
PLAN = "plan.json"
DONE = "done.json"
PARTS = "parts"  # where tasks of a cluster leave theirs

# A folder of Parquet files, refined or embedded; readers of such folders pass over names that begin so.
PARQUET = "_entourage.json"

# Every folder of ours holds CONFIG, RUN, PLAN or PARQUET, its mark: a JSON object with the key "entourage".
_OF_A_MODEL = (CONFIG, WEIGHTS, GRADIENTS)
_OF_TRAINING = (METRICS, REPORT, CHECKPOINT, LOG, REFIT_CHECKPOINT, REFIT_LOG, TENSORBOARD)
_IN_TRAINING = (ENCODER, NETWORK, CROSS_IMAGE)
_OF_REFINEMENT = (RUN, METRICS, REPORT, ITEMS, REFINED, CONTEXT, CONTEXT_REFINED, NEIGHBORS, QUERIES, TEXTS, MODEL, MAP)


def _model_in(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in _OF_A_MODEL]


def _any_of(names: Iterable[str], *patterns: str) -> re.Pattern[str]:
    return re.compile("|".join([*map(re.escape, names), *patterns]))


WRITTEN = {
    CONFIG: _any_of(
        [*_OF_A_MODEL, *_OF_TRAINING, *_IN_TRAINING, *(name for folder in _IN_TRAINING for name in _model_in(folder))],
        rf"{TENSORBOARD}/events\.out\.tfevents\.[^/]*",
    ),
    RUN: _any_of([*_OF_REFINEMENT, *_model_in(MODEL), TRAIN, ENCODER, *_model_in(ENCODER), *DEMO_PICTURES.values()]),
    PLAN: _any_of(
        [PLAN, DONE, f"{DONE}.new"],
        r"\d{5,}\.npz",
        r"(keys|mapped|nodes|pulls|refined|rows|similarities|stands_for|state|vectors|weights)(_\w+)?(\.new)?\.npy",
        r"index_\w+\.faiss(\.new)?",
        rf"{PARTS}(/\w+\.(npy|json|parquet))?",
        rf"{PARTS}/\w+(\.parquet)?\.\w+\.new",
    ),
    PARQUET: _any_of([PARQUET], r"[^/]+\.parquet"),
}
"""By the mark of a folder, the paths in it that we write."""
