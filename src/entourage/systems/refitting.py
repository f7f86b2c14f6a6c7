"""Training once or, to learn from all classes, twice.

Classes that are held out choose the epoch, and the encoder never learns from them. With the setting `refit` a new
encoder is then trained on all classes, by the same schedule, until the epoch that was chosen.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from entourage.data.image_set import Items
from entourage.runtime import distributed
from entourage.runtime.devices import device_named
from entourage.systems.encoder_training import EncoderTraining, encoder_training
from entourage.systems.settings import EncoderSettings
from entourage.systems.trained import is_refitted

__all__ = ["fit_and_refit"]

Result = TypeVar("Result")


def fit_and_refit(
    train: Callable[[EncoderTraining], Result], images: Items, settings: EncoderSettings, **options: Any
) -> Result:
    """Train an encoder by a system, and once more on all classes if the settings ask for it.

    Parameters
    ----------
    train : callable
        Builds what the system trains besides the encoder, and calls `fit`.
    images, settings, **options
        As in `encoder_training`.

    Returns
    -------
    Result
        What `train` returns, of the last training.
    """
    with distributed.running_on(device_named(settings.device)):  # once for both
        with encoder_training(images, settings, **options) as training:
            result = train(training)
        history = training.histories[-1]
        if not is_refitted(settings, history):
            return result
        with encoder_training(images, settings, **options, chosen=history) as training:
            return train(training)
