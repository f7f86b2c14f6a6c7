"""The baseline: an encoder trained by a metric loss over class-balanced batches of pictures.

pictures I of a batch of n classes x p -> e = encoder(I) -> loss(e, labels),   one Adam step for both
"""

from torch import nn

from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.encoder_training import encoder_training
from entourage.training.history import History

__all__ = ["train_baseline"]


def train_baseline(images, settings: BaselineSettings, *, loss=None, **run) -> tuple[nn.Module, History]:
    """Train an encoder on a labelled image set; (encoder with the weights of its best epoch, history).

    loss: a loss object to use instead of settings.loss. run: run_folder, resume, strict, corrupt and progress, as
    `encoder_training` takes them. Labelled Embeddings are trained on like pictures, by an encoder of vectors.
    """
    with encoder_training(images, settings, **run) as training:
        criterion = training.criterion(loss)
        history = training.fit(
            {"loss": criterion},
            lambda batch: criterion(*training.embedded(batch)),
            optimizer=training.optimizer(training.loss_group(criterion)),
        )
    return training.encoder, history
