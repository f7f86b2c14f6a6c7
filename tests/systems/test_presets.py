"""The presets: what the papers print, and that every system trains by one of its own, with a ResNet in miniature."""

import numpy as np
import pytest
import torch
from PIL import Image
from tests.encoders.torchvision_net import net

from entourage.data.arrays import ImageArray
from entourage.data.preprocessing import Preprocessing
from entourage.errors import InputError
from entourage.runs.train_settings import train_settings
from entourage.systems import SYSTEMS
from entourage.systems.encoder_training import encoder_training

pytestmark = pytest.mark.usefixtures("one_thread")

SETS, LOSSES = ("cub", "cars", "sop"), ("ms", "margin", "proxy-anchor")
ALL = [(system, name) for system, chosen in SYSTEMS.items() for name in chosen.presets]
TEACHER = {"student": ["teacher=somewhere"]}


def settings_of(system, name, *pairs):
    return train_settings(system, preset=name, pairs=[*TEACHER.get(system, []), *pairs])


def images(count=6, per_class=3) -> ImageArray:
    """Grey pictures 64 wide and 128 high, of one shade a class, with noise; they become colours for a ResNet."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(count), per_class)
    pixels = np.linspace(0, 200, count)[labels, None, None] + rng.integers(0, 55, (len(labels), 128, 64))
    return ImageArray(pixels.astype(np.uint8), labels)


@pytest.fixture
def resnet(tmp_path) -> str:
    """torchvision's ResNet in small, as a file."""
    torch.save(net().state_dict(), tmp_path / "resnet.pth")
    return str(tmp_path / "resnet.pth")


# ---- what they say -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("system", "name"), ALL)
def test_every_preset_makes_settings_that_train_on_all_classes(system, name):
    settings = settings_of(system, name)
    assert settings.validation_share == 0 and settings.encoder == "timm/resnet50.tv_in1k"


def test_there_is_one_for_every_printed_row():
    assert {system: sorted(chosen.presets) for system, chosen in SYSTEMS.items()} == {
        "baseline": sorted(
            [*(f"{name}-{loss}" for name in SETS for loss in LOSSES), "market1501-margin-128", "sop-margin-128"]
        ),
        "cross-image": ["cars", "cub", "sop"],
        "divide": ["in_shop", "market1501", "sop"],
        "intra-batch": sorted(f"{name}{size}" for name in (*SETS, "in_shop") for size in ("", "-large")),
        "student": ["cars", "cub"],
    }


@pytest.mark.parametrize(
    ("system", "name", "resize", "crop"),
    [
        ("baseline", "cub-ms", (256, 256), 224),  # Attend to Context, supplement A
        ("baseline", "sop-proxy-anchor", (256, 256), 224),
        ("intra-batch", "cars", (256, 256), 227),  # Intra-Batch Connections, 4.1
        ("intra-batch", "sop-large", (288, 288), 256),  # and B
        ("student", "cub", (256, 256), 227),
        ("divide", "sop", 256, 224),
        ("divide", "market1501", (256, 128), None),
    ],
)
def test_pictures_are_cropped_exactly_as_printed(system, name, resize, crop, resnet):
    settings = settings_of(system, name, f"encoder={resnet}")
    with encoder_training(images(), settings) as training:
        prepared = training.encoder.preprocessing
    assert (prepared.resize, prepared.crop, prepared.resample) == (resize, crop, "bilinear")
    assert (prepared.mean, prepared.std) == (Preprocessing().mean, Preprocessing().std)
    assert training.encoder.dim == settings.dim


def test_nothing_is_cut_off_a_person(resnet):
    """Head and feet, the first and the last rows, reach the encoder in the test and in training."""
    pixels = np.zeros((128, 64, 3), np.uint8)
    pixels[:8] = pixels[-8:] = 255
    with encoder_training(images(), settings_of("divide", "market1501", f"encoder={resnet}")) as training:
        prepare = training.encoder.preprocessing
    for rng in (None, *map(np.random.default_rng, range(4))):
        seen = prepare(Image.fromarray(pixels), rng)
        assert seen.shape == (3, 256, 128)
        assert seen[:, :12].mean() > 2 and seen[:, -12:].mean() > 2 and seen[:, 20:-20].mean() < 0


def test_the_recipes_of_the_losses():
    """As their authors' code has them; see systems/presets.py."""
    ms, margin, proxies = (settings_of("baseline", f"cub-{loss}") for loss in LOSSES)
    assert ms.loss_options == {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1}
    assert (ms.batch_classes, ms.batch_per_class, ms.learning_rate, ms.weight_decay) == (16, 5, 3e-5, 5e-4)
    assert (ms.freeze_batch_norm, ms.epochs, ms.step_after, ms.step_factor) == ("statistics", 41, (16, 33), 0.1)
    assert (margin.loss_options, margin.batch_classes) == ({"margin": 0.2, "beta": 1.2}, 24)
    assert (proxies.optimizer, proxies.learning_rate, proxies.loss_learning_rate) == ("adamw", 1e-4, 1e-2)
    assert (proxies.freeze_batch_norm, proxies.head_epochs, proxies.step_factor) == ("all", 5, 0.5)
    assert (proxies.step_after[:2], proxies.step_after[-1], proxies.epochs) == ((5, 10), 55, 60)
    assert proxies.encoder_options == {"pooling": "average+max"}
    sop = settings_of("baseline", "sop-proxy-anchor")
    assert (sop.step_after, sop.step_factor, sop.learning_rate, sop.freeze_batch_norm) == ((20, 40), 0.25, 6e-4, "none")


def test_divide_is_as_its_authors_ran_it():
    s = settings_of("divide", "sop")
    assert s.phases == (80, 110, 10) and (s.learners, s.dim, s.recluster_every) == (8, 128, 2)
    assert (s.batch_classes, s.batch_per_class, s.learning_rate, s.weight_decay) == (20, 4, 1e-5, 1e-4)
    assert (s.freeze_batch_norm, s.cluster_starts, s.cluster_iterations) == ("statistics", 5, 100)


def test_a_student_asks_for_its_teacher():
    with pytest.raises(InputError, match="teacher is empty"):
        train_settings("student", preset="cub")


# ---- that they train ---------------------------------------------------------------------------------------------

SMALLER = ["dim=16", "image_size=32", "epochs=2", "batch_classes=3", "batch_per_class=2", "learning_rate=1e-3"]


@pytest.mark.filterwarnings("ignore:the encoder's feature map has")
@pytest.mark.parametrize(
    ("system", "name", "more"),
    [
        ("baseline", "cub-ms", []),
        ("baseline", "cars-margin", []),
        ("baseline", "sop-proxy-anchor", []),
        ("cross-image", "cub", ["blocks=1"]),
        ("divide", "market1501", ["learners=2"]),
        ("divide", "sop", ["learners=2"]),
        ("intra-batch", "cub-large", []),
    ],
)
def test_a_preset_trains_a_resnet_in_miniature(system, name, more, resnet, tmp_path):
    settings = settings_of(system, name, f"encoder={resnet}", *SMALLER, *more)
    trained = SYSTEMS[system].train(images(), settings, run_folder=tmp_path / "run")
    assert trained.history.best_epoch == 2 and trained.encoder.dim == 16
