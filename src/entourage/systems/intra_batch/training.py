"""Intra-batch connections: an encoder trained with a network that passes messages within the batch.

pictures I of n classes x p -> x = encoder.projected(I), e = x / |x| -> h = network(e), over the whole batch
                            -> cross-entropy of x and of h

At inference the encoder does alone, or the network refines its embeddings in contexts found without labels
(inference.py). A student learns from encoder and network what one encoder can (student.py).
"""

from typing import TYPE_CHECKING

import numpy as np

from entourage.data.image_set import Items
from entourage.runtime import distributed
from entourage.runtime.progress import shows_progress
from entourage.runtime.randomness import seeded_weights
from entourage.stores.filenames import NETWORK
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.intra_batch.objective import IntraBatchObjective
from entourage.systems.intra_batch.saving import TrainedNetwork, save_network
from entourage.systems.intra_batch.settings import IntraBatchSettings
from entourage.systems.refitting import fit_and_refit
from entourage.systems.trained import RunOptions, TrainedEncoder

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["fit_intra_batch", "train_intra_batch"]


@shows_progress
def train_intra_batch(images: Items, settings: IntraBatchSettings, **run: "Unpack[RunOptions]") -> TrainedEncoder:
    """Train an encoder with a network that passes messages within the batch.

    Parameters
    ----------
    images : ImageSet or Embeddings
        Labelled pictures, or labelled vectors for an encoder of vectors.
    settings : IntraBatchSettings
        The encoder, the network, and how both are trained.
    **run
        run_folder, resume, strict and progress; see `trained.RunOptions`. The network is written to
        run_folder / "network".

    Returns
    -------
    TrainedEncoder
        The encoder with the weights of its best epoch, the history, and the pictures left out.
    """
    return fit_intra_batch(images, settings, **run)[0]


def fit_intra_batch(
    images: Items, settings: IntraBatchSettings, **run: "Unpack[RunOptions]"
) -> tuple[TrainedEncoder, TrainedNetwork]:
    """Train an encoder and a network that passes messages within the batch, and return both.

    Parameters
    ----------
    images, settings, **run
        As in `train_intra_batch`.

    Returns
    -------
    trained : TrainedEncoder
        The encoder with the weights of its best epoch, the history, and the pictures left out.
    network : TrainedNetwork
        The network of that epoch.
    """

    def train(training: EncoderTraining) -> tuple[TrainedEncoder, TrainedNetwork]:
        objective = seeded_weights(
            settings.seed, lambda: IntraBatchObjective(settings, training.encoder.dim, training.n_classes)
        ).to(training.device)
        learned = [parameter for parameter in objective.parameters() if parameter.requires_grad]
        trained = training.fit(
            {"objective": objective},
            lambda batch: objective(*training.embedded(batch, training.encoder.projected)),
            optimizer=training.optimizer({"params": learned}),
        )
        network = _trained_network(training, objective)
        uses_messages = settings.network_weight and settings.messages  # else it has not learned to, and is not kept
        if training.folder and uses_messages and distributed.is_main():
            save_network(training.folder / NETWORK, network, overwrite=True)
        return trained, network

    return fit_and_refit(train, images, settings, **run)


def _trained_network(training: EncoderTraining, objective: IntraBatchObjective) -> TrainedNetwork:
    """The network with what distillation and inference need to know of its training."""
    s = training.settings
    labels = training.labels[training.rows]
    first = np.unique(training.codes, return_index=True)[1]  # a picture of each class, in the order of the codes
    return TrainedNetwork(
        objective.network,
        objective.network_head,
        [str(label) for label in labels[first]],
        s.temperature,
        (s.batch_classes, s.batch_per_class),
    )
