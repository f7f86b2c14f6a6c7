"""The baseline system: it learns, it keeps the best epoch, and an interrupted run ends as one that was not."""

import json

import numpy as np
import pytest
import torch
from pytorch_metric_learning.losses import CircleLoss
from tests.systems.stripes import stripes

from entourage.data.arrays import ImageArray
from entourage.encoders import save_encoder
from entourage.errors import EntourageWarning, FileError, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.stores.filenames import CHECKPOINT, LOG
from entourage.systems import encoder_training
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.training.sampling import hold_out_classes
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


IMAGES = stripes()
SETTINGS = {"dim": 16, "encoder_options": {"width": 4}, "batch_classes": 4, "epochs": 3, "validation_share": 0.3}


def settings(**changed) -> BaselineSettings:
    return BaselineSettings(**(SETTINGS | changed))


def state(encoder) -> dict:
    return {name: value.clone() for name, value in encoder.state_dict().items()}


def equal(left, right) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def map_at_r(encoder, images=IMAGES) -> float:
    vectors = encoder.eval()(torch.from_numpy(images.pixels / np.float32(255))).detach().numpy()
    return mean_average_precision_at_r(Embeddings.from_vectors(vectors, labels=images.labels))


@pytest.mark.parametrize("loss", ["ms", "margin", "proxy-anchor"])
def test_the_classes_it_learns_from_come_apart(loss):
    chosen = settings(loss=loss, epochs=20, learning_rate=3e-3, loss_learning_rate=0.03, validation_share=0.0)
    untrained, _, _ = train_baseline(IMAGES, settings(epochs=0))
    encoder, _, _ = train_baseline(IMAGES, chosen)
    assert map_at_r(encoder) > map_at_r(untrained) + 0.1
    vectors = encoder(torch.rand(3, 16, 16))
    assert vectors.shape == (3, 16)
    assert vectors.norm(dim=1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)
    assert not encoder.training


def test_the_weights_of_the_best_epoch_are_kept():
    encoder, history, _ = train_baseline(IMAGES, settings(epochs=4))
    assert history.best_score == max(point["score"] for point in history.curve)
    held_out = hold_out_classes(IMAGES.labels, 0.3, seed=0)
    kept = map_at_r(encoder, ImageArray(IMAGES.pixels[held_out], IMAGES.labels[held_out]))
    assert kept == pytest.approx(history.best_score, abs=1e-6)


def test_an_encoder_that_training_did_not_improve_is_warned_of(monkeypatch):
    scores = iter([0.5, 0.4, 0.5])
    monkeypatch.setattr(encoder_training.EncoderTraining, "score", lambda self: next(scores))
    with pytest.warns(
        EntourageWarning, match=r"no epoch \(of 2\) did better .* \(MAP@R 50.00 %\), so its initial weights are kept"
    ):
        _, history, _ = train_baseline(IMAGES, settings(epochs=2))
    assert history.best_epoch == 0


@pytest.mark.filterwarnings("error::entourage.errors.EntourageWarning")
@pytest.mark.parametrize(
    "changed", [{"epochs": 0}, {"epochs": 1, "validation_share": 0.0}], ids=["no epochs", "no score"]
)
def test_an_encoder_that_was_not_to_be_trained_or_judged_is_not_warned_of(changed):
    train_baseline(IMAGES, settings(**changed))


def test_the_result_is_decided_by_data_settings_and_seed():
    ends = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(ends))
        encoder, history, _ = train_baseline(IMAGES, settings(seed=seed, loss="margin", epochs=2))
        ends.append((state(encoder), history.curve))
    assert equal(ends[0][0], ends[1][0]) and ends[0][1] == ends[1][1]
    assert not equal(ends[0][0], ends[2][0])


def test_classes_held_out_never_train(monkeypatch):
    """The score is that of classes which no batch holds."""
    trained, scored = set(), set()
    real_batches, real_score = encoder_training.class_balanced_batches, encoder_training.mean_average_precision_at_r

    def batches(codes, *args, **kwargs):
        drawn = real_batches(codes, *args, **kwargs)
        trained.update(codes[drawn].ravel().tolist())
        return drawn

    def score(items):
        scored.update(items.labels.tolist())
        return real_score(items)

    monkeypatch.setattr(encoder_training, "class_balanced_batches", batches)
    monkeypatch.setattr(encoder_training, "mean_average_precision_at_r", score)
    train_baseline(IMAGES, settings())
    assert len(scored) == 4 and trained == set(range(8))  # 30 % of 12 held out; the others as codes 0..7


def test_without_held_out_classes_the_last_epoch_is_kept():
    _, history, _ = train_baseline(IMAGES, settings(validation_share=0.0, epochs=2))
    assert (history.best_epoch, history.best_score) == (2, None)


def test_a_loss_object_takes_the_place_of_a_name():
    _, by_object, _ = train_baseline(IMAGES, settings(epochs=1), loss=CircleLoss())
    _, by_name, _ = train_baseline(IMAGES, settings(epochs=1))
    assert by_object.curve[1]["loss"] != by_name.curve[1]["loss"]


@pytest.mark.parametrize(("given", "used"), [(None, [0.001, 0.1]), (0.02, [0.001, 0.02])])
def test_what_the_loss_learns_has_its_own_learning_rate(tmp_path, given, used):
    chosen = settings(loss="proxy-anchor", epochs=1, loss_learning_rate=given, scheduler="cosine")
    train_baseline(IMAGES, chosen, run_folder=tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    assert lines[1]["learning_rates"] == pytest.approx(used)


# ---- interrupted -------------------------------------------------------------------------------------------------


def interrupt_in(epoch):
    def progress(title, done, total):
        if f"(epoch {epoch}/" in title:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    "changed",
    [{}, {"loss": "margin", "loss_options": {"learn_beta": True}}, {"loss": "proxy-anchor", "scheduler": "cosine"}],
    ids=["ms", "margin, mined, learned boundary", "proxies, schedule"],
)
@pytest.mark.parametrize("epoch", [1, 3])
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(tmp_path, changed, epoch):
    chosen = settings(epochs=4, clip=1.0, **changed)
    unbroken, wanted, _ = train_baseline(IMAGES, chosen, run_folder=tmp_path / "unbroken")
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_baseline(IMAGES, chosen, run_folder=folder, progress=interrupt_in(epoch))
    assert sorted(path.name for path in folder.iterdir()) == [CHECKPOINT, LOG]
    encoder, history, _ = train_baseline(IMAGES, chosen, run_folder=folder, resume=True)
    assert history == wanted
    assert equal(state(encoder), state(unbroken))
    logs = [(tmp_path / name / LOG).read_text().splitlines() for name in ("run", "unbroken")]
    assert [json.loads(line)["epoch"] for line in logs[0]] == [json.loads(line)["epoch"] for line in logs[1]]


def test_a_folder_with_a_run_is_not_overwritten_by_accident(tmp_path):
    train_baseline(IMAGES, settings(epochs=1), run_folder=tmp_path)
    before = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(FileError, match=r"holds a run already; resume it"):
        train_baseline(IMAGES, settings(epochs=1), run_folder=tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == before


@pytest.mark.parametrize("other", ["settings", "data", "loss"])
def test_a_run_is_resumed_only_with_its_own_data_and_settings(tmp_path, other):
    train_baseline(IMAGES, settings(epochs=1), run_folder=tmp_path)
    images = stripes(seed=1) if other == "data" else IMAGES
    loss = CircleLoss() if other == "loss" else None
    chosen = settings(epochs=1, learning_rate=0.1 if other == "settings" else 1e-3)
    with pytest.raises(FileError, match="belongs to other data or settings"):
        train_baseline(images, chosen, loss=loss, run_folder=tmp_path, resume=True)


def test_a_run_is_resumed_only_from_the_encoder_it_began_with(tmp_path):
    """Another encoder at the same path; both of the same shape."""
    first, other = (train_baseline(IMAGES, settings(epochs=0, seed=seed))[0] for seed in (0, 1))
    start = tmp_path / "start"
    save_encoder(start, first)
    chosen = settings(epochs=1, encoder=str(start), encoder_options={})
    _, history, _ = train_baseline(IMAGES, chosen, run_folder=tmp_path / "run")
    assert train_baseline(IMAGES, chosen, run_folder=tmp_path / "run", resume=True)[1] == history
    save_encoder(start, other, overwrite=True)
    with pytest.raises(FileError, match="began with other weights"):
        train_baseline(IMAGES, chosen, run_folder=tmp_path / "run", resume=True)


def test_what_a_saved_encoder_cannot_be_is_refused(tmp_path):
    encoder, _, _ = train_baseline(IMAGES, settings(epochs=0, image_size=16))
    save_encoder(tmp_path / "e", encoder)
    chosen = {"epochs": 0, "encoder": str(tmp_path / "e"), "encoder_options": {}}
    assert train_baseline(IMAGES, settings(**chosen, image_size=16))[0].dim == 16  # its own
    assert train_baseline(IMAGES, BaselineSettings(**chosen))[0].dim == 16  # nothing asked for
    with pytest.raises(InputError, match=r"dim is 8 but .* is an encoder of 16 dimensions; set dim = 16"):
        train_baseline(IMAGES, settings(**chosen, dim=8))
    with pytest.raises(
        InputError, match=r"image_size is 20 but .* a size of its own, \(16, 16\); leave image_size out"
    ):
        train_baseline(IMAGES, settings(**chosen, image_size=20))


def test_a_run_is_resumed_with_another_number_of_workers(tmp_path):
    _, history, _ = train_baseline(IMAGES, settings(epochs=1), run_folder=tmp_path)
    assert train_baseline(IMAGES, settings(epochs=1, workers=2), run_folder=tmp_path, resume=True)[1] == history


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"loss": "softmax"}, "the loss is 'softmax'; wanted one of contrastive"),
        ({"loss_options": {"margin": 1}}, "unknown option 'margin' of the loss ms"),
        ({"scheduler": "linear"}, "the scheduler is 'linear'"),
        ({"device": "gpu"}, "the device is 'gpu'; wanted auto"),
        ({"learning_rate": 1e30}, "lower the learning rate"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed, said):
    with pytest.raises(InputError, match=said):
        train_baseline(IMAGES, settings(**changed))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="finds no CUDA here; use cpu or auto"):
        train_baseline(IMAGES, settings(device="cuda"))


def test_classes_with_one_picture_only_are_refused():
    with pytest.raises(InputError, match="0 classes with two or more items"):
        train_baseline(ImageArray(IMAGES.pixels[:5], np.arange(5)), settings())


def test_a_class_with_one_picture_among_others_is_left_alone():
    images = ImageArray(np.concatenate([IMAGES.pixels, IMAGES.pixels[:1]]), np.append(IMAGES.labels, 99))
    _, history, _ = train_baseline(images, settings(epochs=1, loss="proxy-anchor"))
    assert history.epoch == 1


def test_resuming_needs_a_folder():
    with pytest.raises(InputError, match="without a run folder"):
        train_baseline(IMAGES, settings(), resume=True)


def test_an_encoder_without_anything_to_train_is_refused(monkeypatch):
    real = encoder_training.new_encoder
    monkeypatch.setattr(encoder_training, "new_encoder", lambda *given: real(*given).requires_grad_(False))
    with pytest.raises(InputError, match="every weight of the encoder is frozen"):
        train_baseline(IMAGES, settings())
