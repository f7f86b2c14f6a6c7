"""Batch norms that keep what they were trained with, whichever system trains and whatever the encoder is."""

import pytest
import torch
from tests.systems.stripes import stripes

from entourage.encoders import SlicedEncoder, build_encoder, save_encoder
from entourage.encoders.batch_norm import batch_norms
from entourage.errors import InputError
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.divide_and_conquer.training import train_divided

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = stripes()
SHARED = {"dim": 16, "batch_classes": 4, "epochs": 2, "validation_share": 0.0, "learning_rate": 1e-2}


@pytest.fixture
def saved(tmp_path):
    """An encoder whose batch norms have seen something."""
    encoder = build_encoder("small", dim=16, width=4, size=None)
    encoder.train()(torch.rand(16, 16, 16))
    save_encoder(tmp_path / "e", encoder)
    return tmp_path / "e", norm_state(encoder)


def norm_state(encoder) -> dict[str, list]:
    norms = batch_norms(encoder)
    assert len(norms) == 7  # of the stem, and two of each stage
    return {
        "statistics": [value.clone() for norm in norms for value in (norm.running_mean, norm.running_var)],
        "weights": [value.detach().clone() for norm in norms for value in (norm.weight, norm.bias)],
    }


def unchanged(before, after) -> bool:
    return all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("frozen", "statistics", "weights"), [("none", False, False), ("statistics", True, False), ("all", True, True)]
)
@pytest.mark.parametrize("system", ["baseline", "divide"])
def test_what_is_frozen_stays_as_it_was(saved, system, frozen, statistics, weights):
    folder, before = saved
    chosen = {**SHARED, "encoder": str(folder), "freeze_batch_norm": frozen}
    if system == "baseline":
        encoder = train_baseline(IMAGES, BaselineSettings(**chosen)).encoder
    else:
        encoder = train_divided(IMAGES, DivideSettings(learners=2, **chosen)).encoder
        assert isinstance(encoder, SlicedEncoder)
    after = norm_state(encoder)
    assert unchanged(before["statistics"], after["statistics"]) is statistics
    assert unchanged(before["weights"], after["weights"]) is weights


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="freeze_batch_norm is 'some'; wanted one of none, statistics, all"):
        BaselineSettings(freeze_batch_norm="some")
