"""`entourage evaluate` from outside: every metric, as a document and as a table."""

import json

import numpy as np
import pytest
from tests.cli.shop import COUNT, document, run

from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings
from entourage.stores import read_vectors

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

METRICS = [
    *(f"recall@{k}" for k in (1, 2, 4, 8, 10, 100)),
    *("ndcg@10", "mrr", "r-precision", "map@r", "map@1000", "nmi"),
]


@pytest.mark.parametrize("source", ["v.npy --labels l.npy", "v.npz --labels l.csv", "v.parquet --labels n"])
def test_evaluate_reports_every_metric_as_a_fraction(inside, source):
    scores = document(run(f"evaluate {source} --json"))
    assert set(scores) == {"protocol", "metrics", "warnings"}
    assert list(scores["metrics"]) == METRICS
    path, _, labels = source.split()
    assert scores["metrics"] == pytest.approx(evaluate_embeddings(read_vectors(path, labels=labels)).metrics)
    assert scores["metrics"]["recall@1"] == pytest.approx(0.85)
    assert scores["protocol"]["queries"] == scores["protocol"]["self_matches_removed_by_id"] == COUNT


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_refined_and_raw_vectors_are_not_compared_in_silence(inside, tmp_path, suffix):
    raw, refined = f"v{suffix}", f"{tmp_path}/refined{suffix}"
    run(f"refine {raw} --model model --out {refined}")
    for queries, gallery in ((refined, raw), (raw, refined)):
        command = f"evaluate {queries} --labels l.csv --gallery {gallery} --gallery-labels l.csv --no-nmi --json"
        (warning,) = json.loads(run(command).stdout)["warnings"]
        assert warning.startswith(f"{refined} holds refined vectors and {raw} does not")
        lists = run(f"rerank {queries} --gallery {gallery} --out {tmp_path}/lists.parquet --overwrite")
        assert lists.stderr.count("holds refined vectors") == 1
    run(f"refine {raw} --model model --out {tmp_path}/again{suffix}")
    for one, other in ((refined, f"{tmp_path}/again{suffix}"), (raw, raw), (refined, "v.npy")):
        command = f"evaluate {one} --labels l.csv --gallery {other} --gallery-labels l.csv --no-nmi --json"
        assert "holds refined vectors" not in " ".join(json.loads(run(command).stdout)["warnings"])
    mixed = run(f"refine {refined} --context {raw} --model model --out {tmp_path}/twice{suffix}")
    assert mixed.stderr.count("holds refined vectors") == 1


def test_evaluate_against_a_gallery(inside, tmp_path):
    np.save(tmp_path / "g.npy", np.load("v.npy")[1::2])
    np.save(tmp_path / "gl.npy", np.load("l.npy")[1::2])
    gallery = f"--gallery {tmp_path}/g.npy --gallery-labels {tmp_path}/gl.npy"
    scores = document(run(f"evaluate v.npy --labels l.npy {gallery} --no-nmi --json"))
    assert (scores["protocol"]["gallery"], scores["protocol"]["gallery_is"]) == (COUNT // 2, "a separate set")
    assert list(scores["metrics"]) == METRICS[:-1]
    same = document(run("evaluate v.npy --labels l.npy --gallery v.npy --gallery-labels l.npy --no-nmi --json"))
    assert same == document(run("evaluate v.npy --labels l.npy --no-nmi --json"))
    np.save(tmp_path / "other.npy", np.load("l.npy")[::-1])
    refused = run(f"evaluate v.npy --labels l.npy --gallery v.npy --gallery-labels {tmp_path}/other.npy")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "is v.npy itself but has other labels" in refused.stderr


def test_the_table_holds_the_same_numbers_in_percent_and_nothing_on_standard_error(inside):
    shown = run("evaluate v.npz")
    scores = document(run("evaluate v.npz --json"))["metrics"]
    assert shown.stderr == ""
    protocol, table = shown.stdout.split("\n\n")
    lines = [line.split() for line in table.splitlines()]
    assert lines == [[name, f"{100 * scores[name]:.2f}", "%"] for name in METRICS]
    assert "%" not in protocol


def test_the_numbers_of_items_to_measure_at_can_be_chosen(inside):
    chosen = document(run("evaluate v.npz --no-nmi --at 5,1,20 --json"))
    assert chosen["metrics"] == pytest.approx(
        evaluate_embeddings(read_vectors("v.npz"), at=(1, 5, 20), nmi=False).metrics
    )
    assert {"recall@20", "precision@5", "ndcg@20", "mrr@1"} <= set(chosen["metrics"])
    assert "recall@2" not in chosen["metrics"]
    assert chosen["protocol"]["precision@k"] == "divided by k"


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("0", "--at is 0; wanted whole numbers from 1 on, such as 1, 5, 10"),
        ("x", "--at is 'x'; wanted whole numbers from 1 on"),
        ("1,,5", "--at is '1,,5'; wanted whole numbers from 1 on"),
        ("1.5", "--at is '1.5'; wanted whole numbers from 1 on"),
        ("9" * 5000, "wanted whole numbers from 1 on"),
        ("5,1,5", "--at names 5 more than once"),
        (f"1,{COUNT}", f"recall@{COUNT} was asked for, but a query has only {COUNT - 1} items to retrieve"),
    ],
)
def test_numbers_that_cannot_be_measured_at_are_refused(inside, at, message):
    refused = run("evaluate v.npz --at", at)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr and len(refused.stderr.splitlines()) == 1


def test_recall_alone_is_measured_where_a_paper_prints_it(inside):
    usual = document(run("evaluate v.npz --no-nmi --json"))["metrics"]
    chosen = document(run("evaluate v.npz --no-nmi --recall-at 10,40,20 --json"))["metrics"]
    assert list(chosen) == [f"recall@{k}" for k in (1, 10, 20, 40)] + [name for name in usual if "recall" not in name]
    assert {name: usual[name] for name in chosen if name in usual} == pytest.approx(
        {name: chosen[name] for name in usual if name in chosen}
    )
    assert chosen["recall@10"] <= chosen["recall@20"] <= chosen["recall@40"]
    for options, message in (
        ("--recall-at 1,x", "--recall-at is '1,x'; wanted whole numbers from 1 on"),
        ("--recall-at 5,5", "--recall-at names 5 more than once"),
        (f"--recall-at {COUNT}", f"recall@{COUNT} was asked for"),
        ("--recall-at 10 --at 1,5", "--at is 1,5 and --recall-at is 10; wanted one of them"),
    ):
        refused = run(f"evaluate v.npz {options}")
        assert (refused.exit_code, refused.stdout) == (2, "") and message in refused.stderr
    with pytest.raises(InputError, match="at is 1 and recall_at is 2"):
        evaluate_embeddings(read_vectors("v.npz"), at=1, recall_at=2)


def test_a_querys_own_camera_and_junk_are_left_out_where_the_file_says_so(tmp_path):
    """Rankings as in test_shots: 2 junk, 5 own camera, 10 wrong, 20 right, 30 wrong, 40 right, 50 own camera."""

    def at(*degrees):
        return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)

    np.savez(tmp_path / "q.npz", vectors=at(0), labels=[7], cameras=[1])
    persons, cameras = [-1, 7, 0, 7, 9, 7, 7], [1, 1, 1, 2, 1, 3, 1]
    np.savez(tmp_path / "g.npz", vectors=at(2, 5, 10, 20, 30, 40, 50), labels=persons, cameras=cameras)
    command = f"evaluate {tmp_path}/q.npz --gallery {tmp_path}/g.npz --no-nmi --json"
    scores = document(run(f"{command} --junk -1"))
    assert scores["metrics"]["map"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert "same_camera" in scores["protocol"]
    without_exclusions = document(run(f"{command} --no-exclusions"))
    assert "map" not in without_exclusions["metrics"] and without_exclusions["metrics"]["recall@2"] == 1
