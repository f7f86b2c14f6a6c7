"""Divide and conquer: who learns from what, that it learns, and that an interrupted run ends as one that was not."""

import numpy as np
import pytest
import torch
from PIL import Image
from pytorch_metric_learning.losses import CircleLoss
from tests.systems.stripes import stripes

from entourage.data.files import ImageFiles
from entourage.encoders import SlicedEncoder, load_encoder, save_encoder
from entourage.encoders.embedding import embed
from entourage.errors import FileError, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.systems.divide_and_conquer import training as divide_and_conquer
from entourage.systems.divide_and_conquer.learners import Learners
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.divide_and_conquer.training import train_divided
from entourage.systems.encoder_training import EncoderTraining, encoder_training
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def vectors(n_classes=16, per_class=10, seed=0) -> Embeddings:
    """Classes around their centres in 6 of 24 dimensions, noise in all of them."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    centres = np.hstack([rng.normal(size=(n_classes, 6)), np.zeros((n_classes, 18))])
    return Embeddings.from_vectors(centres[labels] + 0.6 * rng.normal(size=(len(labels), 24)), labels=labels)


IMAGES, ITEMS = stripes(), vectors()
SETTINGS = {
    "dim": 16,
    "learners": 2,
    "encoder_options": {"width": 4},
    "batch_classes": 4,
    "epochs": 4,
    "validation_share": 0.3,
    "slice_share": 0.75,
    "conquer_share": 0.25,
}
PHASES = {"slice_share": 0.4, "conquer_share": 0.2}
OF_VECTORS = {"encoder": "linear", "encoder_options": {}}


def settings(**changed) -> DivideSettings:
    return DivideSettings(**(SETTINGS | changed))


def state(encoder) -> dict:
    return {name: value.clone() for name, value in encoder.state_dict().items()}


def equal(left, right) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def map_at_r(encoder, items) -> float:
    return mean_average_precision_at_r(Embeddings.from_vectors(embed(encoder, items), labels=items.labels))


# ---- who learns from what ----------------------------------------------------------------------------------------


@pytest.fixture
def followed(monkeypatch):
    """What was done, in order: ("divide", whether first, how), ("whole", whose items), ("learner", which, whose)."""
    done = []
    real_divide, real_loss = Learners.divide, divide_and_conquer._Division.loss

    def divide(self, vectors, rows, seed, *, first, **kmeans):
        done.append(("divide", first, kmeans))
        real_divide(self, vectors, rows, seed, first=first, **kmeans)

    def loss(self, batch):
        owners = set(self.learners.learner_of[np.searchsorted(self.training.rows, batch.rows)].tolist())
        done.append(("learner", self._learner(batch), owners) if self.in_slices else ("whole", owners))
        return real_loss(self, batch)

    monkeypatch.setattr(Learners, "divide", divide)
    monkeypatch.setattr(divide_and_conquer._Division, "loss", loss)
    return done


def test_slices_then_the_whole_on_clusters_then_the_whole_on_everything(followed):
    """Two, two and one epochs; clustered anew before epochs 1 and 3, not before the last."""
    train_divided(ITEMS, settings(epochs=5, validation_share=0.0, **PHASES, **OF_VECTORS))
    kinds = [what[0] for what in followed]
    per_epoch = len(ITEMS) // (4 * 4)
    assert [what[1] for what in followed if what[0] == "divide"] == [True, False]
    assert kinds.index("whole") == len(kinds) - 3 * per_epoch and kinds.count("whole") == 3 * per_epoch
    owners = [what[1] for what in followed if what[0] == "whole"]
    assert all(len(whose) == 1 for whose in owners[: 2 * per_epoch])  # of one cluster each
    assert all(len(whose) == 2 for whose in owners[2 * per_epoch :])


def test_the_starts_and_iterations_of_the_clustering_are_settings(followed):
    train_divided(ITEMS, settings(epochs=1, cluster_starts=3, cluster_iterations=7, **OF_VECTORS))
    assert followed[0] == ("divide", True, {"starts": 3, "iterations": 7})
    assert (DivideSettings().cluster_starts, DivideSettings().cluster_iterations) == (5, 100)


@pytest.mark.parametrize(
    ("changed", "phases"),
    [
        ({"epochs": 200}, (80, 110, 10)),  # the authors' schedule
        ({"epochs": 20}, (8, 11, 1)),
        ({"epochs": 12}, (5, 6, 1)),
        ({"epochs": 3}, (1, 1, 1)),
        ({"epochs": 1}, (0, 1, 0)),
        ({"epochs": 0}, (0, 0, 0)),
        ({"epochs": 5, "slice_share": 0.5, "conquer_share": 0.5}, (3, 0, 2)),
        ({"epochs": 12, "slice_share": 0.0, "conquer_share": 1.0}, (0, 0, 12)),
        ({"epochs": 10, "slice_share": 0.99, "conquer_share": 0.01}, (9, 0, 1)),
        ({"epochs": 10, "slice_share": 0.0, "conquer_share": 0.0}, (0, 10, 0)),
    ],
)
def test_phases_are_in_proportion(changed, phases):
    assert DivideSettings(**changed).phases == phases


def test_in_halves_it_clusters_every_t_epochs_divides_and_then_conquers(followed):
    halves = {"slice_share": 0.6, "conquer_share": 0.4}
    chosen = settings(epochs=5, recluster_every=2, validation_share=0.0, **halves, **OF_VECTORS)
    train_divided(ITEMS, chosen)
    kinds = [kind for kind, *_ in followed]
    assert [what[1] for what in followed if what[0] == "divide"] == [True, False]  # before epochs 1 and 3
    end = kinds.index("whole")
    assert set(kinds[end:]) == {"whole"} and kinds[:end].count("divide") == 2
    assert len(kinds[end:]) == 2 * len(ITEMS) / (4 * 4)  # two epochs of 4 classes by 4


def test_a_batch_is_of_one_cluster_and_goes_to_its_learner(followed):
    train_divided(IMAGES, settings(epochs=2, slice_share=1.0, conquer_share=0.0))
    batches = [what[1:] for what in followed if what[0] == "learner"]
    assert {learner for learner, _ in batches} == {0, 1}
    assert all(owners == {learner} for learner, owners in batches)


def test_one_learners_loss_reaches_its_slice_alone():
    chosen = settings(dim=8, learners=4, **OF_VECTORS)
    with encoder_training(ITEMS, chosen, adapt=lambda encoder: SlicedEncoder(encoder, 4)) as training:
        learners = divide_and_conquer._learners(training, None)
        embeddings = training.encoder(torch.from_numpy(ITEMS.vectors[:40].copy()))
        learners.loss_of(2, embeddings, torch.from_numpy(ITEMS.labels[:40].copy())).backward()
    reached = training.encoder.encoder.projection.weight.grad.abs().sum(dim=1) > 0
    assert reached.tolist() == [False] * 4 + [True] * 2 + [False] * 2


def test_items_that_cannot_be_decoded_stay_where_they_are():
    learners = Learners(6, [torch.nn.Identity()] * 2, torch.nn.Identity())
    learners.assigned.copy_(torch.tensor([0, 0, 1, 1, 1, 0]))
    left_and_right = np.array([[0, 1], [1, 0], [1, 0], [0, 1]], np.float32)
    learners.divide(left_and_right, np.array([0, 2, 3, 5]), 0, first=False)
    assert learners.learner_of.tolist() == [0, 0, 1, 1, 1, 0]  # 1 and 4 were not there, the others are where they were


def test_a_corrupt_picture_is_named_and_the_others_are_divided(tmp_path):
    for number, pixels in enumerate(IMAGES.pixels):
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    (tmp_path / "3.png").write_bytes(b"no picture")
    files = ImageFiles(tmp_path, np.array([f"{number}.png" for number in range(len(IMAGES))]), IMAGES.labels)
    trained = train_divided(files, settings(epochs=1, image_size=16, workers=1, validation_share=0.0))
    assert trained.corrupt == [str(tmp_path / "3.png")]
    for number in range(len(IMAGES)):
        (tmp_path / f"{number}.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="none of the 96 pictures to learn from can be decoded"):
        train_divided(files, settings(epochs=1, image_size=16, workers=1, validation_share=0.0))


def test_every_learner_and_the_whole_have_losses_of_their_own_size():
    chosen = settings(loss="proxy-anchor", learners=4, dim=8, epochs=1, **OF_VECTORS)
    with encoder_training(ITEMS, chosen) as training:
        learners = divide_and_conquer._learners(training, None)
    shapes = [tuple(loss.criterion.proxies.shape) for loss in learners.losses]
    assert shapes == [(training.n_classes, 2)] * 4
    assert tuple(learners.whole.criterion.proxies.shape) == (training.n_classes, 8)


# ---- what comes out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [{}, {"loss_options": {"learn_beta": True}}, {"loss": "ms"}, {"loss": "proxy-anchor"}],
    ids=["margin", "margin, learned boundary", "ms", "proxies"],
)
def test_on_vectors_the_classes_it_learns_from_come_apart(changed):
    untrained, _, _ = train_divided(ITEMS, settings(epochs=0, **OF_VECTORS))
    rates = {"learning_rate": 1e-2, "loss_learning_rate": 0.05}
    encoder, _, _ = train_divided(ITEMS, settings(epochs=12, validation_share=0.0, **rates, **OF_VECTORS, **changed))
    assert isinstance(encoder, SlicedEncoder) and encoder.slices == 2 and not encoder.training
    assert map_at_r(encoder, ITEMS) > map_at_r(untrained, ITEMS) + 0.1


def test_on_pictures_the_classes_it_learns_from_come_apart():
    """On average: which clusters k-means finds makes one seed gain four times as much as another."""
    gains = []
    for seed in range(3):
        untrained, _, _ = train_divided(IMAGES, settings(epochs=0, seed=seed))
        chosen = settings(epochs=16, learning_rate=3e-3, validation_share=0.0, seed=seed)
        encoder, _, _ = train_divided(IMAGES, chosen)
        gains.append(map_at_r(encoder, IMAGES) - map_at_r(untrained, IMAGES))
    assert np.mean(gains) > 0.1 and min(gains) > 0


def test_an_mlp_on_vectors_and_through_a_folder(tmp_path):
    chosen = settings(encoder="mlp", encoder_options={"hidden": [20], "dropout": 0.1}, epochs=2)
    encoder, history, _ = train_divided(ITEMS, chosen)
    assert history.best_score == max(line["score"] for line in history.curve)
    save_encoder(tmp_path / "e", encoder)
    np.testing.assert_array_equal(embed(load_encoder(tmp_path / "e"), ITEMS), embed(encoder, ITEMS))


def test_an_encoder_divided_before_is_divided_anew_or_stays(tmp_path):
    encoder, _, _ = train_divided(ITEMS, settings(epochs=1, **OF_VECTORS))
    save_encoder(tmp_path / "e", encoder)
    for learners in (2, 4):
        again, _, _ = train_divided(ITEMS, settings(encoder=str(tmp_path / "e"), encoder_options={}, learners=learners))
        assert again.slices == learners and not isinstance(again.encoder, SlicedEncoder)


def test_a_loss_object_takes_the_place_of_a_name():
    chosen = settings(epochs=1, slice_share=1.0, conquer_share=0.0, **OF_VECTORS)
    _, by_object, _ = train_divided(ITEMS, chosen, loss=CircleLoss())
    _, by_name, _ = train_divided(ITEMS, chosen)
    assert by_object.curve[1]["loss"] != by_name.curve[1]["loss"]


def test_it_does_not_stop_before_it_has_conquered():
    chosen = settings(epochs=8, patience=1, learning_rate=0.0, **OF_VECTORS)  # no epoch is better than the first
    _, history, _ = train_divided(ITEMS, chosen)
    assert (history.best_epoch, history.epoch) == (0, 7)  # six divided, and as many more as patience allows


@pytest.mark.parametrize(("best", "last"), [(2, 8), (6, 8), (7, 9), (8, 10)])
def test_patience_counts_from_the_end_of_the_division_or_a_later_best(monkeypatch, best, last):
    """Six of twelve epochs divide, patience is 2."""
    scores = (1.0 if epoch == best else 0.5 for epoch in range(13))
    monkeypatch.setattr(EncoderTraining, "score", lambda self: next(scores))
    halves = {"slice_share": 0.5, "conquer_share": 0.5}
    _, history, _ = train_divided(ITEMS, settings(epochs=12, patience=2, **halves, **OF_VECTORS))
    assert (history.best_epoch, history.epoch) == (best, last)


def test_the_result_is_decided_by_data_settings_and_seed():
    ends = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(ends))
        encoder, history, _ = train_divided(ITEMS, settings(seed=seed, **OF_VECTORS))
        ends.append((state(encoder), history.curve))
    assert equal(ends[0][0], ends[1][0]) and ends[0][1] == ends[1][1]
    assert not equal(ends[0][0], ends[2][0])


# ---- interrupted -------------------------------------------------------------------------------------------------


def interrupt_in(epoch):
    def progress(title, done, total):
        if f"(epoch {epoch}/" in title:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("epoch", [1, 3, 4])
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(tmp_path, epoch):
    """Clustered before epochs 1 and 4: a run resumed in 2 or 3 must find the clusters of an earlier state."""
    chosen = {"epochs": 6, "recluster_every": 3, "loss_options": {"learn_beta": True}, "dim": 24, "learners": 3}
    chosen = settings(**chosen, **PHASES, **OF_VECTORS)
    unbroken, wanted, _ = train_divided(ITEMS, chosen, run_folder=tmp_path / "unbroken")
    with pytest.raises(KeyboardInterrupt):
        train_divided(ITEMS, chosen, run_folder=tmp_path / "run", progress=interrupt_in(epoch))
    encoder, history, _ = train_divided(ITEMS, chosen, run_folder=tmp_path / "run", resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))


def test_pictures_are_resumed_alike(tmp_path):
    unbroken, wanted, _ = train_divided(IMAGES, settings(), run_folder=tmp_path / "unbroken")
    with pytest.raises(KeyboardInterrupt):
        train_divided(IMAGES, settings(), run_folder=tmp_path / "run", progress=interrupt_in(2))
    encoder, history, _ = train_divided(IMAGES, settings(), run_folder=tmp_path / "run", resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))


def test_a_run_is_resumed_only_on_its_own_vectors(tmp_path):
    train_divided(ITEMS, settings(epochs=1, **OF_VECTORS), run_folder=tmp_path)
    with pytest.raises(FileError, match="belongs to other data or settings"):
        train_divided(vectors(seed=1), settings(epochs=1, **OF_VECTORS), run_folder=tmp_path, resume=True)


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"learners": 1}, "learners is 1; wanted 2 or more"),
        ({"learners": 3}, "dim is 16, which 3 learners do not divide evenly"),
        ({"recluster_every": 0}, "recluster_every is 0; wanted 1 or more"),
        ({"conquer_share": 1.5}, "conquer_share is 1.5; wanted 0 or more and at most 1"),
        ({"slice_share": -0.1}, "slice_share is -0.1; wanted 0 or more and at most 1"),
        ({"slice_share": 0.8}, "slice_share is 0.8 and conquer_share is 0.25; wanted at most 1 together"),
        ({"cluster_starts": 0}, "cluster_starts is 0; wanted 1 or more"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed, said):
    with pytest.raises(InputError, match=said):
        settings(**changed)


def test_clusters_without_anything_to_tell_apart_are_refused():
    """As many learners as classes far apart: every cluster is one class."""
    items = Embeddings.from_vectors(np.repeat(np.eye(4), 3, axis=0) + 1e-3, labels=np.repeat(np.arange(4), 3))
    chosen = settings(learners=4, validation_share=0.0, dim=64, **OF_VECTORS)
    with pytest.raises(InputError, match=r"no cluster has 2 classes.*use fewer clusters"):
        train_divided(items, chosen)


@pytest.mark.parametrize(
    ("items", "encoder", "said"),
    [
        (ITEMS, "small", "the items are vectors of 24 dimensions; wanted an encoder of vectors: linear or mlp"),
        (IMAGES, "linear", "the encoder linear takes vectors"),
    ],
)
def test_pictures_and_vectors_are_not_confused(items, encoder, said):
    with pytest.raises(InputError, match=said):
        train_divided(items, settings(encoder=encoder, encoder_options={}))
