"""What training an encoder takes, whatever it is trained by: pictures, held-out classes, optimiser, run folder.

    with encoder_training(images, settings) as training:
        ...                                       # a system builds what it trains besides the encoder
        history = training.fit({"loss": criterion}, lambda batch: criterion(*training.embedded(batch)))

Some of the training classes are held out; the epoch with the best MAP@R of their pictures among themselves is kept.
Nothing here sees a test class. N pictures, n of them of classes that train, d dimensions.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from entourage.data.batches import PictureBatch, PictureBatches
from entourage.encoders import build_encoder
from entourage.encoders.embedding import embed_shards
from entourage.encoders.saving import saved_encoder, small_encoder_for
from entourage.encoders.vectors import check_takes
from entourage.errors import EntourageWarning, FileError, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.runtime import distributed
from entourage.runtime.config import to_dict
from entourage.runtime.devices import device_named
from entourage.stores import add_weights
from entourage.stores.filenames import CHECKPOINT, LOG, TENSORBOARD
from entourage.systems.settings import NOT_DECISIVE, EncoderSettings
from entourage.training.history import History
from entourage.training.log import RunLog
from entourage.training.loop import fit_model, seeded
from entourage.training.losses import build_loss
from entourage.training.sampling import check_usable_classes, class_balanced_batches, hold_out_classes, share_of_rank
from entourage.training.schedule import build_schedule
from entourage.values import Embeddings, label_codes

__all__ = ["EncoderTraining", "encoder_training", "nothing_learned"]


@contextmanager
def encoder_training(
    images,
    settings: EncoderSettings,
    *,
    run_folder=None,
    resume: bool = False,
    strict: bool = False,
    corrupt: list | None = None,
    progress=None,
) -> Iterator["EncoderTraining"]:
    """A new encoder and the classes it will learn from, among as many processes as `torchrun` has started.

    run_folder: where the checkpoint and the log are kept, so that the run can be resumed; a folder with a checkpoint is
    refused unless `resume` says to go on from it. Pictures that cannot be decoded are left out, their paths appended to
    `corrupt`; with `strict`, and among several processes (which must stay in step), the first raises.
    """
    if settings.encoder == "auto":
        settings = replace(settings, encoder=small_encoder_for(images))
    device = device_named(settings.device)
    with distributed.running("gloo" if device.type == "cpu" else None):
        if distributed.is_main():  # who alone writes there, and may just have moved an older run away
            _check_folder(run_folder, resume)
        check_usable_classes(images.labels)
        held_out = hold_out_classes(images.labels, settings.validation_share, settings.seed)
        rows = np.flatnonzero(~held_out)
        yield EncoderTraining(
            images=images,
            settings=settings,
            encoder=seeded(settings.seed, lambda: _encoder(settings, images)).to(device),
            device=device,
            rows=rows,
            codes=label_codes(images.labels[rows]),
            held_out=np.flatnonzero(held_out),
            decoding={
                "workers": settings.workers,
                "strict": strict or distributed.world_size() > 1,
                "corrupt": corrupt,
            },
            folder=run_folder and Path(run_folder),
            resume=resume,
            progress=progress,
        )


def nothing_learned(history: History) -> list[str]:
    """A doubt about a run that trained and keeps its encoder as it was before; none about any other."""
    if history.best_epoch or history.epoch < 1 or history.best_score is None:
        return []
    return [
        f"no epoch (of {history.epoch}) did better on the held-out classes than the encoder before training (MAP@R "
        f"{100 * history.best_score:.2f} %), so that it is kept as it began; change the learning rate, allow more "
        "epochs (patience), or hold out another share of the classes (validation_share; 0 keeps the last epoch)"
    ]


@dataclass
class EncoderTraining:
    """An encoder, what it is trained and judged on, and where its run is kept."""

    images: object
    settings: EncoderSettings
    encoder: nn.Module
    device: torch.device
    rows: np.ndarray
    """(n,) rows of the classes that train, ascending."""
    codes: np.ndarray
    """(n,) their labels as codes 0..C-1."""
    held_out: np.ndarray
    """(m,) rows of the classes held out."""
    decoding: dict
    folder: Path | None
    resume: bool
    progress: Callable | None

    @property
    def n_classes(self) -> int:
        """C, how many classes train."""
        return int(self.codes.max()) + 1

    def batches(self, epoch: int) -> PictureBatches:
        """This process's share of the epoch's class-balanced batches."""
        s = self.settings
        drawn = class_balanced_batches(self.codes, s.batch_classes, s.batch_per_class, seed=s.seed, epoch=epoch)
        return self.pictures(drawn, epoch)

    def pictures(self, batches: Sequence[np.ndarray], epoch: int) -> PictureBatches:
        """This process's share of batches of positions in `rows`, augmented as the epoch has it."""
        s = self.settings
        shares = [share_of_rank(self.rows[b], distributed.rank(), distributed.world_size()) for b in batches]
        draw = (s.seed, epoch) if s.augment else None
        return PictureBatches(self.images, shares, self.encoder.preprocessing, draw=draw, **self.decoding)

    def embedded(self, batch: PictureBatch, by: Callable[[Tensor], Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(embeddings (b, d), codes (b,)) of a batch, gathered from all processes.

        by: instead of the encoder, one of its methods that gives a row for each picture.
        """
        return self.gathered(by or self.encoder, batch), distributed.gathered(self.codes_of(batch))

    def gathered(self, function: Callable[[Tensor], Tensor], batch: PictureBatch) -> Tensor:
        """A function of the batch's pictures, a row for each, gathered from all processes."""
        return distributed.gathered(self.forward(function, batch).float())

    def forward(self, function: Callable[[Tensor], Tensor], batch: PictureBatch) -> Tensor:
        """A function of the batch's pictures, in the precision the settings ask for."""
        with torch.autocast("cuda", torch.bfloat16, enabled=self.settings.amp and self.device.type == "cuda"):
            return function(batch.pictures.to(self.device, non_blocking=True))

    def codes_of(self, batch: PictureBatch) -> Tensor:
        """(b,) codes of the classes of a batch."""
        return torch.from_numpy(self.codes[np.searchsorted(self.rows, batch.rows)]).to(self.device)

    def score(self) -> float:
        """MAP@R of the held-out classes among themselves."""
        images = self.images.take(self.held_out)
        rows, vectors = next(embed_shards(self.encoder, images, shard_size=len(images), **self.decoding))
        if not len(rows):
            raise InputError(
                f"none of the {len(images)} held-out pictures can be decoded; wanted some to judge by: "
                "check the files, or hold none out (validation_share = 0)"
            )
        return mean_average_precision_at_r(Embeddings.from_vectors(vectors, labels=images.labels[rows]))

    def criterion(self, loss=None, dim: int | None = None) -> nn.Module:
        """The settings' loss, or a loss object instead of it, for embeddings of `dim` dimensions (the encoder's)."""
        s = self.settings
        options, chosen = (s.loss_options, s.loss) if loss is None else ({}, loss)
        dim = self.encoder.dim if dim is None else dim
        return seeded(s.seed, lambda: build_loss(chosen, self.n_classes, dim, **options)).to(self.device)

    def loss_group(self, criterion: nn.Module) -> dict:
        """What a loss learns itself, as a group of the optimizer: it wants larger steps and no decay."""
        rate = self.settings.loss_learning_rate
        rate = 100 * self.settings.learning_rate if rate is None else rate
        return {"params": list(criterion.parameters()), "lr": rate, "weight_decay": 0.0}

    def optimizer(self, *groups: dict) -> torch.optim.Optimizer:
        """Adam with a group for the encoder, and further ones: {"params": [...], "lr": ..., "weight_decay": ...}."""
        free = [p for p in self.encoder.parameters() if p.requires_grad]
        if not free:
            raise InputError("every weight of the encoder is frozen; wanted some to train: give it a projection (dim)")
        groups = [{"params": free}, *(group for group in groups if group["params"])]
        s = self.settings
        return torch.optim.Adam(groups, s.learning_rate, weight_decay=s.weight_decay, fused=True)

    def fit(
        self,
        parts: dict[str, nn.Module],
        loss: Callable[[PictureBatch], Tensor],
        *,
        optimizer: torch.optim.Optimizer | None = None,
        batches: Callable[[int], PictureBatches] | None = None,
        patience_from: int = 0,
        depends_on: Sequence[nn.Module] = (),
    ) -> History:
        """Train the encoder, and with it the parts a system has besides; leave both as they were in the best epoch.

        loss: of a batch as `batches(epoch)` gives them, by default class-balanced ones. patience_from: the epoch
        before which patience does not count, for a system whose last epochs must come. depends_on: what is not trained
        and decides the result all the same, a teacher for instance.
        """
        s, log = self.settings, None
        if self.folder and distributed.is_main():
            self.folder.mkdir(parents=True, exist_ok=True)
            log = RunLog(self.folder / LOG, tensorboard=self.folder / TENSORBOARD if s.tensorboard else None)
        model = nn.ModuleDict({"encoder": self.encoder, **parts})
        history = fit_model(
            model,
            optimizer or self.optimizer(),
            batches=batches or self.batches,
            loss=loss,
            evaluate=self.score if len(self.held_out) else None,
            epochs=s.epochs,
            patience=s.patience,
            patience_from=patience_from,
            evaluate_every=s.evaluate_every,
            seed=s.seed,
            clip=s.clip,
            schedule=build_schedule(s.scheduler, s.epochs, s.step_after),
            checkpoint=self.folder and self.folder / CHECKPOINT,
            fingerprint=self._fingerprint(parts, depends_on) if self.folder else "",
            resume=self.resume,
            log=log,
            title="training the encoder",
            unit="images",
            progress=self.progress,
        )
        for doubt in nothing_learned(history) if distributed.is_main() else ():
            warnings.warn(doubt, EntourageWarning, stacklevel=2)
        return history

    def _fingerprint(self, parts: dict[str, nn.Module], depends_on: Sequence[nn.Module]) -> str:
        """Names data, settings and the weights it starts from, as far as they decide the result.

        Weights of an encoder or a teacher may change while the path that the settings name stays. Those of the parts
        are not looked at: a loss object of the user's may start from others every time.
        """
        decisive = {name: value for name, value in to_dict(self.settings).items() if name not in NOT_DECISIVE}
        digest = hashlib.sha256(f"{json.dumps(decisive, sort_keys=True)}{parts!r}".encode())
        images = self.images
        for part in (getattr(images, name, None) for name in ("labels", "ids", "boxes", "pixels", "vectors")):
            if part is not None:
                digest.update(np.ascontiguousarray(part).tobytes())
        for module in (self.encoder, *depends_on):
            add_weights(digest, module)
        return digest.hexdigest()


def _encoder(settings: EncoderSettings, images) -> nn.Module:
    """A new one by name and settings, or a saved one as it is; one that takes such items."""
    if saved_encoder(settings.encoder):
        encoder = build_encoder(settings.encoder, **settings.encoder_options)
        _check_unchanged(encoder, settings)
    else:
        encoder = build_encoder(settings.encoder, **_encoder_options(settings, images))
    check_takes(encoder, images)
    return encoder


def _check_unchanged(encoder: nn.Module, settings: EncoderSettings) -> None:
    """A saved encoder is taken as it is: another size that was asked for is not passed over in silence."""
    if settings.dim not in (encoder.dim, EncoderSettings.dim):  # the default is what nobody asked for
        raise InputError(
            f"dim is {settings.dim} but {settings.encoder} is an encoder of {encoder.dim} dimensions; "
            f"set dim = {encoder.dim}, or begin with another encoder"
        )
    sees, size = encoder.preprocessing, settings.image_size
    if size is not None and sees is not None and sees.at_size(size) != sees:
        raise InputError(
            f"image_size is {size} but {settings.encoder} is an encoder with a size of its own, "
            f"{sees.crop or sees.resize or 'that of each picture'}; leave image_size out, or begin with another encoder"
        )


def _encoder_options(settings: EncoderSettings, images) -> dict:
    options = {"dim": settings.dim, **settings.encoder_options}
    if settings.encoder in ("linear", "mlp") and hasattr(images, "vectors"):
        options["in_dim"] = images.dim
    if settings.image_size is not None:
        options["size"] = settings.image_size
    elif settings.encoder == "small" and hasattr(images, "pixels"):
        options["size"] = None  # pictures in memory keep theirs
    return options


def _check_folder(folder, resume: bool) -> None:
    if folder is None:
        if resume:
            raise InputError("resume was asked for without a run folder; wanted the folder of the run to go on with")
        return
    if (Path(folder) / CHECKPOINT).exists() and not resume:
        raise FileError(f"{folder} holds a run already; resume it (--resume, resume=True) or choose another folder")
