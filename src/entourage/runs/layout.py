"""The names of all files of a run folder, of either kind of run; no other module spells them.

A training run, written by `entourage train`:

    config.json           system, data, every setting, seed, versions
    log.jsonl             a line per epoch
    refit.jsonl           with refit: a line per epoch of the training on all classes
    encoder/              the encoder of the epoch that was kept, or trained anew as long; a model folder
    metrics.json          its scores on the test classes, in the form of `entourage evaluate --json`
    tensorboard/          if asked for
    network/              of the system intra-batch: the message-passing network, a model folder
    cross_image/          of the system cross-image: the blocks, a model folder, and gradients.jsonl

While training goes on the folder is called RUN.partial and holds checkpoint.safetensors, the state after the last
epoch, or refit.safetensors; RUN appears when all is done.

A refinement run, written by `entourage refine --run` and by the demo:

    run.json              kind, settings, seed, seconds, versions, where pictures or texts come from
    metrics.json          protocol, scores before and after, intervals, warnings, how far the items moved
    items.npz             the vectors before, with ids, labels, cameras and sequences as far as they are known
    refined.npz           the vectors after
    context.npz           the gallery before, where there is one
    context_refined.npz   the gallery after
    neighbors.npz         the nearest items of each before and after
    queries.npz           the scores of each query before and after, where labels are known
    texts.json            the texts of the items, where they were given
    model/                the refiner, a model folder; none where the network of a training run refined
    train.npz             of the demo: the vectors the refiner learned from; encoder/, which made them; four pictures

`entourage report` adds report.html to either, `entourage explore` map.npz to the latter: the places of the items in the
plane, step by step, and the graph of neighbours. A model folder holds config.json and model.safetensors.
"""

from pathlib import Path

from entourage.stores.filenames import (
    CHECKPOINT,
    CONFIG,
    CONTEXT,
    CONTEXT_REFINED,
    CROSS_IMAGE,
    ENCODER,
    GRADIENTS,
    ITEMS,
    LOG,
    MAP,
    METRICS,
    MODEL,
    NEIGHBORS,
    NETWORK,
    QUERIES,
    REFINED,
    REFIT_CHECKPOINT,
    REFIT_LOG,
    REPORT,
    RUN,
    TENSORBOARD,
    TEXTS,
    TRAIN,
    WEIGHTS,
)

__all__ = [
    "CHECKPOINT",
    "CONFIG",
    "CONTEXT",
    "CONTEXT_REFINED",
    "CROSS_IMAGE",
    "ENCODER",
    "GRADIENTS",
    "ITEMS",
    "LOG",
    "MAP",
    "METRICS",
    "MODEL",
    "NEIGHBORS",
    "NETWORK",
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
    "checkpoint_of",
    "is_partial",
    "partial_of",
]

_PARTIAL = ".partial"
_MODEL_CHECKPOINT = ".checkpoint"


def partial_of(run: str | Path) -> Path:
    """The folder a training run is kept in until it is done."""
    run = Path(run) if Path(run).name else Path(run).absolute()  # `.` has a name elsewhere
    return run.with_name(run.name + _PARTIAL)


def is_partial(folder: str | Path) -> bool:
    """Whether a folder has the name of a training run that is not done."""
    return Path(folder).name.endswith(_PARTIAL)


def checkpoint_of(model: str | Path) -> Path:
    """The file beside a model folder that keeps the finished epochs of an interrupted `entourage fit`."""
    model = Path(model)
    return model.with_name(model.name + _MODEL_CHECKPOINT)
