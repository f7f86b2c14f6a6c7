"""The baseline: an encoder trained by a metric loss over class-balanced batches of pictures.

pictures I of a batch of n classes x p -> e = encoder(I) -> loss(e, labels),   one Adam step for both
"""

from torch import nn

from entourage.encoder_training import EncoderTraining, encoder_training
from entourage.losses import build_loss
from entourage.settings import TrainSettings
from entourage.training import History, seeded

__all__ = ["train_baseline"]


def train_baseline(images, settings: TrainSettings, *, loss=None, **run) -> tuple[nn.Module, History]:
    """Train an encoder on a labelled image set; (encoder with the weights of its best epoch, history).

    loss: a loss object to use instead of settings.loss. run: run_folder, resume, strict, corrupt and progress, as
    `encoder_training` takes them.
    """
    with encoder_training(images, settings, **run) as training:
        criterion = _criterion(training, loss)
        history = training.fit(
            {"loss": criterion},
            lambda batch: criterion(*training.embedded(batch)),
            optimizer=training.optimizer(_own_group(criterion, settings)),
        )
    return training.encoder, history


def _criterion(training: EncoderTraining, loss) -> nn.Module:
    s = training.settings
    options = s.loss_options if loss is None else {}
    chosen = s.loss if loss is None else loss
    built = seeded(s.seed, lambda: build_loss(chosen, training.n_classes, training.encoder.dim, **options))
    return built.to(training.device)


def _own_group(criterion: nn.Module, settings: TrainSettings) -> dict:
    """What the loss learns itself wants larger steps and no decay."""
    rate = settings.loss_learning_rate
    rate = 100 * settings.learning_rate if rate is None else rate
    return {"params": list(criterion.parameters()), "lr": rate, "weight_decay": 0.0}
