"""What every system needs to train an encoder: pictures, held-out classes, optimiser, run folder.

    with encoder_training(images, settings) as training:
        ...                                       # a system builds what it trains besides the encoder
        return training.fit({"loss": criterion}, lambda batch: criterion(*training.embedded(batch)))

Some of the training classes are held out; the epoch with the best MAP@R of their pictures among themselves is kept.
Nothing here sees a test class. N pictures, n of them of classes that train, d dimensions.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from entourage.data.batches import PictureBatch, PictureBatches
from entourage.data.image_set import Items
from entourage.encoders.batch_norm import batch_norms
from entourage.encoders.embedding import Shard, embed_shards
from entourage.encoders.saving import small_encoder_for
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.runtime import distributed
from entourage.runtime.devices import device_named
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import seeded_weights
from entourage.stores.filenames import CHECKPOINT, LOG, REFIT_CHECKPOINT, REFIT_LOG, TENSORBOARD
from entourage.systems.fingerprint import training_fingerprint
from entourage.systems.new_encoder import new_encoder
from entourage.systems.parts import NotedBatches, TrainedParts, check_folder, head_first
from entourage.systems.settings import EncoderSettings
from entourage.systems.trained import TrainedEncoder, nothing_learned
from entourage.training.history import History
from entourage.training.log import RunLog
from entourage.training.loop import fit_model
from entourage.training.losses import build_loss
from entourage.training.optimizers import build_optimizer
from entourage.training.sampling import check_usable_classes, class_balanced_batches, hold_out_classes, share_of_rank
from entourage.training.schedule import build_schedule
from entourage.training.settings import Checkpointing, FitSettings, Reporting
from entourage.values import Embeddings, label_codes, labels_of

__all__ = ["EncoderTraining", "encoder_training"]

Rows = TypeVar("Rows")


@contextmanager
def encoder_training(
    images: Items,
    settings: EncoderSettings,
    *,
    adapt: Callable[[Any], Any] | None = None,
    run_folder: str | PathLike[str] | None = None,
    resume: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
    chosen: History | None = None,
) -> Iterator["EncoderTraining"]:
    """Set up the training of an encoder, among as many processes as `torchrun` has started.

    Parameters
    ----------
    images : ImageSet or Embeddings
        N labelled pictures, or vectors for an encoder of vectors.
    settings : EncoderSettings
        The settings of the system.
    adapt : callable, optional
        Makes of the encoder that the settings name the one that is trained.
    run_folder, resume, strict, progress
        See `trained.RunOptions`.
    chosen : History, optional
        Of a training that held classes out: this one has them all, and ends after the epoch that was chosen there.

    Yields
    ------
    EncoderTraining
        A new encoder, and the classes it will learn from.
    """
    if settings.encoder == "auto":
        settings = replace(settings, encoder=small_encoder_for(images))
    device = device_named(settings.device)
    with distributed.running_on(device):
        if distributed.is_main() and chosen is None:  # who alone writes there, and may have moved an older run away
            check_folder(run_folder, resume)
        labels = labels_of(images)
        check_usable_classes(labels)
        share = settings.validation_share if chosen is None else 0.0
        held_out = hold_out_classes(labels, share, settings.seed)
        rows = np.flatnonzero(~held_out)
        encoder = seeded_weights(settings.seed, lambda: new_encoder(settings, images))
        if settings.freeze_batch_norm == "all":
            for norm in batch_norms(encoder):
                norm.requires_grad_(False)
        yield EncoderTraining(
            images=images,
            labels=labels,
            settings=settings,
            encoder=(encoder if adapt is None else adapt(encoder)).to(device),
            device=device,
            rows=rows,
            codes=label_codes(labels[rows]),
            held_out=np.flatnonzero(held_out),
            strict=strict or distributed.world_size() > 1,
            folder=None if run_folder is None else Path(run_folder),
            resume=resume,
            progress=progress,
            chosen=chosen,
        )


@dataclass(frozen=True, eq=False)
class EncoderTraining:
    """An encoder, what it is trained and evaluated on, and where its run is kept."""

    images: Items
    """N pictures, or vectors in their place."""
    labels: np.ndarray
    """(N,) their classes."""
    settings: Any
    """The settings of the system, an EncoderSettings."""
    encoder: Any
    """An `Encoder`, and a torch module."""
    device: torch.device
    """The device it is on."""
    rows: np.ndarray
    """(n,) rows of the classes that train, ascending."""
    codes: np.ndarray
    """(n,) their labels as codes 0..C-1."""
    held_out: np.ndarray
    """(m,) rows of the classes held out."""
    strict: bool
    """Whether a picture that cannot be decoded raises CorruptImage."""
    folder: Path | None
    """The run folder."""
    resume: bool
    """Whether the run resumes from its checkpoint."""
    progress: Progress | None
    """Called as progress(title, done, total)."""
    chosen: History | None = None
    """The history of the training that chose how many epochs this one has; None if it is to choose itself."""
    histories: list[History] = field(default_factory=list, repr=False)
    """What `fit` has done."""
    _corrupt: dict[str, None] = field(default_factory=dict, repr=False)  # an ordered set

    @property
    def n_classes(self) -> int:
        """C, how many classes train."""
        return int(self.codes.max()) + 1

    @property
    def corrupt(self) -> list[str]:
        """Paths of the pictures that could not be decoded so far, each once, in the order they were met."""
        return list(self._corrupt)

    # ---- batches -------------------------------------------------------------------------------------------------

    def batches(self, epoch: int) -> "NotedBatches":
        """This process's share of an epoch's class-balanced batches."""
        s = self.settings
        drawn = class_balanced_batches(self.codes, s.batch_classes, s.batch_per_class, seed=s.seed, epoch=epoch)
        return self.pictures(list(drawn), epoch)

    def pictures(self, batches: Sequence[np.ndarray], epoch: int) -> "NotedBatches":
        """This process's share of given batches.

        Parameters
        ----------
        batches : sequence of ndarray of int, shape (b,) each
            Positions in `rows`.
        epoch : int
            Decides how the pictures are augmented, where the settings ask for it.

        Returns
        -------
        NotedBatches
            Its pictures, decoded as they are asked for.
        """
        s, rank, processes = self.settings, distributed.rank(), distributed.world_size()
        shares = [share_of_rank(self.rows[b], rank, processes) for b in batches]
        first = [int(share_of_rank(np.arange(len(b)), rank, processes)[0]) for b in batches]
        return self._noted(shares, draw=(s.seed, epoch) if s.augment else None, first=first)

    def example(self) -> PictureBatch | None:
        """The first training picture that can be decoded, as a batch of one; None if there is none."""
        return next(iter(self._noted(list(self.rows[:, None]), draw=None)), None)

    def codes_of(self, batch: PictureBatch) -> Tensor:
        """(b,) codes of the classes of a batch."""
        return torch.from_numpy(self.codes[np.searchsorted(self.rows, batch.rows)]).to(self.device)

    def _noted(
        self, batches: Sequence[np.ndarray], draw: tuple[int, ...] | None, first: Sequence[int] | None = None
    ) -> "NotedBatches":
        options: dict[str, Any] = {"draw": draw, "first": first, "workers": self.settings.workers}
        options["strict"] = self.strict
        return NotedBatches(PictureBatches(self.images, batches, self.encoder.preprocessing, **options), self._note)

    def _note(self, corrupt: Iterable[str]) -> None:
        self._corrupt.update(dict.fromkeys(corrupt))

    # ---- forward passes ------------------------------------------------------------------------------------------

    def embedded(self, batch: PictureBatch, by: Callable[[Tensor], Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Embed a batch.

        Parameters
        ----------
        batch : PictureBatch
            This process's share of it.
        by : callable, optional
            Instead of the encoder, one of its methods that gives a row for each picture.

        Returns
        -------
        embeddings : Tensor, shape (b, d)
            Embeddings of the whole batch, gathered from all processes.
        codes : Tensor of int, shape (b,)
            The codes of their classes.
        """
        return self.gathered(by or self.encoder, batch), distributed.gathered(self.codes_of(batch))

    def gathered(self, function: Callable[[Tensor], Tensor], batch: PictureBatch) -> Tensor:
        """A function of the batch's pictures, a row for each, gathered from all processes."""
        return distributed.gathered(self.forward(function, batch).float())

    def forward(self, function: Callable[[Tensor], Rows], batch: PictureBatch) -> Rows:
        """A function of the batch's pictures, in the precision the settings ask for."""
        with torch.autocast("cuda", torch.bfloat16, enabled=self.settings.amp and self.device.type == "cuda"):
            return function(batch.pictures.to(self.device, non_blocking=True))

    def embed(self, rows: np.ndarray, progress: Progress | None = None) -> Shard:
        """Embed some of the pictures without gradients, all of them in this process.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            Which pictures.
        progress : Progress, optional
            Called as progress(title, done, total).

        Returns
        -------
        Shard
            Positions in `rows` and vectors of those that could be decoded.
        """
        options: dict[str, Any] = {"workers": self.settings.workers, "strict": self.strict, "progress": progress}
        shard = next(embed_shards(self.encoder, self.images.take(rows), shard_size=len(rows), **options))
        self._note(shard.corrupt)
        return shard

    def score(self) -> float:
        """MAP@R of the held-out classes among themselves."""
        shard = self.embed(self.held_out)
        if not len(shard.rows):
            raise InputError(
                f"none of the {len(self.held_out)} held-out pictures can be decoded; wanted some to judge by: "
                "check the files, or hold none out (validation_share = 0)"
            )
        labels = self.labels[self.held_out][shard.rows]
        return mean_average_precision_at_r(Embeddings.from_vectors(shard.vectors, labels=labels))

    # ---- what is trained -----------------------------------------------------------------------------------------

    def criterion(self, loss: Callable[..., Tensor] | None = None, dim: int | None = None) -> nn.Module:
        """Build the loss.

        Parameters
        ----------
        loss : callable, optional
            A loss object instead of the settings' loss.
        dim : int, optional
            Dimensions of the embeddings; default: the encoder's.

        Returns
        -------
        torch.nn.Module
            On the device; what it learns itself starts from weights drawn from the seed.
        """
        s = self.settings
        options, chosen = (s.loss_options, s.loss) if loss is None else ({}, loss)
        dim = self.encoder.dim if dim is None else dim
        return seeded_weights(s.seed, lambda: build_loss(chosen, self.n_classes, dim, **options)).to(self.device)

    def loss_group(self, criterion: nn.Module) -> dict[str, Any]:
        """What a loss learns itself, as a group of the optimizer: it wants larger steps and no decay."""
        rate = self.settings.loss_learning_rate
        rate = 100 * self.settings.learning_rate if rate is None else rate
        return {"params": list(criterion.parameters()), "lr": rate, "weight_decay": 0.0}

    def optimizer(self, *groups: dict[str, Any]) -> torch.optim.Optimizer:
        """Build the optimiser that the settings name, with their rate and decay.

        Parameters
        ----------
        *groups : dict
            Further groups of parameters, as {"params": [...], "lr": ..., "weight_decay": ...}; without "lr" and
            "weight_decay" the encoder's.

        Returns
        -------
        torch.optim.Optimizer
            Its first group is the encoder; groups without parameters are left out.
        """
        free = [p for p in self.encoder.parameters() if p.requires_grad]
        if not free:
            raise InputError("every weight of the encoder is frozen; wanted some to train: give it a projection (dim)")
        all_groups = [{"params": free}, *(group for group in groups if group["params"])]
        s = self.settings
        return build_optimizer(s.optimizer, all_groups, s.learning_rate, s.weight_decay)

    def fit(
        self,
        parts: dict[str, nn.Module],
        loss: Callable[[PictureBatch], Tensor],
        *,
        optimizer: torch.optim.Optimizer | None = None,
        batches: Callable[[int], "NotedBatches"] | None = None,
        patience_from: int = 0,
        depends_on: Sequence[nn.Module] = (),
    ) -> TrainedEncoder:
        """Train the encoder and any other parts of the system; leave all with the weights of the best epoch.

        Parameters
        ----------
        parts : dict of str to torch.nn.Module
            The other parts that are trained, by name.
        loss : callable
            The loss of a batch, as `batches(epoch)` gives it.
        optimizer : torch.optim.Optimizer, optional
            Default: that of the encoder alone.
        batches : callable, optional
            The batches of an epoch; default: class-balanced ones.
        patience_from : int
            The epoch before which patience does not count, for a system whose last epochs must come.
        depends_on : sequence of torch.nn.Module
            What is not trained and decides the result all the same, a teacher for instance.

        Returns
        -------
        TrainedEncoder
            The encoder, the history, and the pictures left out.
        """
        title = f"training the encoder{' on all classes' * (self.chosen is not None)}"
        frozen = [] if self.settings.freeze_batch_norm == "none" else batch_norms(self.encoder)
        history = fit_model(
            TrainedParts({"encoder": self.encoder, **parts}, frozen),
            optimizer or self.optimizer(),
            self._fit_settings(patience_from),
            batches=head_first(self.encoder, self.settings.head_epochs, batches or self.batches),
            loss=loss,
            evaluate=self.score if len(self.held_out) else None,
            checkpointing=self._checkpointing(parts, depends_on),
            reporting=Reporting(self._log(), title, "images", "held-out MAP@R", self.progress),
        )
        self.histories.append(history)
        for text in nothing_learned(history) if distributed.is_main() else ():
            warnings.warn(text, EntourageWarning, stacklevel=2)
        return TrainedEncoder(self.encoder, self.chosen or history, self.corrupt)

    def _fit_settings(self, patience_from: int) -> FitSettings:
        s = self.settings
        return FitSettings(
            epochs=s.epochs if self.chosen is None else self.chosen.best_epoch,
            patience=s.patience,
            patience_from=patience_from,
            evaluate_every=s.evaluate_every,
            seed=s.seed,
            clip=s.clip,
            schedule=build_schedule(s.scheduler, s.epochs, s.step_after, s.step_factor, s.warmup_epochs),
        )

    def _checkpointing(self, parts: dict[str, nn.Module], depends_on: Sequence[nn.Module]) -> Checkpointing | None:
        if self.folder is None:
            return None
        fingerprint = training_fingerprint(self.settings, self.images, parts, (self.encoder, *depends_on))
        if self.chosen is not None:
            return Checkpointing(self.folder / REFIT_CHECKPOINT, f"{fingerprint} {self.chosen.best_epoch}", self.resume)
        return Checkpointing(self.folder / CHECKPOINT, fingerprint, self.resume)

    def _log(self) -> RunLog | None:
        """The log of the run, in its folder, which is made."""
        if self.folder is None or not distributed.is_main():
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.chosen is not None:
            return RunLog(self.folder / REFIT_LOG)
        return RunLog(self.folder / LOG, tensorboard=self.folder / TENSORBOARD if self.settings.tensorboard else None)
