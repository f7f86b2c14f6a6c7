"""The baseline system on pictures in files: decoded, augmented, some of them corrupt."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from entourage.data.files import ImageFiles
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import load_encoder, save_encoder
from entourage.errors import CorruptImage, FileError, InputError
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.encoder_training import encoder_training
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = {
    "encoder": "small-rgb",
    "encoder_options": {"width": 4},
    "image_size": 16,
    "dim": 8,
    "batch_classes": 3,
    "batch_per_class": 2,
    "epochs": 2,
    "workers": 2,
}
COPIES = {"batch_per_class": 6, "preprocessing": {"random_crop": True, "flip": True}}


def settings(**changed) -> BaselineSettings:
    return BaselineSettings(**(SETTINGS | changed))


@pytest.fixture
def files(tmp_path) -> ImageFiles:
    """Six classes of four colour pictures of various sizes."""
    rng = np.random.default_rng(0)
    colours, labels = rng.integers(0, 255, (6, 3)), np.repeat(np.arange(6), 4)
    names = [f"{number}.png" for number in range(24)]
    for number, (name, label) in enumerate(zip(names, labels, strict=True)):
        noise = rng.normal(0, 30, (18 + number % 3, 20, 3))
        Image.fromarray(np.clip(colours[label] + noise, 0, 255).astype(np.uint8)).save(tmp_path / name)
    return ImageFiles(tmp_path, np.array(names), np.array([f"class {label}" for label in labels]))


def state(encoder) -> list[torch.Tensor]:
    return [value.clone() for value in encoder.state_dict().values()]


def equal(left, right) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_files_are_trained_on_whatever_the_number_of_threads(files):
    (first, history, _), (second, _, _) = (train_baseline(files, settings(workers=workers)) for workers in (1, 3))
    assert equal(state(first), state(second))
    assert history.epoch == 2 and history.best_score == max(line["score"] for line in history.curve)
    assert first(torch.rand(2, 3, 16, 16)).shape == (2, 8)


@pytest.mark.parametrize("changed", [{}, COPIES], ids=["as they are", "augmented copies"])
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(files, tmp_path, changed):
    def interrupt(title, done, total):
        if "(epoch 2/" in title:
            raise KeyboardInterrupt

    chosen = settings(**changed)
    unbroken, wanted, _ = train_baseline(files, chosen)
    with pytest.raises(KeyboardInterrupt):
        train_baseline(files, chosen, run_folder=tmp_path / "run", progress=interrupt)
    encoder, history, _ = train_baseline(files, chosen, run_folder=tmp_path / "run", resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))


def test_copies_of_a_picture_in_a_batch_are_augmented_each_in_its_own_way(files):
    """Six are wanted of classes of four: some are drawn twice."""
    with encoder_training(files, settings(**COPIES)) as training:
        (first, *_), (again, *_), (other, *_) = (list(training.batches(epoch)) for epoch in (1, 1, 2))
    assert len(set(first.rows.tolist())) < len(first) == 18, "precondition: there are copies"
    assert len(first.pictures.flatten(1).unique(dim=0)) == 18
    assert torch.equal(first.pictures, again.pictures) and first.rows.tolist() == again.rows.tolist()
    assert not torch.equal(first.pictures, other.pictures)


def test_pictures_are_prepared_as_the_settings_say(files):
    chosen = {"preprocessing": {"resize": [20, 12], "crop": "none", "random_crop": False, "flip": True}}
    for size, seen in ((None, (20, 12)), (6, (10, 6))):
        with encoder_training(files, settings(image_size=size, **chosen)) as training:
            batch = next(iter(training.batches(1)))
        assert batch.pictures.shape == (6, 3, *seen)
        assert training.encoder.preprocessing == replace(Preprocessing.small(seen, 3), flip=True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"corp": 8}, "unknown field 'corp' of preprocessing"),
        ({"flip": "no"}, "flip is 'no'; wanted"),
        ({"crop": -3}, "crop is -3; wanted 1 to 8,192 pixels"),
        ({"channels": 1}, "pictures get 1 channels and the encoder takes 3"),
    ],
)
def test_preprocessing_that_cannot_be_is_refused(files, changed, said):
    with pytest.raises(InputError, match=said):
        train_baseline(files, settings(preprocessing=changed))


def test_vectors_are_not_preprocessed():
    items = Embeddings.from_vectors(np.eye(8), labels=np.repeat(np.arange(4), 2))
    with pytest.raises(InputError, match="the encoder takes vectors, which are taken as they are"):
        train_baseline(items, BaselineSettings(preprocessing={"flip": True}))


def test_a_run_is_not_resumed_with_other_boxes(files, tmp_path):
    boxes = np.tile([0, 0, 12, 12], (len(files), 1))
    train_baseline(replace(files, boxes=boxes), settings(epochs=1), run_folder=tmp_path / "run")
    with pytest.raises(FileError, match="belongs to other data or settings"):
        train_baseline(replace(files, boxes=boxes + 4), settings(epochs=1), run_folder=tmp_path / "run", resume=True)


def test_a_corrupt_picture_is_left_out_and_reported_once_or_refused(files):
    files.path(5).write_bytes(b"no picture")
    _, history, corrupt = train_baseline(files, settings(validation_share=0.0))
    assert history.epoch == 2
    assert [str(path) for path in corrupt] == [str(files.path(5))]
    with pytest.raises(CorruptImage, match=r"5\.png"):
        train_baseline(files, settings(validation_share=0.0), strict=True)


def test_training_goes_on_from_a_saved_encoder(files, tmp_path):
    encoder, _, _ = train_baseline(files, settings())
    save_encoder(tmp_path / "saved", encoder)
    chosen = {"encoder": str(tmp_path / "saved"), "encoder_options": {}, "image_size": None}
    same, _, _ = train_baseline(files, settings(**chosen, epochs=0))
    assert equal(state(same), state(load_encoder(tmp_path / "saved")))
    further, _, _ = train_baseline(files, settings(**chosen, epochs=1, validation_share=0.0, loss="proxy-anchor"))
    assert not equal(state(further), state(same))


def test_an_option_the_encoder_does_not_have_is_refused(files):
    with pytest.raises(InputError, match="unknown option 'depth' of the encoder small-rgb"):
        train_baseline(files, settings(encoder_options={"depth": 3}))
