"""The baseline: an encoder trained by a metric loss over class-balanced batches of pictures.

pictures I of a batch of n classes x p -> e = encoder(I) -> loss(e, labels),   one Adam step for both
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from entourage.data.image_set import Items
from entourage.runtime.progress import shows_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.refitting import fit_and_refit
from entourage.systems.trained import RunOptions, TrainedEncoder

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["train_baseline"]


@shows_progress
def train_baseline(
    images: Items,
    settings: BaselineSettings,
    *,
    loss: Callable[..., Tensor] | None = None,
    **run: "Unpack[RunOptions]",
) -> TrainedEncoder:
    """Train an encoder by a metric loss.

    Parameters
    ----------
    images : ImageSet or Embeddings
        Labelled pictures, or labelled vectors for an encoder of vectors.
    settings : BaselineSettings
        The encoder, the loss, and how it is trained.
    loss : callable, optional
        A loss object to use instead of settings.loss. Where a second training may follow, each trains a copy of it.
    **run
        run_folder, resume, strict and progress; see `trained.RunOptions`.

    Returns
    -------
    TrainedEncoder
        The encoder of the last training (with the weights of its best epoch, if classes were held out of it), the
        history, and the pictures left out.
    """

    def train(training: EncoderTraining) -> TrainedEncoder:
        criterion = training.criterion(copy.deepcopy(loss) if settings.refit and settings.validation_share else loss)
        return training.fit(
            {"loss": criterion},
            lambda batch: criterion(*training.embedded(batch)),
            optimizer=training.optimizer(training.loss_group(criterion)),
        )

    return fit_and_refit(train, images, settings, **run)
