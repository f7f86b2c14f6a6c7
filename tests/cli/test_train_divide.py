"""`entourage train --system divide` from outside, on pictures and on a file of vectors."""

import json
import os

import numpy as np
import pytest
from tests.cli.pictures import GLYPHS, TRAIN
from tests.cli.shop import document, run

from entourage.encoders import load_encoder

pytestmark = pytest.mark.usefixtures("one_thread")

DIVIDE = "--system divide --set learners=2 --set batch_classes=4 --dim 8 --epochs 3 --set validation_share=0"


@pytest.fixture
def vectors(tmp_path):
    """Labelled vectors of 12 classes."""
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(12), 8)
    items = rng.normal(size=(12, 10))[labels] + rng.normal(size=(96, 10))
    np.savez(tmp_path / "v.npz", vectors=items, labels=labels, ids=[f"item {row}" for row in range(96)])
    np.save(tmp_path / "new.npy", items[:5])
    return tmp_path / "v.npz"


def test_pictures(tmp_path):
    shown = document(run(f"train {GLYPHS} --out {tmp_path}/run {TRAIN} --system divide --set learners=2 --json"))
    assert shown["protocol"]["system"] == "divide" and shown["protocol"]["loss"] == "margin"
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["settings"]["learners"], config["settings"]["recluster_every"]) == (2, 2)
    assert load_encoder(tmp_path / "run" / "encoder").slices == 2
    document(run(f"embed {GLYPHS} --model {tmp_path}/run --out {tmp_path}/v.npz --json"))
    assert document(run(f"evaluate {tmp_path}/v.npz --json"))["metrics"] == shown["metrics"]


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_vectors_are_trained_on_embedded_and_evaluated(vectors, encoder):
    folder = vectors.parent
    shown = document(run(f"train {vectors} --out {folder}/run {DIVIDE} --encoder {encoder} --no-nmi --json"))
    assert shown["protocol"]["trained_on"] == "48 vectors of 6 classes"
    assert shown["protocol"]["data"] == f"{vectors}, test: classes unseen in training"
    document(run(f"embed {vectors} --model {folder}/run --out {folder}/test.npz --json"))
    assert document(run(f"evaluate {folder}/test.npz --no-nmi --json"))["metrics"] == shown["metrics"]
    with np.load(folder / "test.npz") as written:
        assert written["vectors"].shape == (48, 8) and written["ids"][0] == "item 48"
    document(run(f"embed {folder}/new.npy --split all --model {folder}/run --out {folder}/new.npz --json"))
    with np.load(folder / "new.npz") as written:
        assert written["vectors"].shape == (5, 8) and "labels" not in written.files


def test_the_baseline_takes_vectors_too(vectors):
    command = f"train {vectors} --out {vectors.parent}/run --dim 8 --epochs 1 --set batch_classes=4"
    assert document(run(f"{command} --set validation_share=0 --no-nmi --json"))["protocol"]["encoder"] == "linear"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{DIVIDE} --encoder small", "wanted an encoder of vectors: linear or mlp"),
        (f"{DIVIDE} --encoder linear --set learners=3", "dim is 8, which 3 learners do not divide evenly"),
        (
            f"{DIVIDE} --encoder linear --image-size 32",
            "unknown option 'size' of the encoder linear; wanted one of dim, dropout, hidden, in_dim",
        ),
        (f"{DIVIDE} --encoder linear --data-option labels=none.npy", "none.npy"),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(vectors, options, message):
    before = sorted(os.listdir(vectors.parent))
    outcome = run(f"train {vectors} --out {vectors.parent}/run {options}")
    assert (outcome.exit_code, outcome.stderr.count("\n")) == (2, 1) and message in outcome.stderr
    assert sorted(os.listdir(vectors.parent)) == before
