"""Optimisers, warm-up and the epochs of the head alone, as settings of every system."""

import pytest
import torch
from tests.systems.stripes import stripes

from entourage.errors import InputError
from entourage.stores.filenames import LOG
from entourage.stores.logs import read_log
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.divide_and_conquer.training import train_divided
from entourage.training.optimizers import OPTIMIZERS

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = stripes()
SHARED = {"dim": 16, "encoder_options": {"width": 4}, "batch_classes": 4, "epochs": 2, "validation_share": 0.0}


def settings(**changed) -> BaselineSettings:
    return BaselineSettings(**(SHARED | changed))


def weights(encoder) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in encoder.named_parameters()}


def changed(before, after) -> set[str]:
    """Which parts of an encoder have learned."""
    return {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_optimizer_learns_and_is_resumed(name, tmp_path):
    def interrupt(title, done, total):
        if "(epoch 2/" in title:
            raise KeyboardInterrupt

    chosen = settings(optimizer=name, learning_rate=1e-2)
    first = weights(train_baseline(IMAGES, settings(epochs=0)).encoder)
    unbroken = weights(train_baseline(IMAGES, chosen).encoder)
    assert changed(first, unbroken) == {"stem", "stages", "projection"}
    with pytest.raises(KeyboardInterrupt):
        train_baseline(IMAGES, chosen, run_folder=tmp_path, progress=interrupt)
    resumed = weights(train_baseline(IMAGES, chosen, run_folder=tmp_path, resume=True).encoder)
    assert changed(unbroken, resumed) == set()


def test_rates_grow_over_the_first_epochs(tmp_path):
    chosen = settings(epochs=4, warmup_epochs=2, scheduler="step", step_after=(3,), step_factor=0.5)
    train_baseline(IMAGES, chosen, run_folder=tmp_path)
    rates = [line["learning_rates"][0] for line in read_log(tmp_path / LOG)[1:]]
    assert rates == pytest.approx([0.5e-3, 1e-3, 1e-3, 0.5e-3])


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_the_head_learns_alone_at_first(epochs):
    first = weights(train_baseline(IMAGES, settings(epochs=0)).encoder)
    encoder = train_baseline(IMAGES, settings(head_epochs=2, epochs=epochs, learning_rate=1e-2)).encoder
    learned = {"projection"} if epochs < 3 else {"stem", "stages", "projection"}
    assert changed(first, weights(encoder)) == learned


def test_the_head_of_an_encoder_in_slices_learns_alone_too():
    def train(epochs):
        return train_divided(IMAGES, DivideSettings(**SHARED | {"epochs": epochs}, learners=2, head_epochs=1)).encoder

    assert changed(weights(train(0).encoder), weights(train(1).encoder)) == {"projection"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"optimizer": "adamm"}, "the optimizer is 'adamm'; wanted one of adam, adamw, sgd"),
        ({"step_factor": 0.0}, "step_factor is 0.0; wanted more than 0 and at most 1"),
        ({"warmup_epochs": -1}, "warmup_epochs is -1; wanted 0 or more"),
        ({"head_epochs": -1}, "head_epochs is -1; wanted 0 or more"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        settings(**wrong)
