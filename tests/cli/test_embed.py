"""`entourage embed` from outside: what is written, what is left out, what is refused, and how it goes on."""

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tests.cli.pictures import CLASSES, GLYPHS, PER_CLASS, TRAIN, interrupted, write_birds
from tests.cli.shop import check_refused, document, files, run

from entourage import data
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import SmallResNet, load_encoder, save_encoder
from entourage.encoders.embedding import embed

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT = CLASSES * PER_CLASS // 2  # of the pictures of a split


@pytest.fixture(scope="module")
def aviary(tmp_path_factory):
    """Pictures, two encoders, a run, and what may be in the way."""
    folder = tmp_path_factory.mktemp("aviary")
    write_birds(folder / "birds")
    for number in range(2):
        torch.manual_seed(number)
        encoder = SmallResNet(dim=5 + number, width=4, in_channels=3, preprocessing=Preprocessing.small(16, 3))
        save_encoder(folder / f"encoder-{number}", encoder)
    assert run(f"train {folder}/birds --out {folder}/run {TRAIN} --no-nmi").exit_code == 0
    (folder / "empty").mkdir()
    (folder / "there.npz").write_text("in the way")
    (folder / "half.csv").write_text("in the way")
    (folder / "other.npz.parts").mkdir()
    (folder / "other.npz.parts" / "thesis.tex").write_text("years of work")
    return folder


@pytest.fixture
def inside(aviary, monkeypatch):
    monkeypatch.chdir(aviary)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return aviary


def test_vectors_ids_and_labels_in_every_format(inside, tmp_path):
    for suffix in (".npz", ".parquet", ".npy"):
        shown = document(run(f"embed birds --model run --out {tmp_path}/v{suffix} --shard-size 7 --json"))
        assert shown["protocol"] == {
            "data": "birds, test",
            "pictures": COUNT,
            "left_out": 0,
            "vectors": COUNT,
            "dimensions": 8,
            "model": "run",
        }
    assert sorted(os.listdir(tmp_path)) == ["v.csv", "v.npy", "v.npz", "v.parquet"]
    pictures = data.load("birds", "test")
    expected = embed(load_encoder("run/encoder"), pictures, at_once=7)
    table, plain = pq.read_table(tmp_path / "v.parquet"), np.load(tmp_path / "v.npy", mmap_mode="r")
    with np.load(tmp_path / "v.npz") as arrays:
        np.testing.assert_allclose(arrays["vectors"], expected, atol=1e-6)
        np.testing.assert_array_equal(arrays["vectors"], plain)
        np.testing.assert_array_equal(arrays["vectors"], np.stack(table["vector"].to_numpy()))
        for name, column in (("ids", "id"), ("labels", "label")):
            assert arrays[name].tolist() == getattr(pictures, name).tolist() == table[column].to_pylist()
    scores = [
        document(run(f"evaluate {tmp_path}/v{given} --no-nmi --json"))["metrics"]
        for given in (".npz", ".parquet", f".npy --labels {tmp_path}/v.csv")
    ]
    assert scores[0] == scores[1] == scores[2]


def test_a_split_can_be_chosen_and_an_output_replaced(inside, tmp_path):
    document(run(f"embed {GLYPHS} --split train --model run --out {tmp_path}/v.npz --json"))
    with np.load(tmp_path / "v.npz") as arrays:
        assert arrays["labels"].tolist() == data.load("glyphs", "train", per_class=4, max_classes=8).labels.tolist()
    document(run(f"embed birds --model run --out {tmp_path}/v.npz --overwrite --json"))
    with np.load(tmp_path / "v.npz") as arrays:
        assert len(arrays["ids"]) == COUNT


def test_a_whole_folder_is_embedded_and_one_of_pictures_without_classes(inside, tmp_path):
    document(run(f"embed birds --split all --model run --out {tmp_path}/v.npz --json"))
    with np.load(tmp_path / "v.npz") as arrays:
        assert len(arrays["vectors"]) == CLASSES * PER_CLASS and len(set(arrays["labels"])) == CLASSES
    for suffix in (".npz", ".npy"):
        out = tmp_path / f"plain{suffix}"
        document(run("embed --split all --model run --json", "--out", out, inside / "birds" / "bird 00"))
    with np.load(tmp_path / "plain.npz") as arrays:
        assert arrays["ids"].tolist() == ["0.png", "1.png", "2.png", "3.png"] and "labels" not in arrays
    assert (tmp_path / "plain.csv").read_text().splitlines() == ["id", "0.png", "1.png", "2.png", "3.png"]


def test_several_models_make_an_ensemble_of_unit_vectors(inside, tmp_path):
    shown = document(run(f"embed birds --model encoder-0 --model encoder-1 --out {tmp_path}/v.npz --json"))
    assert (shown["protocol"]["model"], shown["protocol"]["dimensions"]) == ("encoder-0 + encoder-1", 11)
    pictures = data.load("birds", "test")
    parts = [embed(load_encoder(f"encoder-{number}"), pictures) for number in range(2)]
    with np.load(tmp_path / "v.npz") as arrays:
        np.testing.assert_allclose(arrays["vectors"], np.hstack(parts) / np.sqrt(2), atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(arrays["vectors"], axis=1), 1, atol=1e-6)


def test_a_corrupt_picture_is_left_out_counted_and_named_or_refused(inside, tmp_path):
    folder = write_birds(tmp_path / "birds")
    bad = folder / "bird 08" / "2.png"
    bad.write_bytes(b"no picture")
    command = f"embed {folder} --model {inside}/run --shard-size 3 --json"
    outcome = run(command, "--out", tmp_path / "v.npz")
    shown = json.loads(outcome.stdout)
    assert outcome.stderr == f"warning: 1 of {COUNT} pictures cannot be decoded and are left out; the first is {bad}\n"
    assert (shown["protocol"]["left_out"], shown["protocol"]["vectors"]) == (1, COUNT - 1)
    assert shown["corrupt"] == [str(bad)]
    with np.load(tmp_path / "v.npz") as arrays:
        assert "bird 08/2.png" not in arrays["ids"] and len(arrays["ids"]) == COUNT - 1
    refused = run(command, "--strict", "--out", tmp_path / "strict.npz")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"error: {bad} cannot be decoded") and refused.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["birds", "strict.npz.parts", "v.npz"]

    bad.write_bytes((folder / "bird 08" / "1.png").read_bytes())  # repaired, it goes on with the shard it stopped at
    document(run(command, "--strict", "--resume", "--out", tmp_path / "strict.npz"))
    assert sorted(os.listdir(tmp_path)) == ["birds", "strict.npz", "v.npz"]


BAD = {
    "the same twice": (
        "embed birds --model run --model ./run --out out.npz",
        "--model names './run' twice; wanted different ones for an ensemble",
    ),
    "no such dataset": ("embed bird --model run --out out.npz", "the dataset is 'bird'; wanted one of cars"),
    "empty folder": ("embed empty --model run --out out.npz", "empty has no folders with images in them"),
    "no such split": (
        "embed birds --model run --split query --out out.npz",
        "unknown split 'query' of birds; wanted one of train, test, all",
    ),
    "wrong root": ("embed cub --root nowhere --model run --out out.npz", "the folder nowhere does not exist"),
    "no such model": ("embed birds --model no-such-net --out out.npz", "there is no folder no-such-net and no encoder"),
    "mistyped model": ("embed birds --model rnu --out out.npz", "no encoder of that name (did you mean run?); wanted"),
    "no such folder": ("embed birds --model ./models/run --out out.npz", "there is no folder ./models/run and no"),
    "a file": ("embed birds --model run/config.json --out out.npz", "there is no folder run/config.json and no"),
    "no such hub model": ("embed birds --model nobody/net --out out.npz", "the model 'nobody/net' was not found"),
    "no model folder": (
        "embed birds --model birds --out out.npz",
        "birds is a folder without an encoder; wanted a run",
    ),
    "new weights": ("embed birds --model small --out out.npz", "'small', an untrained encoder"),
    "another format": ("embed birds --model run --out out.csv", "out.csv ends in .csv; vectors are written to .npz"),
    "output in the way": ("embed birds --model run --out there.npz", "there.npz exists already"),
    "labels in the way": ("embed birds --model run --out half.npy", "half.csv exists already"),
    "output is a folder": ("embed birds --model encoder-0 --out run", "run exists already"),
    "no shards": ("embed birds --model run --out out.npz --shard-size 0", "shard_size is 0; wanted 1 or more"),
    "no threads": ("embed birds --model run --out out.npz --workers 0", "workers is 0; wanted 1 or more"),
    "unknown device": ("embed birds --model run --out out.npz --device tpu", "device is 'tpu'"),
    "nothing to resume": ("embed birds --model run --out out.npz --resume", "there is no out.npz.parts to resume"),
    "parts of another": (
        "embed birds --model run --out other.npz --overwrite",
        "a folder that Entourage did not write",
    ),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence_exit_code_2_and_leaves_nothing(inside, command, message):
    check_refused(inside, f"{command} --json", message)
    assert not os.path.exists("out.npz.parts")


def test_ctrl_c_keeps_the_finished_shards_and_resume_writes_the_same_file(tmp_path, inside):
    out, parts = tmp_path / "v.npz", tmp_path / "v.npz.parts"
    command = (
        "embed glyphs --data-option per_class=3 --data-option max_classes=100 --model encoder-0 --shard-size 3 --json"
    )
    code, said = interrupted([*command.split(), "--out", out], lambda: len(list(parts.glob("[0-9]*.npz"))) > 1)
    assert code == 130, said
    assert said == f"stopped; {parts} holds what is done: add --resume to continue\ninterrupted\n"
    assert os.listdir(tmp_path) == ["v.npz.parts"]
    kept = files(parts)

    again = run(command, "--out", out)
    assert again.exit_code == 2 and "holds an interrupted run; resume it (--resume), or start again" in again.stderr
    other = run(command.replace("encoder-0", "encoder-1"), "--out", out, "--resume")
    assert other.exit_code == 2 and "belongs to other pictures, models or shard sizes" in other.stderr
    assert files(parts) == kept

    document(run(command, "--out", out, "--resume"))
    document(run(command, "--out", tmp_path / "whole.npz"))
    with np.load(out) as resumed, np.load(tmp_path / "whole.npz") as whole:
        assert all(np.array_equal(resumed[name], whole[name]) for name in ("vectors", "ids", "labels"))
    assert sorted(os.listdir(tmp_path)) == ["v.npz", "whole.npz"]
