"""One fit loop for every system: step, evaluate, keep the best, checkpoint, resume.

The loop is handed what it needs and knows no system: `batches(epoch)` gives the epoch's batches and must depend on
the epoch and the model's state alone, `loss(batch)` gives a scalar, `evaluate()` scores the model as it stands (higher
is better) on classes held out of training. Everything that decides the result is in the checkpoint or follows from
the seed, so a resumed run ends with the same weights as one that was never interrupted.

Under `torchrun` every process runs the loop on its own share of each batch (see runtime/distributed.py); the first one
evaluates, writes and reports.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from torch import Tensor, nn
from torch.optim import Optimizer

from entourage.errors import InputError
from entourage.runtime import distributed
from entourage.runtime.randomness import torch_randomness
from entourage.training.checkpoint import copied, load_checkpoint, save_checkpoint
from entourage.training.history import History
from entourage.training.log import RunLog
from entourage.training.pace import Pace
from entourage.training.settings import Checkpointing, FitSettings, Reporting

__all__ = ["fit_model"]

Batch = TypeVar("Batch", bound=Sized)
BatchT = TypeVar("BatchT", covariant=True)


class Batches(Protocol[BatchT]):
    """The batches of an epoch, whose number is known before they are made."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[BatchT]: ...


class _Measured(NamedTuple):
    """An epoch's mean loss, its duration in seconds, and its items per second; None before training."""

    loss: float | None = None
    seconds: float | None = None
    speed: float | None = None


def fit_model(
    model: nn.Module,
    optimizer: Optimizer,
    settings: FitSettings,
    *,
    batches: Callable[[int], Iterable[Batch]],
    loss: Callable[[Batch], Tensor],
    evaluate: Callable[[], float] | None = None,
    checkpointing: Checkpointing | None = None,
    reporting: Reporting | None = None,
) -> History:
    """Train a model in place and leave it with the weights of its best epoch.

    Parameters
    ----------
    model : torch.nn.Module
        All that is trained: a loss with parameters of its own stands beside the encoder in one ModuleDict.
    optimizer : torch.optim.Optimizer
        The optimiser of the model; different learning rates are different groups. Its rates are restored at the end.
    settings : FitSettings
        How long to train, and how.
    batches : callable
        `batches(epoch)` gives the batches of an epoch, counted from 1: a sized iterable, or one short enough to be held
        as a list. `len(batch)` is the number of its items.
    loss : callable
        `loss(batch)` gives a differentiable scalar.
    evaluate : callable, optional
        Scores the model, in evaluation mode, before training and after the epochs the settings name. Without it the
        last epoch is kept.
    checkpointing : Checkpointing, optional
        Where to keep the run after every epoch, and whether to resume it.
    reporting : Reporting, optional
        Log and progress.

    Returns
    -------
    History
        The loss and the score of every epoch, and which epoch was kept.

    Raises
    ------
    InputError
        If the loss or a weight is no longer finite, or an epoch has no batch.
    """
    reporting = Reporting() if reporting is None else reporting
    main = distributed.is_main()
    history, best = _begun(model, optimizer, checkpointing)
    distributed.share_state(model)
    progress = reporting.progress if main else None
    pace = Pace(reporting.title, reporting.unit, reporting.metric, settings.epochs, progress)
    with _own_rates(optimizer) as rates, _opened(reporting.log if main else None, history) as log:
        while not history.exhausted(settings.epochs, settings.patience, settings.patience_from):
            epoch, measured = history.epoch + 1, _Measured()
            _set_rates(optimizer, rates, settings.rate_factor(epoch))
            if epoch > 0:
                randomness = torch_randomness(settings.seed, epoch, distributed.rank())
                with randomness:
                    drawn = _sized(batches(epoch))
                pace.start(epoch, len(drawn), history.best_score)
                measured = _train_epoch(model, optimizer, drawn, loss, randomness, settings.clip, pace)
                distributed.share_state(model)  # the statistics of a batch norm differ between processes
            model.eval()
            due = epoch % settings.evaluate_every == 0 or epoch == settings.epochs
            score = _score(evaluate) if evaluate and due else None
            if history.add(epoch, measured.loss, score):
                best = copied(model)
            if log:
                log.add(_entry(epoch, score, measured, reporting.unit, _rates(optimizer)))
            if checkpointing and main:
                save_checkpoint(checkpointing, model, best, optimizer, history)
    pace.finish(history.best_epoch, history.best_score)
    model.load_state_dict(best)
    model.eval()
    return history


def _begun(
    model: nn.Module, optimizer: Optimizer, checkpointing: Checkpointing | None
) -> tuple[History, dict[str, Tensor]]:
    """The history so far and the best weights: those of a checkpoint to resume, or of a new run."""
    if checkpointing and checkpointing.resume and checkpointing.path.exists():
        return load_checkpoint(checkpointing, model, optimizer)
    return History(), copied(model)


def _sized(batches: Iterable[Batch]) -> Batches[Batch]:
    """Batches that know their number, as they are; others as a list."""
    return cast(Batches[Batch], batches) if isinstance(batches, Sized) else list(batches)


def _train_epoch(
    model: nn.Module,
    optimizer: Optimizer,
    batches: Batches[Batch],
    loss: Callable[[Batch], Tensor],
    randomness: AbstractContextManager[object],
    clip: float | None,
    pace: Pace,
) -> _Measured:
    """One pass over the batches; what the loss draws, dropout for instance, it draws from `randomness`."""
    model.train()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    total = 0.0
    for batch in batches:
        with randomness:
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
        raise InputError(f"epoch {pace.epoch} has no batch to learn from; wanted one or more: check the files")
    # A finite loss may have had an infinite gradient; what comes of it must not be saved.
    _check_finite(sum(parameter.detach().sum().item() for parameter in parameters), "sum of the weights", pace)
    seconds = pace.seconds
    return _Measured(total / pace.batches, round(seconds, 3), round(pace.items / max(seconds, 1e-9), 1))


def _check_finite(number: float, name: str, pace: Pace) -> None:
    if not math.isfinite(number):
        raise InputError(
            f"the {name} became {number} in epoch {pace.epoch} of {pace.epochs}; lower the learning rate, clip the "
            "gradients or choose another loss"
        )


def _score(evaluate: Callable[[], float]) -> float:
    """The first process evaluates; all of them get its score."""
    return distributed.from_main(evaluate() if distributed.is_main() else math.nan)


def _entry(epoch: int, score: float | None, measured: _Measured, unit: str, rates: list[float]) -> dict[str, Any]:
    """What the log says of an epoch."""
    return {
        "epoch": epoch,
        "score": score,
        "loss": measured.loss,
        "seconds": measured.seconds,
        f"{unit}_per_second": measured.speed,
        "learning_rates": rates,
    }


@contextmanager
def _opened(log: RunLog | None, history: History) -> Iterator[RunLog | None]:
    """The log, if there is one, from the end of what has happened."""
    if log is None:
        yield None
        return
    log.open(history.epoch)
    try:
        yield log
    finally:
        log.close()


@contextmanager
def _own_rates(optimizer: Optimizer) -> Iterator[list[float]]:
    """The learning rate of every group, which the optimizer has again at the end."""
    rates = _rates(optimizer)
    try:
        yield rates
    finally:
        _set_rates(optimizer, rates, 1.0)


def _rates(optimizer: Optimizer) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]


def _set_rates(optimizer: Optimizer, rates: list[float], factor: float) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * factor
