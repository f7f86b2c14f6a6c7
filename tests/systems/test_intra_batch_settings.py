"""Settings of the intra-batch system: what is refused, and what a preset decides."""

import pytest

from entourage.errors import InputError
from entourage.runtime.config import from_toml
from entourage.systems.intra_batch.settings import IntraBatchSettings
from entourage.systems.presets import INTRA_BATCH as PRESETS


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps": 0}, "steps is 0; wanted 1 or more"),
        ({"heads": 0}, "heads is 0; wanted 1 or more"),
        ({"feed_forward": 0}, "feed_forward is 0; wanted 1 or more"),
        ({"dropout": 1.0}, "dropout is 1.0; wanted 0 or more and less than 1"),
        ({"label_smoothing": -0.1}, "label_smoothing is -0.1; wanted 0 or more and less than 1"),
        ({"temperature": 0.0}, "temperature is 0.0; wanted more than 0"),
        ({"network_weight": -1.0}, "network_weight is -1.0; wanted 0 or more"),
        ({"network_weight": 0.0, "auxiliary_weight": 0.0}, "are both 0; wanted one of them above 0"),
        ({"class_columns": "some"}, "class_columns is 'some'; wanted one of all, batch"),
        ({"auxiliary_head": "none"}, "auxiliary_head is 'none'; wanted one of linear, neck"),
        ({"batch_classes": 1}, "batch_classes is 1; wanted 2 or more"),
    ],
)
def test_what_cannot_be_trained_is_refused(changed, said):
    with pytest.raises(InputError, match=said):
        IntraBatchSettings(**changed)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_makes_settings(name):
    settings = from_toml(IntraBatchSettings, preset=PRESETS[name])
    assert (settings.dim, settings.epochs, settings.step_after) == (512, 70, (30, 50))
    assert settings.encoder_options == {"pooling": "max"}


@pytest.mark.parametrize(
    ("name", "batch", "steps", "heads", "rate", "decay", "temperature"),
    [
        ("cub", (6, 9), 1, 2, 1.56e-4, 6.1e-6, 0.2),
        ("cars", (10, 7), 2, 8, 3.67e-4, 2.6e-9, 0.111),
        ("sop", (15, 6), 1, 8, 2.47e-4, 2.8e-13, 0.605),
        ("in_shop", (14, 4), 1, 4, 1.13e-4, 1.1e-7, 0.186),
    ],
)
def test_presets_are_the_authors_settings(name, batch, steps, heads, rate, decay, temperature):
    """As their configurations have them."""
    s = from_toml(IntraBatchSettings, preset=PRESETS[name])
    assert (s.batch_classes, s.batch_per_class) == batch
    assert (s.steps, s.heads) == (steps, heads)
    assert (s.learning_rate, s.weight_decay, s.temperature) == (rate, decay, temperature)


def test_a_file_wins_over_the_preset_and_flags_over_the_file(tmp_path):
    (tmp_path / "run.toml").write_text("steps = 3\nheads = 4\n[encoder_options]\nfreeze_batch_norm = true\n")
    chosen = from_toml(IntraBatchSettings, tmp_path / "run.toml", {"heads": 16}, preset=PRESETS["cub"])
    assert (chosen.temperature, chosen.steps, chosen.heads) == (0.2, 3, 16)
    assert chosen.encoder_options == {"pooling": "max", "freeze_batch_norm": True}
    assert "freeze_batch_norm" not in PRESETS["cub"]["encoder_options"]
