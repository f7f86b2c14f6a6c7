"""Intra-batch connections: an encoder trained with a network that passes messages within the batch.

pictures I of n classes x p -> x = encoder.projected(I), e = x / |x| -> h = network(e), over the whole batch
                            -> cross-entropy of x and of h

At test time the encoder does alone, or the network refines its embeddings in contexts found without labels
(test_time.py). A student learns from encoder and network what one encoder can (student.py).
"""

import numpy as np
from torch import nn

from entourage.runtime import distributed
from entourage.stores.filenames import NETWORK
from entourage.systems.encoder_training import EncoderTraining, encoder_training
from entourage.systems.intra_batch.objective import IntraBatchObjective
from entourage.systems.intra_batch.saving import TrainedNetwork, save_network
from entourage.systems.intra_batch.settings import IntraBatchSettings
from entourage.training.history import History
from entourage.training.loop import seeded

__all__ = ["fit_intra_batch", "train_intra_batch"]


def train_intra_batch(images, settings: IntraBatchSettings, **run) -> tuple[nn.Module, History]:
    """Train an encoder on a labelled image set; (encoder with the weights of its best epoch, history).

    run: run_folder, resume, strict, corrupt and progress, as `encoder_training` takes them. The network of that epoch
    is written to `run_folder / "network"`.
    """
    encoder, _, history = fit_intra_batch(images, settings, **run)
    return encoder, history


def fit_intra_batch(images, settings: IntraBatchSettings, **run) -> tuple[nn.Module, TrainedNetwork, History]:
    """The same, and the network besides."""
    with encoder_training(images, settings, **run) as training:
        objective = seeded(
            settings.seed, lambda: IntraBatchObjective(settings, training.encoder.dim, training.n_classes)
        ).to(training.device)
        learned = [parameter for parameter in objective.parameters() if parameter.requires_grad]
        history = training.fit(
            {"objective": objective},
            lambda batch: objective(*training.embedded(batch, training.encoder.projected)),
            optimizer=training.optimizer({"params": learned}),
        )
        trained = _trained(training, objective)
        listens = settings.network_weight and settings.messages  # else it has not learned to, and is not kept
        if training.folder and listens and distributed.is_main():
            save_network(training.folder / NETWORK, trained, overwrite=True)
    return training.encoder, trained, history


def _trained(training: EncoderTraining, objective: IntraBatchObjective) -> TrainedNetwork:
    s = training.settings
    labels = training.images.labels[training.rows]
    first = np.unique(training.codes, return_index=True)[1]  # a picture of each class, in the order of the codes
    return TrainedNetwork(
        objective.network,
        objective.network_head,
        [str(label) for label in labels[first]],
        s.temperature,
        (s.batch_classes, s.batch_per_class),
    )
