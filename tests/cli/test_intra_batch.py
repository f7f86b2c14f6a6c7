"""The intra-batch system from outside: train, embed, refine by the run's network, evaluate; ensembles and students."""

import json
import os

import numpy as np
import pytest
from tests.cli.pictures import GLYPHS, TRAIN, write_birds
from tests.cli.shop import check_refused, document, run
from tests.encoders.tiny_models import tiny

from entourage.evaluation import evaluate_embeddings
from entourage.runs.refinement_run import open_refinement
from entourage.stores import read_vectors
from entourage.systems.intra_batch.inference import refine_by_messages
from entourage.systems.intra_batch.saving import load_network
from entourage.systems.presets import INTRA_BATCH as PRESETS

pytestmark = pytest.mark.usefixtures("one_thread")

SYSTEM = "--system intra-batch --no-nmi --json"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs, the test pictures embedded by the first, and a run without a network."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        document(run(f"train {GLYPHS} --out {folder}/run-{seed} {TRAIN} {SYSTEM} --seed {seed}"))
    document(run(f"train {GLYPHS} --out {folder}/plain {TRAIN} {SYSTEM} --set network_weight=0"))
    document(run(f"embed {GLYPHS} --model {folder}/run-0 --out {folder}/v.npz --json"))
    return folder


def test_a_run_keeps_its_network_unless_it_has_none(runs):
    kept = ["config.json", "encoder", "log.jsonl", "metrics.json", "network"]
    assert sorted(os.listdir(runs / "run-0")) == kept
    assert sorted(os.listdir(runs / "plain")) == kept[:-1]
    config = json.loads((runs / "run-0" / "config.json").read_text())
    assert (config["system"], config["settings"]["temperature"]) == ("intra-batch", 0.2)
    assert load_network(runs / "run-0").network.dim == 8


@pytest.mark.parametrize(
    ("by", "options"),
    [
        (None, {"size": 7}),
        (None, {"k1": 5}),
        ("nearest", {"size": 4}),
        ("kmeans", {}),
        ("ward", {"n_clusters": 6}),
    ],
)
def test_vectors_are_refined_by_the_runs_network_and_evaluated(runs, tmp_path, by, options):
    flags = {"size": "--context-size", "k1": "--k1", "n_clusters": "--n-clusters"}
    option = "" if by is None else f"--context-by {by}"
    option += "".join(f" {flags[name]} {value}" for name, value in options.items())
    shown = document(run(f"refine {runs}/v.npz --model {runs}/run-0 --out {tmp_path}/r.npz {option} --json"))
    assert shown["protocol"] == {
        "items": 32,
        "model": f"{runs}/run-0",
        "context": f"transductive: groups by {by or 'reciprocal'}",
        **({"groups": 32, "group_size": 7, "k1": options.get("k1", 30)} if by is None else {}),
        **({"groups": 11, "group_size": 3 * 4} if by == "nearest" else {}),
        **({"groups": shown["protocol"]["groups"], "group_size": 3 * 2} if by in ("kmeans", "ward") else {}),
        **({"n_clusters": options.get("n_clusters", 4)} if by in ("kmeans", "ward") else {}),
        "steps": 1,
    }
    refined = read_vectors(tmp_path / "r.npz")
    wanted = refine_by_messages(
        load_network(runs / "run-0"), read_vectors(runs / "v.npz"), by or "reciprocal", **options
    )
    np.testing.assert_allclose(refined.vectors, wanted.vectors, atol=1e-6)
    assert refined.labels.tolist() == wanted.labels.tolist() and refined.ids.tolist() == wanted.ids.tolist()
    scores = document(run(f"evaluate {tmp_path}/r.npz --no-nmi --json"))
    assert scores["metrics"] == pytest.approx(evaluate_embeddings(wanted, nmi=False).metrics)
    assert "Written to" in run(f"refine {runs}/v.npz --model {runs}/run-0 --out {tmp_path}/again.npz").stdout


def test_what_the_network_did_is_kept_and_can_be_looked_at(runs, tmp_path):
    refine = f"refine {runs}/v.npz --model {runs}/run-0 --context-size 5 --run {tmp_path}/kept"
    outcome = run(refine)
    assert "recall@1" in outcome.stdout and f"Written to {tmp_path}/kept" in outcome.stdout
    shown = document(run(f"{refine} --out {tmp_path}/r.npz --overwrite --json"))
    assert (shown["out"], shown["run"]) == (f"{tmp_path}/r.npz", f"{tmp_path}/kept")
    kept = open_refinement(tmp_path / "kept")
    assert shown["scores"] == {"before": kept.document["metrics_before"], "after": kept.document["metrics"]}
    np.testing.assert_allclose(kept.refined.vectors, read_vectors(tmp_path / "r.npz").vectors, atol=1e-6)
    assert kept.document["protocol"]["refiner"] == f"network of {runs}/run-0, 1 message-passing step"
    assert kept.run["settings"] == {"network": {"run": f"{runs}/run-0", "by": "reciprocal", "size": 5}}
    for kind in ("drift", "query", "steps", "sheet"):
        assert run(f"plot {kind} {tmp_path}/kept --out {tmp_path}/{kind}.svg").exit_code == 0, kind
    refused = run(f"plot grid {tmp_path}/kept --out {tmp_path}/grid.png").stderr
    assert "grid is a figure of a refiner that is applied with other settings" in refused
    assert run(f"report {tmp_path}/kept").exit_code == 0
    page = (tmp_path / "kept" / "report.html").read_text()
    assert "Not drawn" not in page and "network.by" in page


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".npy"])
def test_vectors_of_another_encoder_are_warned_of_where_the_file_says_so(runs, tmp_path, suffix):
    run(f"embed {GLYPHS} --model {runs}/run-1 --out {tmp_path}/v{suffix}")
    other = run(f"refine {tmp_path}/v{suffix} --model {runs}/run-0 --out {tmp_path}/o{suffix} --json")
    said = json.loads(other.stdout)["warnings"]
    assert other.stderr == "".join(f"warning: {text}\n" for text in said)
    assert [text.partition(",")[0] for text in said] == (
        [] if suffix == ".npy" else [f"{tmp_path}/v{suffix} holds vectors of another encoder"]
    )
    assert document(run(f"refine {tmp_path}/v{suffix} --model {runs}/run-1 --out {tmp_path}/own{suffix} --json"))
    assert document(run(f"refine {tmp_path}/own{suffix} --model {runs}/run-0 --out {tmp_path}/again{suffix} --json"))


def test_two_runs_are_an_ensemble_whose_cosine_is_the_mean_of_theirs(runs, tmp_path):
    document(run(f"embed {GLYPHS} --model {runs}/run-1 --out {tmp_path}/one.npz --json"))
    both = f"--model {runs}/run-0 --model {runs}/run-1"
    shown = document(run(f"embed {GLYPHS} {both} --out {tmp_path}/both.npz --json"))
    assert shown["protocol"]["dimensions"] == 16
    first, second, joint = (
        read_vectors(path).vectors for path in (runs / "v.npz", tmp_path / "one.npz", tmp_path / "both.npz")
    )
    np.testing.assert_allclose(joint @ joint.T, (first @ first.T + second @ second.T) / 2, atol=1e-5)


def test_a_student_is_trained_from_a_run(runs, tmp_path):
    options = f"--system student --set teacher={runs}/run-0 --set distillation=relations --no-nmi --json"
    document(run(f"train {GLYPHS} --out {tmp_path}/student {TRAIN} {options}"))
    config = json.loads((tmp_path / "student" / "config.json").read_text())
    assert (config["system"], config["settings"]["distillation"]) == ("student", "relations")
    assert sorted(os.listdir(tmp_path / "student")) == ["config.json", "encoder", "log.jsonl", "metrics.json"]


def test_a_preset_is_what_the_file_and_the_flags_win_over(tmp_path):
    (tmp_path / "run.toml").write_text("steps = 2\ntemperature = 0.5\n")
    flags = f"--encoder small --set encoder_options.pooling=average --config {tmp_path}/run.toml --set temperature=0.7"
    document(run(f"train {GLYPHS} --out {tmp_path}/run {TRAIN} {SYSTEM} --preset cub {flags} --set heads=4"))
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert (settings["steps"], settings["temperature"], settings["epochs"], settings["heads"]) == (2, 0.7, 2, 4)
    assert settings["weight_decay"] == PRESETS["cub"]["weight_decay"] and settings["scheduler"] == "step"
    assert settings["encoder_options"] == {"pooling": "average", "width": 4}


def test_a_preset_trains_a_resnet_with_max_pooling(tmp_path):
    tiny("resnet").save_pretrained(tmp_path / "resnet")
    smaller = "--dim 8 --image-size 32 --epochs 1 --set batch_classes=3 --set batch_per_class=2"
    preset = f"--preset in_shop --encoder {tmp_path}/resnet {smaller} --set validation_share=0"
    document(run(f"train {write_birds(tmp_path / 'birds')} --out {tmp_path}/run {preset} {SYSTEM}"))
    encoder = json.loads((tmp_path / "run" / "encoder" / "config.json").read_text())
    assert (encoder["options"]["pooling"], encoder["options"]["dim"]) == ("max", 8)
    assert encoder["preprocessing"]["crop"] == 32 and encoder["preprocessing"]["random_crop"]
    assert load_network(tmp_path / "run").network.options["heads"] == 4


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "train glyphs --out new --system intra-batch --preset birds",
            "'birds' of this system; wanted one of cars, cub, in_shop, sop",
        ),
        (
            "train glyphs --out new --preset cub",
            "unknown preset 'cub' of this system; wanted one of cars-ms, cub-ms, ",
        ),
        ("train glyphs --out new --system student", "teacher is empty; wanted the folder of a run"),
        (f"train {GLYPHS} --out new --system student --set teacher=plain", "plain has no network in it"),
        (
            "train glyphs --out new --system intra-batch --loss ms",
            "the loss is ms but the system intra-batch has one of its own; leave --loss out",
        ),
        ("refine v.npz --model run-0 --out o.npz --context-by friends", "--context-by is 'friends'; wanted one of"),
        ("refine v.npz --model run-0 --out o.npz --context v.npz", "put queries and gallery into one file"),
        (
            "refine v.npz --model run-0 --out o.npz --steps 1",
            "--steps is 1 with the run 'run-0', whose network takes the steps it was trained with; leave it out",
        ),
        ("refine v.npz --out o.npz --context-by kmeans", "--context-by is kmeans without a run"),
        ("refine v.npz --out o.npz --context-size 9", "--context-size is 9 without a run"),
        ("refine v.npz --model run-0 --out o.npz --context-size 1", "size is 1; wanted 2 or more"),
        (
            "refine v.npz --model run-0 --out o.npz --context-by ward --context-size 3",
            "--context-size is 3 but contexts",
        ),
        ("refine v.npz --out o.npz --k1 9", "--k1 is 9 without a run"),
        ("refine v.npz --out o.npz --n-clusters 9", "--n-clusters is 9 without a run"),
        (
            "refine v.npz --model run-0 --out o.npz --context-by nearest --k1 9",
            "--k1 is 9 but contexts are found by nearest; it is for reciprocal: leave it out or change --context-by",
        ),
        (
            "refine v.npz --model run-0 --out o.npz --context-by dbscan --n-clusters 9",
            "--n-clusters is 9 but contexts are found by dbscan; it is for birch, kmeans, spectral, ward",
        ),
        ("refine wide.npy --model run-0 --out o.npy", "have 9 dimensions but the network was trained on 8"),
        ("refine v.npz --model plain --out o.npz", "'plain' is a run without a network to refine with; wanted"),
        ("refine v.npz --model nowhere --out o.npz", "there is no folder 'nowhere'; wanted a folder written by"),
        ("refine v.npz --model run-0/network --out o.npz", "is a part of a run; give the run itself, 'run-0'"),
    ],
)
def test_what_cannot_be_done_is_refused(runs, monkeypatch, command, said):
    np.save(runs / "wide.npy", np.eye(9, dtype=np.float32))
    monkeypatch.chdir(runs)
    check_refused(runs, command, said)
