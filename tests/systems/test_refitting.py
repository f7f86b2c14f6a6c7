"""Once the epoch is chosen on held-out classes, a new encoder learns from all of them for as many epochs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.systems.stripes import stripes

from entourage.stores.filenames import CHECKPOINT, LOG, REFIT_CHECKPOINT, REFIT_LOG
from entourage.stores.logs import read_log
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.divide_and_conquer.training import train_divided
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.intra_batch.settings import IntraBatchSettings
from entourage.systems.intra_batch.training import fit_intra_batch

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = stripes()
SHARED = {"dim": 16, "encoder_options": {"width": 4}, "batch_classes": 4, "validation_share": 0.3, "refit": True}
FROZEN = {"freeze_batch_norm": "statistics"}
SETTINGS = BaselineSettings(**SHARED, epochs=4, scheduler="cosine")


def equal(left, right) -> bool:
    left, right = left.state_dict(), right.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.fixture
def best_is_second(monkeypatch):
    """Of all epochs the second is the best on the held-out classes."""
    scores: dict[int, float] = {}

    def score(self):
        scores[id(self)] = scores.get(id(self), -1) + 1
        return 1.0 if scores[id(self)] == 2 else 0.5

    monkeypatch.setattr(EncoderTraining, "score", score)


@pytest.mark.usefixtures("best_is_second")
def test_it_learns_from_all_classes_by_the_same_schedule_until_the_chosen_epoch(tmp_path):
    encoder, history, _ = train_baseline(IMAGES, SETTINGS, run_folder=tmp_path)
    assert history.best_epoch == 2 and [line["score"] for line in history.curve] == [0.5, 0.5, 1.0, 0.5, 0.5]
    again = read_log(tmp_path / REFIT_LOG)
    assert [line["epoch"] for line in again] == [0, 1, 2] and {line["score"] for line in again} == {None}
    rates = [[line["learning_rates"][0] for line in lines[1:3]] for lines in (read_log(tmp_path / LOG), again)]
    assert rates[0] == rates[1] and len(set(rates[0])) == 2  # those of a schedule of four epochs
    without = replace(SETTINGS, validation_share=0.0, refit=False)
    cut = {"epochs": 2, "scheduler": "step", "step_after": (9,)}
    assert not equal(encoder, train_baseline(IMAGES, replace(without, **cut)).encoder)  # another schedule
    assert not equal(encoder, train_baseline(IMAGES, replace(SETTINGS, refit=False)).encoder)


@pytest.mark.usefixtures("best_is_second")
def test_with_a_constant_rate_it_is_a_training_without_held_out_classes():
    chosen = replace(SETTINGS, scheduler="constant")
    alone = replace(chosen, validation_share=0.0, epochs=2, refit=False)
    assert equal(train_baseline(IMAGES, chosen).encoder, train_baseline(IMAGES, alone).encoder)


@pytest.mark.filterwarnings("ignore:no epoch")
@pytest.mark.parametrize("changed", [{"validation_share": 0.0}, {"learning_rate": 0.0, **FROZEN}, {"epochs": 0}])
def test_without_a_choice_there_is_nothing_to_refit(changed, tmp_path):
    """No class held out, no epoch better than the first weights, no epoch at all."""
    chosen = replace(SETTINGS, **changed)
    once, history, _ = train_baseline(IMAGES, replace(chosen, refit=False))
    encoder, same, _ = train_baseline(IMAGES, chosen, run_folder=tmp_path)
    assert equal(once, encoder) and history == same and not (tmp_path / REFIT_LOG).exists()


@pytest.mark.parametrize("stopped", ["training the encoder (epoch 3/", "on all classes (epoch 2/"])
@pytest.mark.usefixtures("best_is_second")
def test_interrupted_in_either_training_it_ends_as_if_it_had_not_been(tmp_path, stopped):
    def interrupt(title, done, total):
        if stopped in title:
            raise KeyboardInterrupt

    unbroken, wanted, _ = train_baseline(IMAGES, SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        train_baseline(IMAGES, SETTINGS, run_folder=tmp_path, progress=interrupt)
    assert (tmp_path / CHECKPOINT).exists() and (tmp_path / REFIT_CHECKPOINT).exists() is ("all" in stopped)
    encoder, history, _ = train_baseline(IMAGES, SETTINGS, run_folder=tmp_path, resume=True)
    assert equal(encoder, unbroken) and [line["epoch"] for line in history.curve] == [0, 1, 2, 3, 4]
    assert history.best_epoch == wanted.best_epoch


@pytest.mark.usefixtures("best_is_second")
def test_divided_it_keeps_to_the_phases_of_all_epochs():
    """Two of five epochs are chosen: both train slices, as they did when they were chosen."""
    chosen = DivideSettings(**SHARED, learners=2, epochs=5)
    assert chosen.phases == (2, 2, 1)
    encoder = train_divided(IMAGES, chosen).encoder
    slices = replace(chosen, validation_share=0.0, refit=False, epochs=2, slice_share=1.0, conquer_share=0.0)
    assert equal(encoder, train_divided(IMAGES, slices).encoder)


@pytest.mark.usefixtures("best_is_second")
def test_a_network_learned_with_the_encoder_knows_all_classes():
    chosen = IntraBatchSettings(**SHARED, epochs=3, batch_per_class=3)
    _, network = fit_intra_batch(IMAGES, chosen)
    assert network.classes == [str(label) for label in np.unique(IMAGES.labels)]
