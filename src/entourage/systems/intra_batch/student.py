"""A student: one encoder that imitates what encoder and network of an intra-batch run make of the same batches.

pictures I of a batch -> e = student(I)
                      -> t = network(teacher(I)), over the whole batch        loss(e, t): see distillation.py

Labels draw the batches and choose the epoch; the loss does not see them.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from entourage.data.batches import PictureBatch
from entourage.encoders import load_encoder
from entourage.errors import InputError
from entourage.stores.filenames import ENCODER
from entourage.systems.encoder_training import EncoderTraining, encoder_training
from entourage.systems.intra_batch.distillation import class_probability_loss, feature_loss, relation_loss
from entourage.systems.intra_batch.objective import ClassHead
from entourage.systems.intra_batch.saving import TrainedNetwork, load_network
from entourage.systems.intra_batch.settings import StudentSettings
from entourage.training.history import History
from entourage.training.loop import seeded

__all__ = ["train_student"]


def train_student(images, settings: StudentSettings, **run) -> tuple[nn.Module, History]:
    """Train an encoder on an image set by what its teacher says; (encoder of the best epoch, history).

    run: run_folder, resume, strict, corrupt and progress, as `encoder_training` takes them.
    """
    trained = load_network(settings.teacher)
    teacher = load_encoder(Path(settings.teacher) / ENCODER)
    with encoder_training(images, settings, **run) as training:
        _check_fit(training, trained, teacher)
        taught_by = (teacher, trained.network, trained.head)
        for part in taught_by:
            part.eval().requires_grad_(False).to(training.device)
        head = seeded(settings.seed, lambda: ClassHead(training.encoder.dim, len(trained.classes))).to(training.device)
        learned = [parameter for parameter in head.parameters() if parameter.requires_grad]

        def loss(batch: PictureBatch) -> Tensor:
            with torch.no_grad():
                features = trained.network(training.gathered(teacher, batch))
            return _loss(settings, trained, head, training.gathered(training.encoder, batch), features)

        history = training.fit(
            {"head": head}, loss, optimizer=training.optimizer({"params": learned}), depends_on=taught_by
        )
    return training.encoder, history


def _loss(settings: StudentSettings, trained: TrainedNetwork, head: ClassHead, e: Tensor, features: Tensor) -> Tensor:
    if len(e) < 2:  # what corrupt files may leave of a batch: nothing to relate
        return 0 * e.sum()
    if settings.distillation == "features":
        return feature_loss(e, features)
    if settings.distillation == "relations":
        return relation_loss(e, features)
    logits, taught = head(e) / trained.temperature, trained.head(features) / trained.temperature
    return class_probability_loss(logits, taught, settings.distillation_temperature)


def _check_fit(training: EncoderTraining, trained: TrainedNetwork, teacher: nn.Module) -> None:
    s, student = training.settings, training.encoder
    if s.distillation == "features" and student.dim != trained.network.dim:
        raise InputError(
            f"the student has {student.dim} dimensions and its teacher {trained.network.dim}; wanted as many to "
            f"imitate features: set dim = {trained.network.dim}"
        )
    if student.preprocessing != teacher.preprocessing:
        raise InputError(
            f"{s.teacher} sees pictures prepared in another way than the student, {_difference(teacher, student)}; "
            "wanted the same: give both the same kind of encoder and image_size"
        )
    held_out = {str(label) for label in training.images.labels[training.held_out]}
    known = sorted(held_out.intersection(trained.classes))
    if known:
        raise InputError(
            f"{s.teacher} was trained on {len(known)} of the {len(held_out)} classes held out to choose the epoch, the "
            f"first is {known[0]!r}; wanted none: use the teacher's seed and validation_share"
        )


def _difference(teacher: nn.Module, student: nn.Module) -> str:
    """The first of what differs in how pictures are prepared."""
    theirs, ours = ({} if one.preprocessing is None else one.preprocessing.to_dict() for one in (teacher, student))
    name = next(name for name in (theirs | ours) if theirs.get(name) != ours.get(name))
    return f"with {name} = {theirs.get(name)} where the student has {ours.get(name)}"
