"""Divide and conquer the embedding space (Sanakoyeu et al., CVPR 2019): K learners, each with its part of both worlds.

An embedding of d dimensions is cut into K slices, the training items into K clusters; learner k owns slice k and, for
now, one cluster. f_k(I) = x_k / |x_k| is slice k of the encoder's projection x.

    every T epochs    clusters = k-means of e = [f_1, ..., f_K] / sqrt(K); each goes to the learner it fits best
    slices            batches of one cluster each, in turn:   loss_k(f_k(I), labels)
    clusters          batches of one cluster each, in turn:   loss(e(I), labels)
    everything        in the last epochs, batches of all:     loss(e(I), labels)

assignment.py pairs clusters with learners, learners.py holds them, analysis.py says what each has learned.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from entourage.data.batches import PictureBatch
from entourage.data.image_set import Items
from entourage.encoders import SlicedEncoder
from entourage.errors import InputError
from entourage.runtime import distributed
from entourage.runtime.progress import shows_progress
from entourage.systems.divide_and_conquer.learners import Learners
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.parts import NotedBatches
from entourage.systems.refitting import fit_and_refit
from entourage.systems.trained import RunOptions, TrainedEncoder
from entourage.training.sampling import cluster_batches

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["train_divided"]


@shows_progress
def train_divided(
    images: Items,
    settings: DivideSettings,
    *,
    loss: Callable[..., Tensor] | None = None,
    **run: "Unpack[RunOptions]",
) -> TrainedEncoder:
    """Train an encoder whose embedding is shared by learners.

    Parameters
    ----------
    images : ImageSet or Embeddings
        Labelled pictures, or labelled vectors for an encoder of vectors.
    settings : DivideSettings
        The encoder, the learners, and how they are trained.
    loss : callable, optional
        A loss object to use instead of settings.loss, copied for every learner and for the whole.
    **run
        run_folder, resume, strict and progress; see `trained.RunOptions`.

    Returns
    -------
    TrainedEncoder
        The encoder with the weights of its best epoch, whose embedding is all learners' slices together; the history;
        and the pictures left out.
    """

    def sliced(encoder: Any) -> nn.Module:
        return _sliced(encoder, settings.learners)

    def train(training: EncoderTraining) -> TrainedEncoder:
        division = _Division(training, _learners(training, loss))
        return training.fit(
            {"learners": division.learners},
            division.loss,
            optimizer=training.optimizer(training.loss_group(division.learners)),
            batches=division.batches,
            patience_from=settings.epochs - settings.phases.everything,  # so that it does not end before it conquers
        )

    return fit_and_refit(train, images, settings, adapt=sliced, **run)


class _Division:
    """Who learns from which batch: a slice from its cluster, then the whole from clusters, then the whole from all."""

    def __init__(self, training: EncoderTraining, learners: Learners) -> None:
        self.training, self.learners = training, learners
        self.in_slices = True

    def batches(self, epoch: int) -> NotedBatches:
        """The epoch's batches: of one cluster each, after clustering anew if that is due, or of all the data."""
        s = self.training.settings
        slices, clusters, _ = s.phases
        self.in_slices = epoch <= slices
        if epoch > slices + clusters:
            return self.training.batches(epoch)
        if (epoch - 1) % s.recluster_every == 0:
            self._divide(epoch)
        drawn = cluster_batches(
            self.training.codes,
            self.learners.learner_of,
            s.batch_classes,
            s.batch_per_class,
            seed=s.seed,
            epoch=epoch,
            at_least=distributed.world_size(),  # an item for each process
        )
        return self.training.pictures(drawn, epoch)

    def loss(self, batch: PictureBatch) -> Tensor:
        """The loss of a batch: that of its learner, or of the whole."""
        embeddings, labels = self.training.embedded(batch)
        if self.in_slices:
            return self.learners.loss_of(self._learner(batch), embeddings, labels)
        return self.learners.whole(embeddings, labels)

    def _learner(self, batch: PictureBatch) -> int:
        """All items of a batch are one learner's."""
        return int(self.learners.assigned[np.searchsorted(self.training.rows, batch.rows[0])])

    def _divide(self, epoch: int) -> None:
        """Cluster anew, in the first process; the others get its clusters."""
        training = self.training
        if distributed.is_main():
            shard = training.embed(training.rows, training.progress)
            if not len(shard.rows):
                raise InputError(
                    f"none of the {len(training.rows)} pictures to learn from can be decoded; check the files"
                )
            s = training.settings
            kmeans = {"starts": s.cluster_starts, "iterations": s.cluster_iterations}
            self.learners.divide(shard.vectors, shard.rows, s.seed, first=epoch == 1, **kmeans)
        distributed.share_state(self.learners)


def _sliced(encoder: Any, learners: int) -> SlicedEncoder:
    """The encoder in slices; one that was divided among as many learners before stays as it is."""
    if not isinstance(encoder, SlicedEncoder):
        return SlicedEncoder(encoder, learners)
    return encoder if encoder.slices == learners else SlicedEncoder(encoder.encoder, learners)


def _learners(training: EncoderTraining, loss: Callable[..., Tensor] | None) -> Learners:
    count, dim = training.settings.learners, training.encoder.dim

    def criterion(dim: int) -> nn.Module:
        return training.criterion(copy.deepcopy(loss), dim)

    losses = [criterion(dim // count) for _ in range(count)]
    return Learners(len(training.rows), losses, criterion(dim)).to(training.device)
