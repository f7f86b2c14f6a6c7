"""`entourage fit` from outside: the model it leaves, what it reports, and what an interruption costs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.cli.shop import CLASSES, COUNT, FIT, files, run

from entourage.refiner import ContextRefiner, PaperRefiner
from entourage.runtime.warnings import collected_warnings
from entourage.stores import read_vectors

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


def test_fit_writes_a_model_and_reports_it(inside, tmp_path):
    outcome = run(f"fit v.parquet --out {tmp_path}/m {FIT} --json")
    report = json.loads(outcome.stdout)
    assert outcome.stderr.splitlines() == [f"warning: {warning}" for warning in report["warnings"]]
    assert sorted(os.listdir(tmp_path)) == ["m"]  # no checkpoint is left
    assert sorted(os.listdir(tmp_path / "m")) == ["config.json", "model.safetensors"]
    assert (report["protocol"]["items"], report["protocol"]["classes"]) == (COUNT, CLASSES)
    assert report["model"] == f"{tmp_path}/m"
    assert set(report["metrics"]) == {"held_out_map@r_raw", "held_out_map@r_refined"}
    with collected_warnings() as warnings:
        fitted = PaperRefiner(n_blocks=2, epochs=2).fit(read_vectors("v.parquet"))
    assert report["metrics"] == pytest.approx(fitted.report()["metrics"]) and report["warnings"] == warnings
    assert [point["epoch"] for point in report["curve"]] == [0, 1, 2]


def test_fit_learns_by_the_relational_recipe_unless_told_otherwise(inside, tmp_path):
    outcome = run(f"fit v.parquet --out {tmp_path}/m --neighbors 6 --blocks 3 --json")
    report = json.loads(outcome.stdout)
    assert outcome.stderr.splitlines() == [f"warning: {warning}" for warning in report["warnings"]]
    assert sorted(os.listdir(tmp_path)) == ["m"]
    assert sorted(os.listdir(tmp_path / "m")) == ["config.json", "model.safetensors"]
    protocol = {name: report["protocol"][name] for name in ("recipe", "items", "classes", "steps")}
    assert protocol == {"recipe": "relational", "items": COUNT, "classes": CLASSES, "steps": 3}
    rehearsed = {f"rehearsal_{m}_{v}" for m in ("recall@1", "map@r", "votes") for v in ("raw", "refined")}
    assert set(report["metrics"]) == rehearsed | {"rehearsal_votes_error"}
    refined = run(f"refine v.npy --model {tmp_path}/m --out {tmp_path}/o.npy --json")
    assert (refined.exit_code, json.loads(refined.stdout)["protocol"]["steps"]) == (0, 3)
    x = np.load("v.npy")
    expected = ContextRefiner(6, 3).fit(x, np.load("l.npy")).transform(x, context=x)
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), expected)


def test_fit_protects_what_it_is_told_to(inside, tmp_path):
    report = json.loads(run(f"fit v.parquet --out {tmp_path}/m --protect recall@10,mrr --json").stdout)
    assert report["protocol"]["protected"].startswith("recall@10, mrr: at most 0.2 points below the raw vectors")
    states = ("raw", "refined", "unprotected")
    wanted = {f"rehearsal_{name}_{state}" for name in ("recall@1", "map@r", "recall@10", "mrr") for state in states}
    wanted |= {f"rehearsal_votes_{each}" for each in ("raw", "refined", "error")}
    assert set(report["metrics"]) == wanted
    assert all(0 <= value <= 1 for value in report["metrics"].values()), "fractions"
    for name in ("recall@1", "recall@10", "mrr"):
        assert report["metrics"][f"rehearsal_{name}_refined"] >= report["metrics"][f"rehearsal_{name}_raw"] - 0.002
    kept = json.loads((tmp_path / "m" / "config.json").read_text())["report"]
    assert kept == {name: report[name] for name in kept}
    with collected_warnings():
        expected = ContextRefiner().fit(read_vectors("v.parquet"), protect=["recall@10", "mrr"])
    x = np.load("v.npy")
    np.testing.assert_array_equal(
        ContextRefiner.load(tmp_path / "m").transform(x, context=x), expected.transform(x, context=x)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--protect recall", "--protect is 'recall'; wanted recall@k, precision@k, ndcg@k, mrr@k or map@k"),
        ("--protect recall@10,", "--protect is ''; wanted recall@k"),
        ("--protect recall@99999", "protect is recall@99999, but a query has only"),
        ("--protect mrr --labels coarse", "too few to rehearse with; wanted 4: add classes, or leave protect out"),
        ("--protect mrr --recipe paper", "--protect is mrr but only --recipe relational uses it"),
    ],
)
def test_what_cannot_be_protected_is_refused(inside, tmp_path, options, message):
    refused = run(f"fit v.npz --out {tmp_path}/m {options}")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr and not (tmp_path / "m").exists()


def test_fit_with_few_classes_says_what_it_does_instead(inside, tmp_path):
    outcome = run(f"fit v.npz --labels coarse --out {tmp_path}/m")
    assert outcome.stderr == "warning: too few classes to rehearse with: the universal scorer is used as it is\n"
    assert outcome.exit_code == 0 and outcome.stdout.splitlines()[-1] == f"Written to {tmp_path}/m"


@pytest.mark.parametrize("source", ["v.npz", "v.npz --labels l.csv", "v.parquet --labels label"])
def test_the_same_data_in_any_format_give_the_same_model(inside, tmp_path, source):
    assert run(f"fit {source} --out {tmp_path}/m {FIT}").exit_code == 0
    assert files(tmp_path / "m") == files(inside / "model")  # config.json holds the losses, to the last digit


def test_a_class_with_one_item_is_kept_and_reported(inside, tmp_path):
    labels = np.load("l.npy")
    labels[0] = 99
    np.save(tmp_path / "l.npy", labels)
    report = json.loads(run(f"fit v.npy --labels {tmp_path}/l.npy --out {tmp_path}/m {FIT} --json").stdout)
    counts = {name: report["protocol"][name] for name in ("items", "classes", "classes_with_one_item")}
    assert counts == {"items": COUNT, "classes": CLASSES + 1, "classes_with_one_item": 1}


def test_overwrite_replaces_a_model(inside, tmp_path):
    shutil.copytree("model", tmp_path / "m")
    assert run(f"fit v.npz --out {tmp_path}/m --recipe paper --blocks 1 --epochs 1 --overwrite").exit_code == 0
    assert json.loads((tmp_path / "m" / "config.json").read_text())["settings"]["n_blocks"] == 1
    assert os.listdir(tmp_path) == ["m"]


def test_ctrl_c_leaves_a_checkpoint_and_resume_ends_as_if_nothing_had_happened(inside, tmp_path):
    # Three classes are too few to hold any out, so the weights compared below are those of the last epoch.
    command = "fit v.npz --labels coarse --recipe paper --blocks 1 --epochs 40 --out"
    checkpoint = tmp_path / "stopped.checkpoint"
    # Started from a background shell, Python would ignore Ctrl-C; the handler makes the test the same everywhere.
    start = "import signal; signal.signal(2, signal.default_int_handler); from entourage.cli import main; main()"
    line = [sys.executable, "-c", start, *command.split(), tmp_path / "stopped"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert said == f"stopped; {checkpoint} holds the finished epochs: add --resume to continue\ninterrupted\n"
    assert os.listdir(tmp_path) == ["stopped.checkpoint"]

    again = run(command, tmp_path / "stopped")
    assert again.exit_code == 2 and "add --resume to continue it, or --overwrite to start again" in again.stderr
    other = run(command, tmp_path / "stopped", "--resume", "--seed", 1)
    assert other.exit_code == 2 and "belongs to other data or settings" in other.stderr
    assert checkpoint.exists()

    assert run(command, tmp_path / "stopped", "--resume").exit_code == 0
    assert run(command, tmp_path / "whole").exit_code == 0
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")
    assert json.loads((tmp_path / "whole" / "config.json").read_text())["history"]["best_epoch"] == 40
    assert sorted(os.listdir(tmp_path)) == ["stopped", "whole"]


def test_a_typing_error_does_not_cost_the_checkpoint(inside, tmp_path):
    (tmp_path / "m.checkpoint").write_bytes(b"hours of work")
    assert run(f"fit typo.npy --out {tmp_path}/m --recipe paper --overwrite").exit_code == 2
    assert (tmp_path / "m.checkpoint").read_bytes() == b"hours of work"


def test_labels_that_cannot_be_learned_do_not_cost_the_checkpoint_of_an_earlier_fit(inside, tmp_path):
    np.save(tmp_path / "l.npy", np.zeros(COUNT, int))
    earlier = bytes(8) + b'{"__metadata__":{"state": hours of work'
    (tmp_path / "m.checkpoint").write_bytes(earlier)
    outcome = run(f"fit v.npy --labels {tmp_path}/l.npy --out {tmp_path}/m --recipe paper --overwrite")
    assert outcome.exit_code == 2 and "class" in outcome.stderr
    assert (tmp_path / "m.checkpoint").read_bytes() == earlier
    assert sorted(os.listdir(tmp_path)) == ["l.npy", "m.checkpoint"]


def test_a_long_or_odd_path_is_printed_as_it_is(inside, tmp_path):
    out = tmp_path / ("a [red] name that is longer than any line of any terminal " * 3).strip()
    assert run(f"fit v.npz {FIT} --out", out).stdout.splitlines()[-1] == f"Written to {out}"
