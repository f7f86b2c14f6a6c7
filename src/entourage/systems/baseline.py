"""The baseline: an encoder trained by a metric loss over class-balanced batches of pictures.

    pictures I of a batch of n classes x p -> e = encoder(I) -> loss(e, labels),   one Adam step for both

Some of the training classes are held out; the epoch with the best MAP@R of their pictures among themselves is kept.
Nothing here sees a test class. N pictures, d dimensions.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from entourage import distributed
from entourage.encoders import build_encoder
from entourage.encoders.saving import is_saved_encoder
from entourage.errors import FileError, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.losses import build_loss
from entourage.picture_batches import PictureBatches
from entourage.sampling import check_usable_classes, class_balanced_batches, hold_out_classes, share_of_rank
from entourage.settings import TrainSettings, to_dict
from entourage.training import History, RunLog, fit_model, seeded
from entourage.training.schedule import build_schedule
from entourage.values import Embeddings, label_codes

__all__ = ["CHECKPOINT", "LOG", "train_baseline"]

CHECKPOINT, LOG, BOARD = "checkpoint.safetensors", "log.jsonl", "tensorboard"  # inside the run folder
_PICTURES_AT_ONCE = 256
_NOT_DECISIVE = ("workers", "device", "tensorboard")  # settings a resumed run may change


def train_baseline(
    images,
    settings: TrainSettings,
    *,
    loss=None,
    run_folder=None,
    resume: bool = False,
    strict: bool = False,
    corrupt: list | None = None,
    progress=None,
) -> tuple[nn.Module, History]:
    """Train an encoder on a labelled image set; (encoder with the weights of its best epoch, history).

    loss: a loss object to use instead of settings.loss. run_folder: where the checkpoint and the log are kept, so
    that the run can be resumed; a folder with a checkpoint is refused unless `resume` says to go on from it. Pictures
    that cannot be decoded are left out, their paths appended to `corrupt`; with `strict`, and among several
    processes (which must stay in step), the first raises.
    """
    with distributed.running("gloo" if _device(settings.device).type == "cpu" else None):
        if distributed.is_main():  # who alone writes there, and may just have moved an older run away
            _check_folder(run_folder, resume)
        training = _prepare(images, settings, loss, strict or distributed.world_size() > 1, corrupt)
        history = _fit(training, settings, run_folder and Path(run_folder), resume, progress)
    return training.encoder, history


@dataclass
class _Training:
    """What is trained, and what it is trained and judged on."""

    images: object
    settings: TrainSettings
    encoder: nn.Module
    loss: nn.Module
    device: torch.device
    rows: np.ndarray
    """(n,) rows of the classes that train."""
    codes: np.ndarray
    """(n,) their labels as codes."""
    held_out: np.ndarray
    """(m,) rows of the classes held out."""
    decoding: dict

    def pictures(self, batches, draw=None) -> PictureBatches:
        return PictureBatches(self.images, batches, self.encoder.preprocessing, draw=draw, **self.decoding)

    def batches(self, epoch: int) -> PictureBatches:
        """This process's share of the epoch's batches."""
        s = self.settings
        drawn = class_balanced_batches(self.codes, s.batch_classes, s.batch_per_class, seed=s.seed, epoch=epoch)
        shares = [share_of_rank(self.rows[b], distributed.rank(), distributed.world_size()) for b in drawn]
        return self.pictures(shares, draw=(s.seed, epoch) if s.augment else None)

    def batch_loss(self, batch) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16, enabled=self.settings.amp and self.device.type == "cuda"):
            embeddings = self.encoder(batch.pictures.to(self.device, non_blocking=True))
        labels = torch.from_numpy(self.codes[np.searchsorted(self.rows, batch.rows)]).to(self.device)
        return self.loss(distributed.gathered(embeddings.float()), distributed.gathered(labels))

    @torch.no_grad()
    def score(self) -> float:
        """MAP@R of the held-out classes among themselves."""
        parts = np.array_split(self.held_out, -(-len(self.held_out) // _PICTURES_AT_ONCE))
        done = [(b.rows, self.encoder(b.pictures.to(self.device)).float().cpu()) for b in self.pictures(parts)]
        if not done:
            raise InputError(
                f"none of the {len(self.held_out)} held-out pictures can be decoded; wanted some to judge by: "
                "check the files, or hold none out (validation_share = 0)"
            )
        rows, vectors = np.concatenate([rows for rows, _ in done]), torch.cat([vectors for _, vectors in done])
        return mean_average_precision_at_r(Embeddings.from_vectors(vectors.numpy(), labels=self.images.labels[rows]))


def _prepare(images, settings: TrainSettings, loss, strict: bool, corrupt) -> _Training:
    check_usable_classes(images.labels)
    held_out = hold_out_classes(images.labels, settings.validation_share, settings.seed)
    rows = np.flatnonzero(~held_out)
    codes = label_codes(images.labels[rows])
    device = _device(settings.device)
    encoder = seeded(settings.seed, lambda: _encoder(settings, images)).to(device)
    options = {} if loss is not None else settings.loss_options
    criterion = seeded(
        settings.seed,
        lambda: build_loss(settings.loss if loss is None else loss, int(codes.max()) + 1, encoder.dim, **options),
    )
    decoding = {"workers": settings.workers, "strict": strict, "corrupt": corrupt}
    return _Training(
        images, settings, encoder, criterion.to(device), device, rows, codes, np.flatnonzero(held_out), decoding
    )


def _fit(training: _Training, settings: TrainSettings, folder: Path | None, resume: bool, progress) -> History:
    log = None
    if folder and distributed.is_main():
        folder.mkdir(parents=True, exist_ok=True)
        log = RunLog(folder / LOG, tensorboard=folder / BOARD if settings.tensorboard else None)
    return fit_model(
        nn.ModuleDict({"encoder": training.encoder, "loss": training.loss}),
        _optimizer(training.encoder, training.loss, settings),
        batches=training.batches,
        loss=training.batch_loss,
        evaluate=training.score if len(training.held_out) else None,
        epochs=settings.epochs,
        patience=settings.patience,
        evaluate_every=settings.evaluate_every,
        seed=settings.seed,
        clip=settings.clip,
        schedule=build_schedule(settings.scheduler, settings.epochs, settings.step_after),
        checkpoint=folder and folder / CHECKPOINT,
        fingerprint=_fingerprint(training, settings) if folder else "",
        resume=resume,
        log=log,
        title="training the encoder",
        unit="images",
        progress=progress,
    )


def _encoder(settings: TrainSettings, images) -> nn.Module:
    """A new one by name and settings, or a saved one as it is."""
    if is_saved_encoder(settings.encoder):
        return build_encoder(settings.encoder, **settings.encoder_options)
    options = {"dim": settings.dim, **settings.encoder_options}
    if settings.image_size is not None:
        options["size"] = settings.image_size
    elif settings.encoder == "small" and hasattr(images, "pixels"):
        options["size"] = None  # pictures in memory keep theirs
    return build_encoder(settings.encoder, **options)


def _optimizer(encoder: nn.Module, loss: nn.Module, settings: TrainSettings) -> torch.optim.Optimizer:
    """Adam with a group for the encoder and one for what the loss learns, which wants larger steps and no decay."""
    free, own = [p for p in encoder.parameters() if p.requires_grad], list(loss.parameters())
    if not free:
        raise InputError("every weight of the encoder is frozen; wanted some to train: give it a projection (dim)")
    groups = [{"params": free}]
    if own:
        rate = settings.loss_learning_rate
        rate = 100 * settings.learning_rate if rate is None else rate
        groups.append({"params": own, "lr": rate, "weight_decay": 0.0})
    return torch.optim.Adam(groups, settings.learning_rate, weight_decay=settings.weight_decay, fused=True)


def _device(name: str) -> torch.device:
    """The device by name; among several processes on a machine, each has its own CUDA device."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"the device is {name!r}; wanted auto, cpu, cuda or cuda:1") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"the device is {name!r}, but torch finds no CUDA here; use cpu or auto")
    return torch.device("cuda", distributed.local_rank()) if name == "cuda" else device


def _check_folder(folder, resume: bool) -> None:
    if folder is None:
        if resume:
            raise InputError("resume was asked for without a run folder; wanted the folder of the run to go on with")
        return
    if (Path(folder) / CHECKPOINT).exists() and not resume:
        raise FileError(f"{folder} holds a run already; resume it (--resume, resume=True) or choose another folder")


def _fingerprint(training: _Training, settings: TrainSettings) -> str:
    """Names data and settings, as far as they decide the result."""
    decisive = {name: value for name, value in to_dict(settings).items() if name not in _NOT_DECISIVE}
    digest = hashlib.sha256(f"{json.dumps(decisive, sort_keys=True)}{training.loss!r}".encode())
    images = training.images
    for part in (images.labels, getattr(images, "ids", None), getattr(images, "pixels", None)):
        if part is not None:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
