"""How the published recipe learns: blocks trained on labelled items, with early stopping on held-out classes.

The multi-similarity loss (Eq. 4 of the paper) of e^T is minimised over class-balanced batches. Training classes that
are held out for the purpose choose the epoch that is kept; with `refit` new blocks are then trained on all classes for
as many epochs.

N items, n of them in training classes, k neighbours, b items in a batch.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entourage.errors import InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.neighbors import search
from entourage.refiner.paper.network import PaperNetwork
from entourage.refiner.paper.settings import PaperSettings
from entourage.runtime.devices import chosen_device
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.loop import fit_model
from entourage.training.losses import multi_similarity
from entourage.training.sampling import check_usable_classes, class_balanced_batches, hold_out_classes
from entourage.training.settings import Checkpointing, FitSettings, Reporting
from entourage.values import Embeddings, Neighbors, label_codes, labels_of

__all__ = ["batch_loss", "fit_paper"]


def fit_paper(
    settings: PaperSettings,
    items: Embeddings,
    *,
    checkpoint: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> tuple[PaperNetwork, History, dict[str, Any]]:
    """Train the blocks on labelled items.

    Parameters
    ----------
    settings : PaperSettings
    items : Embeddings
        N items with labels.
    checkpoint : path, optional
        A file replaced after every epoch.
    resume : bool
        Whether to resume from the checkpoint.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    tuple
        The network, the history of its training, and how it went: protocol, metrics, curve, warnings.
    """
    if settings.n_neighbors >= len(items):
        raise InputError(
            f"n_neighbors is {settings.n_neighbors} but there are only {len(items)} vectors; "
            f"wanted fewer neighbours than vectors: use at most {len(items) - 1}"
        )
    check_usable_classes(labels_of(items))
    codes = label_codes(labels_of(items))
    held_out = hold_out_classes(codes, settings.validation_share, settings.random_state)
    training_rows = np.flatnonzero(~held_out)
    validation = items.take(held_out) if held_out.any() else None
    kept = checkpoint and Checkpointing(Path(checkpoint), _fingerprint(settings, items), resume)
    network, history = _trained(settings, items, codes, training_rows, validation, kept, progress)
    raw_score = None if validation is None else mean_average_precision_at_r(validation)
    if _refitted(settings, history):
        # Without a checkpoint: resumed, the epoch that was chosen is known, and these few are trained again.
        as_long = replace(settings, epochs=history.best_epoch)
        network, _ = _trained(as_long, items, codes, np.arange(len(items)), None, None, progress)
    data = {
        "items": len(items),
        "classes": int(codes.max()) + 1,
        "classes_held_out": len(np.unique(codes[held_out])),
        "classes_with_one_item": int((np.bincount(codes) == 1).sum()),
        "neighbors": min(settings.n_neighbors, len(training_rows) - 1),
    }
    return network, history, _report(settings, data, history, raw_score)


def _trained(
    settings: PaperSettings,
    items: Embeddings,
    codes: np.ndarray,
    rows: np.ndarray,
    validation: Embeddings | None,
    checkpointing: Checkpointing | None,
    progress: Progress | None,
) -> tuple[PaperNetwork, History]:
    """New blocks trained on some rows (n,) of the items, scored on others where there are any."""
    context = rows[_context_within(settings, items.take(rows), progress).rows]  # (n, k)
    seed, batch = settings.random_state, (settings.batch_classes, settings.batch_per_class)
    network = seeded_weights(seed, lambda: PaperNetwork(items.dim, settings.n_blocks, settings.out_dim))
    network = network.to(chosen_device())
    history = fit_model(
        network,
        torch.optim.Adam(network.parameters(), settings.learning_rate, fused=True),
        FitSettings(epochs=settings.epochs, patience=settings.patience),
        batches=lambda epoch: class_balanced_batches(codes[rows], *batch, seed=seed, epoch=epoch),
        loss=batch_loss(settings, network, items, codes, rows, context),
        evaluate=None if validation is None else _validator(settings, network, validation),
        checkpointing=checkpointing,
        reporting=Reporting(title="training the refiner", metric="held-out MAP@R", progress=progress),
    )
    return network, history


def _refitted(settings: PaperSettings, history: History) -> bool:
    """Whether an epoch was chosen, for new blocks to be trained as long on all classes."""
    return settings.refit and history.best_score is not None and history.best_epoch > 0


def batch_loss(
    settings: PaperSettings,
    network: PaperNetwork,
    items: Embeddings,
    codes: np.ndarray,
    training_rows: np.ndarray,
    context: np.ndarray,
) -> Callable[[np.ndarray], Tensor]:
    """The loss of a batch, given as positions in training_rows (n,); context (n, k): their neighbours, rows of items.

    Vectors are gathered batch by batch from the one copy of all, which lies where the weights are.
    """
    vectors, classes = network.placed(items.vectors, codes)

    def loss(batch: np.ndarray) -> Tensor:
        rows = training_rows[batch]
        used, seen = np.unique(context[batch], return_inverse=True)
        return multi_similarity(
            network(vectors[rows], vectors[used], *network.placed(seen.reshape(context[batch].shape))),
            classes[rows],
            alpha=settings.alpha,
            beta=settings.beta,
            threshold=settings.threshold,
            form=settings.loss_form,
        )

    return loss


def _validator(settings: PaperSettings, network: PaperNetwork, validation: Embeddings) -> Callable[[], float]:
    """MAP@R of the refined held-out classes, searched among themselves as test classes will be."""
    e, rows = network.placed(validation.vectors, _context_within(settings, validation).rows)

    def score() -> float:
        *_, (refined, _) = network.steps(e, e, rows, len(network.blocks), kept=False)
        return mean_average_precision_at_r(validation.replace_vectors(network.finish(refined).numpy(force=True)))

    return score


def _context_within(settings: PaperSettings, items: Embeddings, progress: Progress | None = None) -> Neighbors:
    """The context of the training or the held-out items; holding out may leave fewer than k + 1 of them."""
    return search(items, k=min(settings.n_neighbors, len(items) - 1), progress=progress)


def _report(settings: PaperSettings, data: dict[str, int], history: History, raw_score: float | None) -> dict[str, Any]:
    """How the fit went: what was learned from, and MAP@R on the held-out classes before and after."""
    refined, warnings = history.best_score, []
    if refined is None or raw_score is None:
        why = "too few classes to hold any out" if settings.validation_share else "no class was held out"
        warnings.append(f"{why}: whether refinement helps was not checked")
    elif refined <= raw_score:
        warnings.append("on the held-out classes the refined vectors are no better than the raw ones: use those")
    elif history.best_epoch == 0:
        warnings.append("training did not improve on the untrained blocks, which were kept")
    if data["neighbors"] < settings.n_neighbors:
        warnings.append(f"only {data['neighbors']} of {settings.n_neighbors} neighbours were available in training")
    protocol = {
        "recipe": "paper",
        **data,
        "blocks": settings.n_blocks,
        "context": "exact neighbours within the training classes, ties by id, never the item itself",
        "score": "MAP@R (divided by R) of the held-out classes among themselves; without a match: 0",
        "stopping_point": _stopping_point(settings, history),
        "epochs": history.epoch,
        "kept_epoch": history.best_epoch,
        "seed": settings.random_state,
    }
    metrics = {"held_out_map@r_raw": raw_score, "held_out_map@r_refined": refined}
    return {"protocol": protocol, "metrics": metrics, "curve": history.curve, "warnings": warnings}


def _stopping_point(settings: PaperSettings, history: History) -> str:
    if history.best_score is None:
        return "the last epoch, unchecked"
    again = ", then trained anew on all classes for as many epochs" if _refitted(settings, history) else ""
    return f"best score on the held-out classes{again}"


def _fingerprint(settings: PaperSettings, items: Embeddings) -> str:
    """Settings and data in a few letters, so that a checkpoint is only resumed with the same ones."""
    digest = hashlib.sha256(json.dumps(asdict(settings), sort_keys=True).encode())
    for column in (items.vectors, items.ids, items.labels):
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()
