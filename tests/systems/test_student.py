"""A student learns what its teacher's network makes of the same batches, without labels."""

import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.systems.test_baseline import IMAGES, SETTINGS, equal, interrupt_in, map_at_r, state, stripes

from entourage.encoders import load_encoder, save_encoder
from entourage.errors import FileError, InputError, ModelError
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.intra_batch import student as student_module
from entourage.systems.intra_batch.saving import load_network
from entourage.systems.intra_batch.settings import DISTILLATIONS, IntraBatchSettings, StudentSettings
from entourage.systems.intra_batch.student import train_student
from entourage.systems.intra_batch.training import train_intra_batch

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory, one_thread):
    """A run folder: the encoder and the network, trained for a while."""
    folder = tmp_path_factory.mktemp("runs") / "teacher"
    chosen = IntraBatchSettings(**(SETTINGS | {"epochs": 20, "learning_rate": 3e-3, "validation_share": 0.0}))
    encoder, _, _ = train_intra_batch(IMAGES, chosen, run_folder=folder)
    save_encoder(folder / "encoder", encoder)
    return folder


def settings(teacher, **changed) -> StudentSettings:
    return StudentSettings(teacher=str(teacher), **(SETTINGS | {"validation_share": 0.0} | changed))


@pytest.mark.parametrize("distillation", DISTILLATIONS)
def test_it_learns_from_every_kind_of_lesson(teacher, distillation):
    chosen = settings(teacher, distillation=distillation, epochs=40, learning_rate=3e-3)
    untrained, _, _ = train_student(IMAGES, settings(teacher, epochs=0))
    encoder, history, _ = train_student(IMAGES, chosen)
    losses = [point["loss"] for point in history.curve[1:]]
    assert losses[-1] < 0.8 * losses[0]
    assert map_at_r(encoder) > map_at_r(untrained)


@pytest.mark.parametrize(
    ("distillation", "loss", "lesson"),
    [
        ("class-probabilities", "class_probability_loss", lambda trained, h: trained.head(h) / trained.temperature),
        ("features", "feature_loss", lambda _, h: h),
        ("relations", "relation_loss", lambda _, h: h),
    ],
)
def test_the_lesson_is_what_the_network_makes_of_the_teachers_embeddings(
    teacher, monkeypatch, distillation, loss, lesson
):
    embedded, taught, plain = [], [], getattr(student_module, loss)

    def observed_encoder(folder):
        encoder = load_encoder(folder)
        encoder.register_forward_hook(lambda module, pictures, vectors: embedded.append(vectors))
        return encoder

    def observed_loss(student, of_teacher, *options):
        taught.append(of_teacher)
        return plain(student, of_teacher, *options)

    monkeypatch.setattr(student_module, "load_encoder", observed_encoder)
    monkeypatch.setattr(student_module, loss, observed_loss)
    train_student(IMAGES, settings(teacher, distillation=distillation, epochs=1))
    trained = load_network(teacher)
    trained.head.eval()
    network = trained.network.eval()
    assert embedded
    for vectors, said in zip(embedded, taught, strict=True):
        torch.testing.assert_close(said, lesson(trained, network(vectors)))


def test_labels_are_for_drawing_batches_only(teacher, monkeypatch):
    def no_codes(*_):
        raise AssertionError("the loss of a student asked for labels")

    monkeypatch.setattr(EncoderTraining, "codes_of", no_codes)
    _, history, _ = train_student(IMAGES, settings(teacher, epochs=1))
    assert history.epoch == 1


def test_the_teacher_stays_as_it_is_and_an_interrupted_student_goes_on(teacher, tmp_path):
    before = {path.name: path.read_bytes() for path in teacher.rglob("*") if path.is_file()}
    unbroken, wanted, _ = train_student(IMAGES, settings(teacher))
    with pytest.raises(KeyboardInterrupt):
        train_student(IMAGES, settings(teacher), run_folder=tmp_path / "run", progress=interrupt_in(2))
    encoder, history, _ = train_student(IMAGES, settings(teacher), run_folder=tmp_path / "run", resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))
    assert {path.name: path.read_bytes() for path in teacher.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("other", ["encoder", "network"])
def test_a_student_is_resumed_only_with_the_teacher_it_began_with(teacher, tmp_path, other):
    shutil.copytree(teacher, tmp_path / "teacher")
    chosen = settings(tmp_path / "teacher", epochs=1)
    _, history, _ = train_student(IMAGES, chosen, run_folder=tmp_path / "run")
    assert train_student(IMAGES, chosen, run_folder=tmp_path / "run", resume=True)[1] == history
    weights = tmp_path / "teacher" / other / "model.safetensors"
    save_file({name: value + 1 for name, value in load_file(weights).items()}, weights)
    with pytest.raises(FileError, match="began with other weights"):
        train_student(IMAGES, chosen, run_folder=tmp_path / "run", resume=True)


def test_a_smaller_student_can_learn_classes_and_relations(teacher):
    for distillation in ("class-probabilities", "relations"):
        encoder, _, _ = train_student(IMAGES, settings(teacher, dim=6, distillation=distillation, epochs=1))
        assert encoder(torch.rand(2, 16, 16)).shape == (2, 6)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dim": 6, "distillation": "features"}, "the student has 6 dimensions and its teacher 16.*set dim = 16"),
        ({"image_size": 8}, r"another way than the student, with resize = None where the student has \[8, 8\]"),
        ({"encoder": "small-rgb"}, "another way than the student, with channels = 1 where the student has 3; wanted"),
        ({"validation_share": 0.3}, r"was trained on 4 of the 4 classes held out to choose the epoch"),
    ],
)
def test_a_student_that_does_not_fit_its_teacher_is_refused(teacher, changed, said):
    with pytest.raises(InputError, match=said):
        train_student(IMAGES, settings(teacher, **changed))


def test_a_teacher_that_is_none_is_refused(tmp_path):
    with pytest.raises(ModelError, match="has no network in it"):
        train_student(stripes(), settings(tmp_path))
    with pytest.raises(InputError, match="teacher is empty; wanted the folder of a run"):
        StudentSettings()
    with pytest.raises(
        InputError, match="distillation is 'all'; wanted one of class-probabilities, features, relations"
    ):
        settings(tmp_path, distillation="all")
    with pytest.raises(InputError, match="distillation_temperature is 0"):
        replace(settings(tmp_path), distillation_temperature=0.0)
