"""Vectors of another encoder are known by which dimensions are large; other classes of the same encoder never are."""

import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from entourage.cli import app
from entourage.errors import EntourageWarning, ModelError
from entourage.refiner import ContextRefiner, PaperRefiner, encoder_profile, load_refiner
from entourage.refiner.encoder_profile import learn_profile
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

DIM = 96


def encoded(classes: int, seed: int, encoder: int | None = 0, per_class=15) -> tuple[np.ndarray, np.ndarray]:
    """Items of some classes, whose dimensions are as large as the encoder has them; None: all alike."""
    rng = np.random.default_rng(seed)
    scales = np.ones(DIM) if encoder is None else np.exp(np.random.default_rng(1000 + encoder).normal(size=DIM))
    labels = np.repeat(np.arange(classes), per_class)
    return (rng.normal(size=(classes, DIM))[labels] + 0.7 * rng.normal(size=(len(labels), DIM))) * scales, labels


def warned(call) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [str(each.message).split(" look as if")[0] for each in seen if "another encoder" in str(each.message)]


@pytest.fixture(scope="module", params=["relational", "paper"])
def refiner(request):
    make = ContextRefiner() if request.param == "relational" else PaperRefiner(n_neighbors=5, n_blocks=2, epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EntourageWarning)
        return make.fit(*encoded(24, seed=1))


@pytest.fixture(scope="module")
def own():
    return encoded(10, seed=2)[0].astype(np.float32)


@pytest.fixture(scope="module")
def foreign():
    return encoded(10, seed=2, encoder=1)[0].astype(np.float32)


def test_the_profile_is_the_mean_square_of_each_dimension(refiner):
    X, _ = encoded(24, seed=1)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(refiner.encoder_profile_, (unit**2).mean(axis=0), rtol=1e-4)


def test_every_call_tells_which_vectors_are_of_another_encoder(refiner, own, foreign):
    assert warned(lambda: refiner.transform(foreign, context=foreign)) == ["the vectors"]
    assert warned(lambda: refiner.transform(foreign)) == ["the vectors"]
    assert warned(lambda: refiner.transform(own, context=foreign)) == ["the context"]
    assert warned(lambda: refiner.transform_both(foreign, own)) == ["the queries"]
    assert warned(lambda: refiner.transform_both(own, foreign)) == ["the gallery"]
    assert warned(lambda: refiner.serve(foreign)) == ["the gallery"]
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(DIM, DIM)))[0]
    assert warned(lambda: refiner.transform(own @ rotation, context=own)) == ["the vectors"]


def test_other_classes_of_the_same_encoder_are_not_suspected(refiner, own):
    for vectors in (own, 100 * own, own[::-1], encoded(1, seed=5, per_class=120)[0]):
        assert warned(lambda given=vectors: refiner.transform(given, context=own)) == []
    assert warned(lambda: refiner.serve(own)) == warned(lambda: refiner.transform(own)) == []


def test_of_few_vectors_nothing_is_said(refiner, own, foreign):
    few = foreign[: encoder_profile.LEAST_ITEMS - 1]
    assert warned(lambda: refiner.transform(few, context=own)) == []


def test_the_profile_is_saved_and_models_without_one_are_not_checked(refiner, foreign, tmp_path):
    refiner.save(tmp_path / "model")
    loaded = load_refiner(tmp_path / "model")
    np.testing.assert_array_equal(loaded.encoder_profile_, refiner.encoder_profile_)
    assert warned(lambda: loaded.transform(foreign, context=foreign)) == ["the vectors"]
    weights = tmp_path / "model" / "model.safetensors"
    arrays = load_file(weights)
    del arrays["encoder_profile"]
    save_file(arrays, weights)
    older = load_refiner(tmp_path / "model")
    assert older.encoder_profile_ is None
    assert warned(lambda: older.transform(foreign, context=foreign)) == []


@pytest.mark.parametrize(
    "profile", [np.ones(DIM + 1, np.float32), np.ones(DIM, np.int32), -np.ones(DIM), np.zeros(DIM)]
)
def test_a_damaged_profile_is_refused(refiner, tmp_path, profile):
    refiner.save(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    save_file(load_file(weights) | {"encoder_profile": profile}, weights)
    with pytest.raises(ModelError, match="the encoder's profile"):
        load_refiner(tmp_path / "model")


def test_where_classes_of_one_encoder_are_not_alike_there_is_no_profile():
    """Dimensions that are all alike tell encoders apart by nothing but the classes at hand."""
    X, y = encoded(24, seed=1, encoder=None)
    assert learn_profile(Embeddings.from_vectors(X, labels=y)) is None
    assert learn_profile(Embeddings.from_vectors(np.eye(DIM), labels=np.arange(DIM) % 8)) is None
    X, y = encoded(24, seed=1)
    assert learn_profile(Embeddings.from_vectors(X[:, :20], labels=y)) is None  # chance alone makes 20 alike
    assert learn_profile(Embeddings.from_vectors(X[:150], labels=y[:150])) is None  # no classes to compare with


def test_without_labels_nothing_is_learned_of_an_encoder(own, foreign):
    universal = ContextRefiner().fit(own)
    assert universal.encoder_profile_ is None
    assert warned(lambda: universal.transform(foreign, context=foreign)) == []


def test_many_items_are_judged_by_some(monkeypatch, own, foreign):
    monkeypatch.setattr(encoder_profile, "_MOST_ITEMS", 300)
    X, y = encoded(40, seed=1)
    profile = learn_profile(Embeddings.from_vectors(X, labels=y))
    assert profile is not None
    for vectors, found in ((own, []), (foreign, ["these"])):
        items = Embeddings.from_vectors(np.tile(vectors, (3, 1)))
        assert warned(lambda items=items: encoder_profile.warn_of_another_encoder(items, profile, "these")) == found


def test_commands_warn_in_one_sentence(refiner, own, foreign, tmp_path):
    refiner.save(tmp_path / "model")
    for name, vectors in (("own", own), ("foreign", foreign)):
        np.save(tmp_path / f"{name}.npy", vectors)
        options = ["--model", str(tmp_path / "model"), "--out", str(tmp_path / f"{name}-refined.npy")]
        outcome = CliRunner().invoke(app, ["refine", str(tmp_path / f"{name}.npy"), *options])
        assert outcome.exit_code == 0, outcome.output
        assert outcome.stderr.count("another encoder had made them") == (name == "foreign"), outcome.stderr
