"""The names of files and folders that are written in a model folder, a run folder, or a folder of shards.

runs/layout.py says what each of a run holds; no other module spells one. A folder is replaced only if it holds nothing
but these (replacing.py).
"""

__all__ = [
    "CHECKPOINT",
    "CONFIG",
    "CONTEXT",
    "CONTEXT_REFINED",
    "CROSS_IMAGE",
    "DEMO_PICTURES",
    "ENCODER",
    "GRADIENTS",
    "ITEMS",
    "LOG",
    "MARKS",
    "METRICS",
    "MODEL",
    "NEIGHBORS",
    "NETWORK",
    "OURS",
    "PLAN",
    "QUERIES",
    "REFINED",
    "REPORT",
    "RUN",
    "TENSORBOARD",
    "TEXTS",
    "TRAIN",
    "WEIGHTS",
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
GRADIENTS = "gradients.jsonl"
TENSORBOARD = "tensorboard"

# Of a refinement run.
ITEMS, REFINED, CONTEXT, CONTEXT_REFINED = "items.npz", "refined.npz", "context.npz", "context_refined.npz"
NEIGHBORS, QUERIES, TEXTS, MODEL = "neighbors.npz", "queries.npz", "texts.json", "model"

# Of the demo.
TRAIN = "train.npz"
DEMO_PICTURES = {"drift": "drift.png", "query": "query.png", "sheet": "retrieval.png", "steps": "steps.png"}

# A folder of shards.
PLAN = "plan.json"

# Every folder of ours holds one of these, a JSON object with the key "entourage".
MARKS = (CONFIG, RUN, PLAN)

OURS = {CONFIG, WEIGHTS, RUN, METRICS, REPORT}
OURS |= {ENCODER, NETWORK, CROSS_IMAGE, CHECKPOINT, LOG, GRADIENTS, TENSORBOARD}
OURS |= {ITEMS, REFINED, CONTEXT, CONTEXT_REFINED, NEIGHBORS, QUERIES, TEXTS, MODEL}
OURS |= {TRAIN, *DEMO_PICTURES.values(), PLAN}
