"""One fit loop for every system: step, evaluate, keep the best, checkpoint, resume.

The loop is handed what it needs and knows no system: `batches(epoch)` gives the epoch's batches and must depend on
the epoch and the model's state alone, `loss(batch)` gives a scalar, `evaluate()` scores the model as it stands (higher
is better) on classes held out of training. Everything that decides the result is in the checkpoint or follows from
the seed, so a resumed run ends with the same weights as one that was never interrupted.

Under `torchrun` every process runs the loop on its own share of each batch (see distributed.py); the first one
evaluates, writes and reports.
"""

import math
from collections.abc import Callable, Iterable, Sized
from pathlib import Path

import torch
from torch import Tensor, nn

from entourage.errors import InputError
from entourage.runtime import distributed
from entourage.runtime.randomness import torch_randomness
from entourage.training.checkpoint import copied, load_checkpoint, save_checkpoint
from entourage.training.history import History
from entourage.training.log import RunLog
from entourage.training.pace import Pace
from entourage.training.schedule import Schedule

__all__ = ["fit_model"]


def fit_model(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    batches: Callable[[int], Iterable],
    loss: Callable[..., Tensor],
    evaluate: Callable[[], float] | None,
    epochs: int,
    patience: int = 5,
    patience_from: int = 0,
    evaluate_every: int = 1,
    seed: int = 0,
    clip: float | None = None,
    schedule: Schedule | None = None,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    resume: bool = False,
    log: RunLog | None = None,
    title: str = "training",
    unit: str = "items",
    progress: Callable | None = None,
) -> History:
    """Train `model` in place and leave it with the weights of its best epoch.

    model: all that is trained; a loss with parameters of its own stands beside the encoder in one ModuleDict, each in
    a group of the optimizer with its own learning rate. batches(epoch): a sized iterable, or one short enough to hold;
    len(batch) counts its items. evaluate is asked before training, every `evaluate_every` epochs, and at the end;
    training stops once a score is `patience` epochs past the best, and past epoch `patience_from`. seed: what is random
    within an epoch, dropout for instance, is drawn from (seed, epoch, rank). clip: the largest norm of all gradients
    together. schedule(epoch): a factor on the learning rates. checkpoint: a file replaced after every epoch; the
    caller removes it once the result is safe. `fingerprint` names data and settings, so that a checkpoint of another
    run is refused.
    """
    main = distributed.is_main()
    history, best = History(), copied(model)
    if resume and checkpoint and Path(checkpoint).exists():
        history, best = load_checkpoint(checkpoint, model, optimizer, fingerprint)
    distributed.share_state(model)
    rates = _rates(optimizer)
    pace = Pace(title, unit, epochs, progress if main else None)
    log = log if main else None
    if log:
        log.open(history.epoch)
    try:
        while not history.exhausted(epochs, patience, patience_from):
            epoch = history.epoch + 1
            _set_rates(optimizer, rates, schedule(epoch) if schedule and epoch else 1.0)
            measured = {"loss": None, "seconds": None, f"{unit}_per_second": None}
            if epoch > 0:
                with torch_randomness(seed, epoch, distributed.rank()):
                    measured = _train_epoch(model, optimizer, batches(epoch), loss, clip, epoch, history, pace)
                distributed.share_state(model)  # the statistics of a batch norm differ between processes
            model.eval()
            due = evaluate and (epoch % evaluate_every == 0 or epoch == epochs)
            score = distributed.from_main(evaluate() if main else math.nan) if due else None
            if history.add(epoch, measured["loss"], score):
                best = copied(model)
            if log:
                log.add({"epoch": epoch, "score": score, **measured, "learning_rates": _rates(optimizer)})
            if checkpoint and main:
                save_checkpoint(checkpoint, model, best, optimizer, history, fingerprint)
    finally:
        _set_rates(optimizer, rates, 1.0)
        if log:
            log.close()
    pace.finish(history.best_epoch, history.best_score)
    model.load_state_dict(best)
    model.eval()
    return history


def _train_epoch(model, optimizer, batches, loss, clip, epoch, history, pace: Pace) -> dict:
    """One pass over the batches; its mean loss, duration and speed."""
    model.train()
    batches = batches if isinstance(batches, Sized) else list(batches)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    pace.start(epoch, len(batches), history.best_score)
    total = 0.0
    for batch in batches:
        value = loss(batch)
        number = value.item()
        _check_finite(number, "loss", pace)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        distributed.average_gradients(parameters)
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        total += number
        pace.step(len(batch) * distributed.world_size())
    if not pace.batches:
        raise InputError(f"there was nothing to learn from in epoch {pace.epoch}; wanted a batch: check the files")
    # A finite loss may have had an infinite gradient; what comes of it must not be saved.
    _check_finite(sum(parameter.detach().sum().item() for parameter in parameters), "sum of the weights", pace)
    return {
        "loss": total / pace.batches,
        "seconds": round(pace.seconds, 3),
        f"{pace.unit}_per_second": round(pace.items / max(pace.seconds, 1e-9), 1),
    }


def _check_finite(number: float, name: str, pace: Pace) -> None:
    if not math.isfinite(number):
        raise InputError(
            f"the {name} became {number} in epoch {pace.epoch} of {pace.epochs}; lower the learning rate, clip the "
            "gradients or choose another loss"
        )


def _rates(optimizer) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]


def _set_rates(optimizer, rates: list[float], factor: float) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * factor
