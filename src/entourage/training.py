"""One fit loop for every system: step, evaluate, keep the best, checkpoint, resume.

The loop is handed what it needs and knows no system: `batches(epoch)` gives the epoch's batches and must depend on
the epoch alone, `loss(batch)` gives a scalar, `evaluate()` scores the model as it stands (higher is better) on
classes held out of training. Everything that decides the result is in the checkpoint, so a resumed run ends with
the same weights as one that was never interrupted.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from entourage.errors import FileError, InputError
from entourage.store import whole_file

__all__ = ["History", "fit_model", "seeded"]


@dataclass
class History:
    """What happened so far: one entry per epoch, 0 being the state before training."""

    curve: list[dict] = field(default_factory=list)
    """{"epoch", "loss", "score"} for each epoch; loss is None for epoch 0, score is None without evaluation."""
    best_epoch: int = 0
    """The epoch whose weights are kept: the first with the best score, or the last without evaluation."""

    @property
    def epoch(self) -> int:
        return self.curve[-1]["epoch"] if self.curve else -1

    @property
    def best_score(self) -> float | None:
        return next((point["score"] for point in self.curve if point["epoch"] == self.best_epoch), None)

    def add(self, epoch: int, loss: float | None, score: float | None) -> bool:
        """Record an epoch; True if it is the best so far."""
        best = self.best_score
        self.curve.append({"epoch": epoch, "loss": loss, "score": score})
        better = epoch == 0 or score is None or score > best
        if better:
            self.best_epoch = epoch
        return better

    def exhausted(self, epochs: int, patience: int) -> bool:
        """Whether training is over: all epochs done, or none of the last `patience` was better."""
        scored = self.best_score is not None
        return self.epoch >= epochs or (scored and self.epoch - self.best_epoch >= patience)


def fit_model(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    batches: Callable[[int], Iterable],
    loss: Callable[..., Tensor],
    evaluate: Callable[[], float] | None,
    epochs: int,
    patience: int = 5,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    resume: bool = False,
    title: str = "training",
    progress: Callable | None = None,
) -> History:
    """Train `model` in place and leave it with the weights of its best epoch.

    checkpoint: a file replaced after every epoch; the caller removes it once the result is safe. `fingerprint`
    names data and settings, so that a checkpoint of another run is refused.
    """
    history, best = History(), _copy(model)
    if resume and checkpoint and Path(checkpoint).exists():
        history, best = _load_checkpoint(checkpoint, model, optimizer, fingerprint)
    while not history.exhausted(epochs, patience):
        epoch = history.epoch + 1
        mean_loss = None
        if epoch > 0:
            stage = f"{title} (epoch {epoch}/{epochs}{_best(history)})"
            mean_loss = _train_epoch(model, optimizer, batches(epoch), loss, stage, (epoch - 1, epochs), progress)
        model.eval()
        score = evaluate() if evaluate else None
        if history.add(epoch, mean_loss, score):
            best = _copy(model)
        if checkpoint:
            _save_checkpoint(checkpoint, model, best, optimizer, history, fingerprint)
    if progress:
        progress(f"{title} (kept epoch {history.best_epoch}{_best(history)})", 1, 1)
    model.load_state_dict(best)
    model.eval()
    return history


def seeded(seed: int, build: Callable[[], nn.Module]) -> nn.Module:
    """Build a module with weights drawn from `seed`, leaving the global random state as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def _train_epoch(model, optimizer, batches, loss, stage, position, progress) -> float:
    """Mean loss of one pass; position: (epochs done before, epochs at most), for a bar over the whole training."""
    model.train()
    batches = list(batches)
    total = 0.0
    for done, batch in enumerate(batches, start=1):
        value = loss(batch)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        total += value.item()
        if progress:
            progress(stage, position[0] * len(batches) + done, position[1] * len(batches))
    mean_loss = total / len(batches)
    if not math.isfinite(mean_loss):
        raise InputError(f"the loss became {mean_loss} in {stage}; lower the learning rate or choose another loss form")
    return mean_loss


def _best(history: History) -> str:
    return "" if history.best_score is None else f", best {history.best_score:.3f}"


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _save_checkpoint(path, model, best, optimizer, history, fingerprint) -> None:
    from safetensors.torch import save_file

    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value.contiguous() for name, value in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value.contiguous() for name, value in state.items()}
    state = json.dumps({"fingerprint": fingerprint, "history": asdict(history)})
    with whole_file(path) as temporary:
        save_file(tensors, temporary, metadata={"state": state})


def _load_checkpoint(path, model, optimizer, fingerprint) -> tuple[History, dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            history, belongs_to = History(**state["history"]), state["fingerprint"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"the checkpoint {path} cannot be read ({error}); delete it and start again") from error
    if belongs_to != fingerprint:
        raise FileError(
            f"the checkpoint {path} belongs to other data or settings; resume with the same ones, or delete it"
        )

    def part(prefix):
        return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}

    model.load_state_dict(part("model."))
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in part("optimizer.").items():
        index, slot = name.split(".", 1)
        slots.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
    return history, part("best.")
