"""Divide and conquer the embedding space (Sanakoyeu et al., CVPR 2019): K learners, each with its part of both worlds.

An embedding of d dimensions is cut into K slices, the training items into K clusters; learner k owns slice k and, for
now, one cluster. f_k(I) = x_k / |x_k| is slice k of the encoder's projection x.

    every T epochs    clusters = k-means of e = [f_1, ..., f_K] / sqrt(K); each goes to the learner it fits best
    divide            batches of one cluster each, in turn:   loss_k(f_k(I), labels)
    conquer           in the last epochs, batches of all:     loss(e(I), labels)

assignment.py pairs clusters with learners, learners.py holds them, analysis.py says what each has learned.
"""

import copy

import numpy as np
from torch import Tensor, nn

from entourage.data.batches import PictureBatch, PictureBatches
from entourage.encoders import SlicedEncoder
from entourage.encoders.embedding import embed_shards
from entourage.errors import InputError
from entourage.runtime import distributed
from entourage.systems.divide_and_conquer.learners import Learners
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.encoder_training import EncoderTraining, encoder_training
from entourage.training.history import History
from entourage.training.sampling import cluster_batches

__all__ = ["train_divided"]


def train_divided(images, settings: DivideSettings, *, loss=None, **run) -> tuple[nn.Module, History]:
    """Train an encoder on a labelled image set, or on labelled Embeddings; (encoder of its best epoch, history).

    Its embedding is all learners' slices together. loss: a loss object to use instead of settings.loss, copied for
    every learner and for the whole. run: run_folder, resume, strict, corrupt and progress, as
    `encoder_training` takes them.
    """
    with encoder_training(images, settings, **run) as training:
        training.encoder = _sliced(training.encoder, settings.learners)
        division = _Division(training, _learners(training, loss))
        history = training.fit(
            {"learners": division.learners},
            division.loss,
            optimizer=training.optimizer(training.loss_group(division.learners)),
            batches=division.batches,
            patience_from=settings.divided_epochs,  # so that it does not end before it conquers
        )
    return training.encoder, history


class _Division:
    """A training in its course: who learns from which batch."""

    def __init__(self, training: EncoderTraining, learners: Learners):
        self.training, self.learners = training, learners
        self.conquering = False

    def batches(self, epoch: int) -> PictureBatches:
        """The epoch's batches: of one cluster each, after clustering anew if that is due, or of all the data."""
        s = self.training.settings
        self.conquering = epoch > s.divided_epochs
        if self.conquering:
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
        embeddings, labels = self.training.embedded(batch)
        if self.conquering:
            return self.learners.whole(embeddings, labels)
        return self.learners.loss_of(self._learner(batch), embeddings, labels)

    def _learner(self, batch: PictureBatch) -> int:
        """All items of a batch are one learner's."""
        return int(self.learners.assigned[np.searchsorted(self.training.rows, batch.rows[0])])

    def _divide(self, epoch: int) -> None:
        """The first process clusters, and tells the others."""
        training = self.training
        if distributed.is_main():
            images = training.images.take(training.rows)
            options = {"shard_size": len(images), "progress": training.progress, **training.decoding}
            rows, vectors = next(embed_shards(training.encoder, images, **options))
            if not len(rows):
                raise InputError(f"none of the {len(images)} pictures to learn from can be decoded; check the files")
            self.learners.divide(vectors, rows, training.settings.seed, first=epoch == 1)
        distributed.share_state(self.learners)


def _sliced(encoder: nn.Module, learners: int) -> nn.Module:
    """The encoder in slices; one that was divided among as many before stays as it is."""
    if isinstance(encoder, SlicedEncoder):
        encoder = encoder if encoder.slices == learners else encoder.encoder
    return encoder if isinstance(encoder, SlicedEncoder) else SlicedEncoder(encoder, learners)


def _learners(training: EncoderTraining, loss) -> Learners:
    count, dim = training.settings.learners, training.encoder.dim

    def criterion(dim: int) -> nn.Module:
        return training.criterion(copy.deepcopy(loss), dim)

    losses = [criterion(dim // count) for _ in range(count)]
    return Learners(len(training.rows), losses, criterion(dim)).to(training.device)
