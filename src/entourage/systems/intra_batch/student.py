"""A student: one encoder that imitates what encoder and network of an intra-batch run make of the same batches.

pictures I of a batch -> e = student(I)
                      -> t = network(teacher(I)), over the whole batch        loss(e, t): see distillation.py

Labels draw the batches and choose the epoch; the loss does not see them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from entourage.data.batches import PictureBatch
from entourage.data.image_set import Items
from entourage.encoders import load_encoder
from entourage.encoders.protocol import Encoder
from entourage.errors import InputError
from entourage.runtime.progress import shows_progress
from entourage.runtime.randomness import seeded_weights
from entourage.stores.filenames import ENCODER
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.intra_batch.distillation import class_probability_loss, feature_loss, relation_loss
from entourage.systems.intra_batch.objective import ClassHead
from entourage.systems.intra_batch.saving import TrainedNetwork, load_network
from entourage.systems.intra_batch.settings import StudentSettings
from entourage.systems.refitting import fit_and_refit
from entourage.systems.trained import RunOptions, TrainedEncoder

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["train_student"]


@shows_progress
def train_student(images: Items, settings: StudentSettings, **run: "Unpack[RunOptions]") -> TrainedEncoder:
    """Train an encoder to imitate the encoder and the network of an intra-batch run.

    Parameters
    ----------
    images : ImageSet or Embeddings
        Labelled pictures, or labelled vectors; the labels draw the batches and choose the epoch.
    settings : StudentSettings
        The encoder, its teacher, and what is imitated.
    **run
        run_folder, resume, strict and progress; see `trained.RunOptions`.

    Returns
    -------
    TrainedEncoder
        The encoder with the weights of its best epoch, the history, and the pictures left out.
    """
    trained = load_network(settings.teacher)
    teacher = load_encoder(Path(settings.teacher) / ENCODER)

    def train(training: EncoderTraining) -> TrainedEncoder:
        _check_fit(training, trained, teacher)
        taught_by = (teacher, trained.network, trained.head)
        for part in taught_by:
            part.eval().requires_grad_(False).to(training.device)
        head = seeded_weights(settings.seed, lambda: ClassHead(training.encoder.dim, len(trained.classes)))
        head = head.to(training.device)
        learned = [parameter for parameter in head.parameters() if parameter.requires_grad]

        def loss(batch: PictureBatch) -> Tensor:
            with torch.no_grad():
                features = trained.network(training.gathered(teacher, batch))
            return _loss(settings, trained, head, training.gathered(training.encoder, batch), features)

        return training.fit(
            {"head": head}, loss, optimizer=training.optimizer({"params": learned}), depends_on=taught_by
        )

    return fit_and_refit(train, images, settings, **run)


def _loss(settings: StudentSettings, trained: TrainedNetwork, head: ClassHead, e: Tensor, features: Tensor) -> Tensor:
    """How far the student's embeddings e (b, d) are from the teacher's features (b, d')."""
    if len(e) < 2:  # what corrupt files may leave of a batch: nothing to relate
        return 0 * e.sum()
    if settings.distillation == "features":
        return feature_loss(e, features)
    if settings.distillation == "relations":
        return relation_loss(e, features)
    logits, taught = head(e) / trained.temperature, trained.head(features) / trained.temperature
    return class_probability_loss(logits, taught, settings.distillation_temperature)


def _check_fit(training: EncoderTraining, trained: TrainedNetwork, teacher: Encoder) -> None:
    """Refuse a student that cannot learn from its teacher, or a teacher that knows the classes held out."""
    s, student = training.settings, training.encoder
    if s.distillation == "features" and student.dim != trained.network.dim:
        raise InputError(
            f"the student has {student.dim} dimensions and its teacher {trained.network.dim}; wanted the same number "
            f"to imitate features: set dim = {trained.network.dim}"
        )
    if student.preprocessing != teacher.preprocessing:
        raise InputError(
            f"{s.teacher} prepares pictures in another way than the student, {_difference(teacher, student)}; "
            "wanted the same way: give both the same kind of encoder and image_size"
        )
    held_out = {str(label) for label in training.labels[training.held_out]}
    known = sorted(held_out.intersection(trained.classes))
    if known:
        raise InputError(
            f"{s.teacher} was trained on {len(known)} of the {len(held_out)} classes held out to choose the epoch, the "
            f"first is {known[0]!r}; wanted none: train the student with validation_share=0 (no epoch is chosen), or "
            "the teacher with refit=false and both with the same seed and validation_share"
        )


def _difference(teacher: Encoder, student: Encoder) -> str:
    """The first of what differs in how pictures are prepared."""
    theirs, ours = _preprocessing(teacher), _preprocessing(student)
    name = next(name for name in (theirs | ours) if theirs.get(name) != ours.get(name))
    return f"with {name} = {theirs.get(name)} where the student has {ours.get(name)}"


def _preprocessing(encoder: Encoder) -> dict[str, Any]:
    return {} if encoder.preprocessing is None else encoder.preprocessing.to_dict()
