"""`entourage train` from outside: the run it leaves, what it says, what is refused, and what an interruption costs."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.cli.pictures import CLASSES, GLYPHS, PER_CLASS, SMALL, TRAIN, interrupted, write_birds, write_table
from tests.cli.shop import check_refused, document, files, run

from entourage import __version__, data
from entourage.encoders import load_encoder
from entourage.encoders.embedding import embed
from entourage.evaluation import evaluate_embeddings
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

RUN = ["config.json", "encoder", "log.jsonl", "metrics.json"]


@pytest.fixture(scope="module")
def aviary(tmp_path_factory):
    """Good pictures as a folder and as a table; an empty folder, and one of classes that cannot be tested."""
    folder = tmp_path_factory.mktemp("aviary")
    write_birds(folder / "birds")
    write_table(folder / "birds")
    write_birds(folder / "single", classes=8, per_class=1)
    write_birds(folder / "one-class", classes=1)
    (folder / "empty").mkdir()
    (folder / "no-paths.csv").write_text("label,where\na,birds/bird 00/0.png\n")
    (folder / "unknown-key.toml").write_text("epoch = 3\n")
    (folder / "good.toml").write_text('loss = "triplet"\nepochs = 9\n[loss_options]\nmargin = 0.3\nmining = "all"\n')
    (folder / "there").mkdir()
    (folder / "there" / "thesis.tex").write_text("years of work")
    return folder


@pytest.fixture
def inside(aviary, monkeypatch):
    monkeypatch.chdir(aviary)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ENTOURAGE_DATA", raising=False)
    return aviary


def weights(folder) -> dict:
    return load_encoder(folder).state_dict()


def test_a_run_holds_configuration_log_encoder_and_scores_of_unseen_classes(tmp_path):
    shown = document(run(f"train {GLYPHS} --out {tmp_path}/run {TRAIN} --loss margin --seed 3 --json"))
    assert os.listdir(tmp_path) == ["run"] and sorted(os.listdir(tmp_path / "run")) == RUN
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["system"], config["seed"], config["settings"]["loss"]) == ("baseline", 3, "margin")
    assert config["settings"]["weight_decay"] == 1e-4  # what nobody set is there too
    assert config["data"] == {"source": "glyphs", "root": None, "options": {"per_class": 4, "max_classes": 8}}
    assert config["versions"]["entourage"] == __version__ and config["versions"]["torch"] == torch.__version__
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [entry["epoch"] for entry in log] == [0, 1, 2]
    assert load_encoder(tmp_path / "run" / "encoder").dim == 8
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics == {name: shown[name] for name in ("protocol", "metrics", "warnings")}
    assert metrics["protocol"]["data"] == "glyphs, test: classes unseen in training"
    assert (metrics["protocol"]["queries"], metrics["protocol"]["classes"]) == (32, 8)
    images = data.load("glyphs", "test", per_class=4, max_classes=8)
    vectors = embed(load_encoder(tmp_path / "run" / "encoder"), images)
    test = Embeddings.from_vectors(vectors, images.ids, images.labels)
    assert metrics["metrics"] == pytest.approx(evaluate_embeddings(test, seed=3).metrics)


def test_metrics_are_those_of_evaluate_on_the_embedded_test_classes(tmp_path):
    shown = document(run(f"train {GLYPHS} --out {tmp_path}/run {TRAIN} --json"))
    document(run(f"embed {GLYPHS} --model {tmp_path}/run --out {tmp_path}/v.npz --json"))
    scores = document(run(f"evaluate {tmp_path}/v.npz --json"))
    assert scores["metrics"] == shown["metrics"]
    assert scores["protocol"].items() <= shown["protocol"].items()


def test_the_rule_of_sequences_is_that_of_evaluate_on_the_embedded_splits(inside, tmp_path):
    lines = ["label,path,split,is_query,is_gallery,sequence"]
    for line in (inside / "birds" / "birds.csv").read_text().splitlines()[1:]:
        label, path, split = line.split(",")
        shot = int(path[-5])
        roles = ",," if split == "train" else f",{shot == 0},{shot > 0}"
        lines.append(f"{label},{inside}/birds/{path},{split}{roles},{label} {shot // 2}")
    (tmp_path / "birds.csv").write_text("\n".join(lines) + "\n")
    shown = document(run(f"train {tmp_path}/birds.csv --out {tmp_path}/run {TRAIN} --no-nmi --json"))
    for split in ("query", "gallery"):
        to = f"--split {split} --out {tmp_path}/{split}.npz"
        document(run(f"embed {tmp_path}/birds.csv --model {tmp_path}/run {to} --json"))
    evaluate = f"evaluate {tmp_path}/query.npz --gallery {tmp_path}/gallery.npz --no-nmi --json"
    scores = document(run(evaluate))
    assert scores["metrics"] == shown["metrics"] and "map" in scores["metrics"]
    assert "same_sequence" not in document(run(f"{evaluate} --no-exclusions"))["protocol"]
    lost = run(f"embed {tmp_path}/birds.csv --model {tmp_path}/run --split query --out {tmp_path}/query.npy --json")
    assert lost.exit_code == 0 and "cannot hold cameras and sequences" in lost.stderr


def test_a_folder_and_a_table_of_the_same_pictures_train_the_same_encoder(inside, tmp_path):
    for name, source in {"folder": "birds", "table": "birds/birds.csv"}.items():
        shown = document(run(f"train {source} --out {tmp_path}/{name} {TRAIN} --encoder small-rgb --no-nmi --json"))
        assert shown["protocol"]["trained_on"].startswith(
            f"{CLASSES * PER_CLASS // 2} pictures of {CLASSES // 2} classes"
        )
        assert "nmi" not in shown["metrics"]
    left, right = (weights(tmp_path / name / "encoder") for name in ("folder", "table"))
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_flags_win_over_the_file_which_wins_over_the_defaults(inside, tmp_path):
    options = f"--config good.toml --set loss_options.margin=0.1 {TRAIN} --data-option train_share=0.75 --no-nmi"
    document(run(f"train birds --out {tmp_path}/run {options} --json"))
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    settings = config["settings"]
    assert (settings["loss"], settings["epochs"], settings["patience"]) == ("triplet", 2, 5)
    assert settings["loss_options"] == {"margin": 0.1, "mining": "all"}
    assert config["data"]["options"] == {"train_share": 0.75}


def test_warnings_of_the_data_are_printed_once_and_kept(inside, tmp_path):
    folder = write_birds(tmp_path / "birds", classes=8)
    (folder / "bird 07" / "0.png").rename(folder / "lone.png")
    (folder / "wren").mkdir()
    (folder / "lone.png").rename(folder / "wren" / "0.png")
    outcome = run(f"train {folder} --out {tmp_path}/run {TRAIN} --json")
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("warning: ") and "only one image in test, the first is 'wren'" in line
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [f"warning: {text}" for text in kept["warnings"]] == [line]
    assert kept["protocol"]["queries_without_match"] == 1


def test_a_corrupt_picture_is_left_out_counted_and_named_or_refused(inside, tmp_path, monkeypatch):
    folder = write_birds(tmp_path / "birds")
    bad = [folder / "bird 00" / "1.png", folder / "bird 11" / "2.png"]  # one trains, one is tested
    for path in bad:
        path.write_bytes(path.read_bytes()[:40])
    command = f"train {folder} {TRAIN} --no-nmi --json"
    outcome = run(f"{command} --out {tmp_path}/run")
    shown = json.loads(outcome.stdout)
    assert sorted(shown["corrupt"]) == sorted(map(str, bad))
    assert outcome.stderr == (
        f"warning: 2 of {CLASSES * PER_CLASS} pictures cannot be decoded and are left out; the first is {bad[0]} "
        "(of training, those drawn are counted)\n"
    )
    assert shown["protocol"]["queries"] == CLASSES * PER_CLASS // 2 - 1
    refused = run(f"{command} --strict --out {tmp_path}/strict")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"error: {bad[0]} cannot be decoded") and refused.stderr.count("\n") == 1
    bad[0].write_bytes(bad[1].with_name("0.png").read_bytes())
    monkeypatch.setattr(
        "entourage.systems.encoder_training.fit_model", None
    )  # a test picture is looked at before training
    refused = run(f"{command} --strict --out {tmp_path}/strict")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.startswith(f"error: {bad[1]} cannot be decoded")
    assert sorted(os.listdir(tmp_path)) == ["birds", "run"]


BAD = {
    "no such dataset": ("train bird --out out", "the dataset is 'bird'; wanted one of cars"),
    "wrong root": ("train cub --root nowhere --out out", "the folder nowhere does not exist; check the root"),
    "no root": ("train cub --out out", "cub is read from disk but no folder is given; wanted root, --root or"),
    "root without it": ("train cub --root birds --out out", "cub is not under birds: wanted birds/CUB_200_2011"),
    "empty folder": ("train empty --out out", "empty has no folders with images in them; wanted one folder per class"),
    "one class": ("train one-class --out out", "one-class has 1 class, 'bird 00'; wanted two or more classes"),
    "missing column": ("train no-paths.csv --out out", "no-paths.csv has no column of paths; its columns are label"),
    "no table": ("train nothing.csv --out out", "the table nothing.csv does not exist; check the path"),
    "unknown option": (
        "train birds --data-option share=1 --out out",
        "unknown option 'share' of birds; wanted one of train_share",
    ),
    "unknown key": (
        "train birds --config unknown-key.toml --out out",
        "unknown setting 'epoch' in unknown-key.toml; wanted one of",
    ),
    "text for a share": ("train birds --data-option train_share=half --out out", "train_share is 'half'; wanted a num"),
    "text for a width": ("train birds --set encoder_options.width=x --out out", "width is 'x'; wanted a whole number"),
    "given twice": (
        "train birds --epochs 1 --set epochs=2 --out out",
        "epochs is given as 1 and, by --set, as 2",
    ),
    "unknown setting": ("train birds --set epoch=3 --out out", "unknown setting 'epoch'; wanted one of"),
    "no setting": ("train birds --set epochs --out out", "a setting is given as 'epochs'; wanted name=value"),
    "wrong type": ("train birds --set epochs=ten --out out", "epochs is 'ten'; wanted a whole number"),
    "no config": ("train birds --config nothing.toml --out out", "nothing.toml cannot be read"),
    "unknown system": ("train birds --system best --out out", "the system is 'best'; wanted one of baseline"),
    "unknown loss": ("train birds --loss worst --out out", "'worst'; wanted one of"),
    "unknown encoder": ("train birds --encoder no-such-net --out out", "there is no folder no-such-net and no encoder"),
    "mistyped encoder": (
        "train birds --encoder smal-rgb --out out",
        "(did you mean small-rgb?); wanted",
    ),
    "unknown model": ("train birds --encoder nobody/net --out out", "the model 'nobody/net' was not found"),
    "unknown device": ("train birds --device tpu --out out", "the device is 'tpu'"),
    "hopeless rate": (f"train birds --out out {TRAIN} --learning-rate 1e30", "lower the learning rate"),
    "folder in the way": ("train birds --out there", "there exists already; choose another name or allow overwriting"),
    "never ours": ("train birds --out there --overwrite", "there is a folder that Entourage did not write"),
    "over a file": (
        "train birds --out good.toml --overwrite",
        "good.toml is a file, and is never replaced",
    ),
    "no such place": ("train birds --out new/out", "the folder new does not exist; create it"),
    "nothing to resume": ("train birds --out out --resume", "there is no out.partial to resume; run without"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence_exit_code_2_and_leaves_nothing(inside, command, message):
    check_refused(inside, f"{command} --json", message)
    assert not os.path.exists("out.partial")


def test_classes_of_one_image_cannot_be_learned_from(inside):
    outcome = run("train single --out out")
    *warnings, error = outcome.stderr.splitlines()
    assert outcome.exit_code == 2 and all(line.startswith("warning: ") for line in warnings)
    assert "every score would be 0; wanted test classes of two pictures or more" in error
    assert not os.path.exists("out") and not os.path.exists("out.partial")


def test_overwrite_replaces_a_run_and_a_failed_one_leaves_it_alone(inside, tmp_path):
    assert run(f"train birds --out {tmp_path}/run {TRAIN} --no-nmi").exit_code == 0
    before = files(tmp_path)
    assert run(f"train birds --out {tmp_path}/run {TRAIN} --overwrite --learning-rate 1e30").exit_code == 2
    assert files(tmp_path) == before
    assert run(f"train birds --out {tmp_path}/run {TRAIN} --no-nmi --overwrite --dim 5").exit_code == 0
    assert load_encoder(tmp_path / "run" / "encoder").dim == 5
    assert os.listdir(tmp_path) == ["run"]


def test_ctrl_c_leaves_a_partial_run_and_resume_ends_as_if_nothing_had_happened(inside, tmp_path):
    epochs, stopped = 25, tmp_path / "stopped"
    command = f"train birds {SMALL} --loss proxy-anchor --epochs {epochs} --set validation_share=0 --no-nmi --json"
    partial, log = tmp_path / "stopped.partial", tmp_path / "stopped.partial" / "log.jsonl"

    def two_epochs():
        return log.exists() and log.read_text().count("\n") > 2

    code, said = interrupted([*command.split(), "--out", stopped], two_epochs)
    assert code == 130, said
    assert said == f"stopped; {partial} holds the finished epochs: add --resume to continue\ninterrupted\n"
    assert os.listdir(tmp_path) == ["stopped.partial"]

    again = run(command, "--out", stopped)
    assert again.exit_code == 2 and "holds an interrupted run; resume it (--resume), or start again" in again.stderr
    other = run(command, "--out", stopped, "--resume", "--seed", 1)
    assert other.exit_code == 2 and f"seed is 1 but {partial} was begun with 0; resume" in other.stderr
    unfinished = run(f"embed birds --model {stopped} --out {tmp_path}/v.npz")
    assert unfinished.exit_code == 2 and "is an unfinished run" in unfinished.stderr
    assert sorted(os.listdir(partial)) == ["checkpoint.safetensors", "config.json", "log.jsonl"]

    resumed = document(run(command, "--out", stopped, "--resume"))
    whole = document(run(command, "--out", tmp_path / "whole"))
    assert resumed["metrics"] == whole["metrics"] and resumed["curve"] == whole["curve"]
    assert files(stopped / "encoder") == files(tmp_path / "whole" / "encoder")
    assert sorted(os.listdir(tmp_path)) == ["stopped", "whole"]
    assert len(whole["curve"]) == epochs + 1


def test_two_processes_write_one_run_and_speak_once(inside, tmp_path):
    command = f"-m entourage train birds {TRAIN} --no-nmi --json --out {tmp_path}/run"
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    outcome = subprocess.run([*start, *command.split()], capture_output=True, text=True, env=environment, timeout=300)
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads(outcome.stdout)["run"] == f"{tmp_path}/run"
    assert os.listdir(tmp_path) == ["run"] and sorted(os.listdir(tmp_path / "run")) == RUN


def test_stopped_before_the_first_epoch_ends_nothing_is_kept(inside, tmp_path, monkeypatch):
    def stop(*where):
        raise KeyboardInterrupt

    monkeypatch.setattr("entourage.training.pace.Pace.step", stop)
    outcome = run(f"train birds --out {tmp_path}/run {TRAIN} --json")
    assert (outcome.exit_code, outcome.stderr) == (130, "stopped; nothing was kept\ninterrupted\n")
    assert os.listdir(tmp_path) == []


def test_a_typing_error_does_not_cost_an_interrupted_run(inside, tmp_path):
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "config.json").write_text('{"entourage": "0"}')
    (tmp_path / "run.partial" / "checkpoint.safetensors").write_bytes(b"hours of work")
    before = files(tmp_path)
    for mistake in ("train typo", "train birds --loss typo", "train birds --set typo=1"):
        assert run(f"{mistake} --out {tmp_path}/run --overwrite").exit_code == 2
        assert files(tmp_path) == before


def test_from_pictures_to_refined_vectors(tmp_path, short_rehearsals):
    glyphs = "glyphs --data-option per_class=6 --data-option max_classes=12"
    document(run(f"train {glyphs} --out {tmp_path}/run {TRAIN} --epochs 4 --no-nmi --json"))
    for split in ("train", "test"):
        document(run(f"embed {glyphs} --split {split} --model {tmp_path}/run --out {tmp_path}/{split}.npz --json"))
    before = document(run(f"evaluate {tmp_path}/test.npz --no-nmi --json"))
    assert run(f"fit {tmp_path}/train.npz --out {tmp_path}/refiner --json").exit_code == 0
    document(run(f"refine {tmp_path}/test.npz --model {tmp_path}/refiner --out {tmp_path}/refined.npz --json"))
    after = document(run(f"evaluate {tmp_path}/refined.npz --no-nmi --json"))
    assert after["protocol"] == before["protocol"] and before["protocol"]["queries"] == 72
    with np.load(tmp_path / "test.npz") as raw, np.load(tmp_path / "refined.npz") as refined:
        assert (raw["ids"] == refined["ids"]).all() and (raw["labels"] == refined["labels"]).all()
        assert raw["vectors"].shape == refined["vectors"].shape == (72, 8)
