"""A small regression, fitted by the loop, that may be interrupted as by a power cut."""

import torch
from torch import nn

from entourage.runtime.randomness import seeded_weights
from entourage.training.history import History
from entourage.training.loop import fit_model
from entourage.training.settings import Checkpointing, FitSettings, Reporting


class Crash(Exception):
    """Stands for a power cut."""


def model_and_optimizer(seed=0, dropout=0.0):
    model = seeded_weights(
        seed, lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))
    )
    return model, torch.optim.Adam(model.parameters(), 0.05, fused=True)


def fit(model, optimizer, scores=None, *, epochs=6, patience=100, crash_in=None, **options) -> History:
    """Regress x_0 x_1 on batches that depend on the epoch alone; `scores` are what evaluate() says in turn.

    options: of FitSettings; or checkpoint, fingerprint and resume; or progress.
    """
    progress = options.pop("progress", None)
    kept = {name: options.pop(name) for name in ("fingerprint", "resume") if name in options}
    path = options.pop("checkpoint", None)
    scores = None if scores is None else iter(scores)

    def batches(epoch):
        if epoch == crash_in:
            raise Crash
        generator = torch.Generator().manual_seed(epoch)
        return [torch.randn(16, 4, generator=generator) for _ in range(3)]

    def loss(x):
        return (model(x)[:, 0] - x[:, 0] * x[:, 1]).square().mean()

    evaluate = None if scores is None else lambda: next(scores)
    return fit_model(
        model,
        optimizer,
        FitSettings(epochs=epochs, patience=patience, **options),
        batches=batches,
        loss=loss,
        evaluate=evaluate,
        checkpointing=path and Checkpointing(path, **kept),
        reporting=Reporting(progress=progress),
    )


def weights(model) -> list[torch.Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def equal(left, right) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def weights_after(epochs: int) -> list[torch.Tensor]:
    model, optimizer = model_and_optimizer()
    if epochs:
        fit(model, optimizer, epochs=epochs)
    return weights(model)
