"""`entourage compare` from outside, on small real vectors: handwritten digits."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.cli.shop import run

from entourage.comparison.methods import METHODS

pytestmark = pytest.mark.usefixtures("one_thread")

CHEAP = "alpha-qe-8-3,pca-whitening"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    vectors, labels = load_digits(return_X_y=True)
    vectors, labels = vectors[:600].astype(np.float32), labels[:600]
    parts = np.where(labels < 6, "train", "test")
    np.save(folder / "v.npy", vectors)
    np.save(folder / "l.npy", labels)
    np.savez(folder / "v.npz", vectors=vectors, labels=labels, part=parts)
    np.save(folder / "s.npy", parts)
    (folder / "s.txt").write_text("\n".join(parts) + "\n")
    (folder / "s.csv").write_text("split\n" + "\n".join(parts) + "\n")
    (folder / "bad.txt").write_text("\n".join([*parts[:-1], "dev"]) + "\n")
    (folder / "short.txt").write_text("\n".join(parts[:-1]) + "\n")
    (folder / "one.txt").write_text("train\n")
    np.save(folder / "one.npy", vectors[:1])
    np.save(folder / "overlap.npy", np.where(np.arange(600) % 2, "train", "test"))
    np.save(folder / "one-class.npy", labels * 0)
    return folder


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_digits_unseen_in_training_are_compared(inside):
    outcome = run(f"compare v.npy --labels l.npy --methods {CHEAP} --seeds 2 --per-class --json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    report = json.loads(outcome.stdout)
    assert set(report) == {"protocol", "methods", "best", "warnings", "harm"}
    assert report["protocol"]["training_classes"] == report["protocol"]["test_classes"] == 5
    rows = {row["method"]: row for row in report["methods"]}
    assert list(rows) == ["raw", "alpha-qe-8-3", "pca-whitening"]
    assert rows["alpha-qe-8-3"]["map@r_vs_raw"]["low"] > 0.05  # averaging with neighbours helps digits for certain
    possible = METHODS["pca-whitening"].beyond["shrinkage"]
    assert all(possible[0] <= chosen["shrinkage"] <= possible[-1] for chosen in rows["pca-whitening"]["settings"])
    harm = report["harm"]
    assert (harm["method"], harm["against"]) == ("pca-whitening", "raw")
    assert len(harm["queries"]) == harm["map@r"]["lost"]
    assert sum(harm["recall@1"].values()) == report["protocol"]["test_items"]


def test_settings_are_written_as_a_person_would(inside):
    command = "compare v.npy --labels l.npy --methods universal"
    (settings,) = json.loads(run(command + " --json").stdout)["methods"][1]["settings"]
    assert (settings["sharpness"], settings["blend"]) == (3.5, 0.5)
    assert "sharpness 3.5, blend 0.5, pull 1\n" in run(command).stdout


def test_tables_say_the_same_as_the_document(inside):
    command = "compare v.npy --labels l.npy --methods alpha-qe-8-3,lda --per-class --against alpha-qe-8-3"
    text, report = run(command), json.loads(run(command + " --json").stdout)
    assert text.exit_code == 0
    row = next(line for line in text.stdout.splitlines() if line.startswith("alpha-qe-8-3"))
    expected = report["methods"][1]
    difference = expected["map@r_vs_raw"]
    assert f"{100 * expected['map@r']:.2f}" in row
    head = next(line for line in text.stdout.splitlines() if line.startswith("method"))
    assert (
        head.split("  ")[0] == "method" and "R@1, %" in head and "MAP@R, %" in head and "points vs raw (95 %)" in head
    )
    assert (
        f"{100 * difference['difference']:+.2f} ({100 * difference['low']:+.2f} to {100 * difference['high']:+.2f})"
        in row
    )
    assert "k 8, alpha 3\n" in text.stdout
    assert "lda against alpha-qe-8-3" in text.stdout
    worst = report["harm"]["queries"][0]
    assert f"{100 * worst['map@r_before']:.2f}" in text.stdout
    assert f"... and {len(report['harm']['queries']) - 20:,} more" in text.stdout


@pytest.mark.parametrize("source", ["v.npy --labels l.npy --split s.npy", "v.npz --split s.txt", "v.npz --split part"])
def test_a_split_of_ones_own(inside, source):
    report = json.loads(run(f"compare {source} --methods raw --json").stdout)
    assert (report["protocol"]["training_classes"], report["protocol"]["test_classes"]) == (6, 4)
    assert report["protocol"]["split"] == f"given by {source.split()[-1]}"


def test_a_csv_says_it_too(inside):
    assert json.loads(run("compare v.npz --split s.csv --methods raw --json").stdout)["protocol"]["test_classes"] == 4


def test_overlap_is_a_warning_on_standard_error(inside):
    outcome = run("compare v.npz --split overlap.npy --methods raw")
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith("warning: 10 of the test classes are training classes too")


def test_a_skipped_method_says_why(inside):
    np.save("two.npy", np.repeat([0, 1, 2], 200))
    outcome = run("compare v.npy --labels two.npy --methods lda")
    assert outcome.exit_code == 0
    assert "skipped: n_components is 0, but 1 classes" in outcome.stdout


def test_more_can_be_measured_at_any_number_of_items(inside):
    command = "compare v.npz --methods alpha-qe-8-3 --at 3,10"
    text, report = run(command), json.loads(run(command + " --json").stdout)
    names = [f"{kind}@{k}" for kind in ("recall", "precision", "ndcg", "mrr") for k in (3, 10)]
    raw, expanded = report["methods"]
    table = text.stdout.partition("method        recall@3, %")[2].splitlines()
    for row, line in zip((raw, expanded), table[1:3], strict=True):
        assert line.split() == [row["method"], *(f"{100 * row[name]:.2f}" for name in names)]
    for name in names:
        versus = expanded[f"{name}_vs_raw"]
        assert versus["difference"] == pytest.approx(expanded[name] - raw[name])
        assert versus["low"] <= versus["difference"] <= versus["high"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("v.npz --methods raw --at 0", "--at is 0; wanted whole numbers"),
        ("v.npz --methods raw --at 600", "recall@600 was asked for, but a query has only"),
        ("v.npz --methods raw,nothing", "unknown method 'nothing'; wanted one of all, raw"),
        ("v.npz --methods raw --split thirds", "--split is thirds, not half, and cannot be used as a column or a file"),
        ("v.npz --methods raw --split no.txt", "no.txt does not exist"),
        (
            "v.npz --methods raw --split bad.txt",
            "entry 599 of the split is 'dev', and 1 in all are neither 'train' nor 'test'",
        ),
        ("v.npz --methods raw --split short.txt", "the split has 599 entries for 600 vectors"),
        ("v.npz --methods raw --split one.txt", "the split has 1 entry for 600 vectors"),
        ("v.npz --methods raw --labels one.txt", "1 labels for 600 vectors"),
        ("one.npy --methods raw --labels one.txt", "all items (1) are of one class"),
        ("v.npz --methods raw --split l.npy", "entry 0 of the split is '0'"),
        ("v.npz --labels one-class.npy --methods raw", ") are of one class"),
        ("v.npz --methods raw --against lda", "--against is lda, which is not compared"),
        ("v.npy --methods raw", "v.npy has no labels of its own"),
    ],
)
def test_bad_input_gets_one_sentence(inside, command, message):
    outcome = run(f"compare {command}")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert len(outcome.stderr.splitlines()) == 1 and outcome.stderr.startswith("error: ")
    assert message in outcome.stderr


def test_protocols_and_splits_are_asked_for_by_name(inside):
    command = "compare v.npy --labels l.npy --methods alpha-qe-8-3"
    outcome = run(f"{command} --protocol together,served --protocol open --splits 2 --json")
    report = json.loads(outcome.stdout)
    assert list(report["further"]) == ["served", "open"] and report["protocol"]["splits"] == 2
    served, opened = (report["further"][name] for name in ("served", "open"))
    assert served["protocol"]["by_split"][0]["drawn"].endswith("gallery items of 5 classes")
    assert opened["methods"][1]["auroc"] > 0.5
    text = run(f"{command} --protocol served,open").stdout
    assert "open, AUROC / R@1" in text and "by_split" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--protocol serve", "unknown protocol 'serve'"),
        ("--protocol ,", "unknown protocol ''"),
        ("--splits 2 --split s.npy", "splits is 2, but the split is given"),
        ("--splits 0", "--splits"),
    ],
)
def test_protocols_and_splits_that_cannot_be_are_refused(options, message, inside):
    outcome = run(f"compare v.npy --labels l.npy --methods raw {options}")
    assert outcome.exit_code == 2 and message in outcome.stderr
