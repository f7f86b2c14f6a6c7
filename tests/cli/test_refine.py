"""`entourage refine` from outside: with a model and without, alone and in a gallery, in every format."""

import json
import os
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.shop import COUNT, DIM, document, run
from tests.stores.engines import ENGINES

from entourage.evaluation.movement import cosines
from entourage.refiner.estimator import ContextRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

ONE_SIDED = "warning: search the refined queries in the refined gallery only: add --context-out to refine it\n"


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_refine_writes_the_format_it_read_with_ids_and_order(inside, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    report = document(run(f"refine v{suffix} --model model --out {out} --json"))
    assert (report["protocol"]["items"], report["protocol"]["steps"], report["out"]) == (COUNT, 2, str(out))
    assert os.listdir(tmp_path) == [out.name]
    run(f"refine v.npy --model model --out {tmp_path}/plain.npy")
    expected = np.load(tmp_path / "plain.npy")
    assert not np.allclose(expected, np.load("v.npy"), atol=0.1)
    given = Embeddings.from_vectors(np.load("v.npy"))
    assert report["metrics"] == pytest.approx(cosines(given, expected), abs=1e-6)
    if suffix == ".npz":
        with np.load("v.npz") as before, np.load(out) as after:
            assert after.files == [*before.files, "entourage_refined"] and after["vectors"].dtype == np.float64
            assert after["ids"].tolist() == before["ids"].tolist()
            np.testing.assert_allclose(after["vectors"], expected, atol=1e-5)
    if suffix == ".parquet":
        before, after = pq.read_table("v.parquet"), pq.read_table(out)
        assert after.schema.equals(before.schema)
        assert after.drop_columns("vector").equals(before.drop_columns("vector"))
        np.testing.assert_allclose(after.column("vector").to_pylist(), expected, atol=1e-5)


@pytest.fixture
def clusters(tmp_path):
    """Queries and a gallery on which the universal refiner has something to say."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(20), 12)
    x = (rng.normal(size=(20, 32))[classes] + rng.normal(size=(240, 32))).astype(np.float32)
    np.save(tmp_path / "q.npy", x[::3])
    np.save(tmp_path / "g.npy", np.delete(x, np.s_[::3], axis=0))
    return x[::3], np.delete(x, np.s_[::3], axis=0)


def test_refine_without_a_model_needs_no_labels(clusters, tmp_path):
    _, x = clusters
    report = document(run(f"refine {tmp_path}/g.npy --out {tmp_path}/o.npy --json"))
    refiner = ContextRefiner().fit(x)
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), refiner.transform(x))
    assert (report["protocol"]["model"], report["protocol"]["steps"]) == ("universal, no labels", 5)
    moved = cosines(Embeddings.from_vectors(x), np.load(tmp_path / "o.npy"))
    assert report["metrics"] == pytest.approx(refiner.report()["metrics"] | moved)
    assert moved["mean_cosine_to_input"] < 0.95  # it did something


def test_refine_writes_the_gallery_that_belongs_to_the_queries(clusters, tmp_path):
    queries, gallery = clusters
    command = f"refine {tmp_path}/q.npy --context {tmp_path}/g.npy --out {tmp_path}/o.npy"
    outcome = run(command)
    assert (outcome.exit_code, outcome.stderr) == (0, ONE_SIDED)
    report = document(run(f"{command} --context-out {tmp_path}/go.npy --overwrite --json"))
    assert report["protocol"]["context"] == f"gallery: {len(gallery)} items"
    refined, searched = ContextRefiner().fit(gallery).transform_both(queries, gallery)
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), refined)
    np.testing.assert_array_equal(np.load(tmp_path / "go.npy"), searched)
    one_set = (
        f"refine {tmp_path}/g.npy --context {tmp_path}/g.npy --out {tmp_path}/a.npy --context-out {tmp_path}/b.npy"
    )
    document(run(f"{one_set} --json"))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes() == (tmp_path / "go.npy").read_bytes()


def test_refine_without_a_model_says_when_it_does_nothing(inside, tmp_path):
    outcome = run(f"refine few.npy --out {tmp_path}/o.npy --json")
    warning = "5 distinct vectors have too few neighbours to learn from; 20 are needed"
    assert outcome.stderr == f"warning: the vectors are only scaled to length 1: {warning}\n"
    assert json.loads(outcome.stdout)["metrics"]["mean_cosine_to_input"] == pytest.approx(1)
    raw = np.load("few.npy")
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), raw / np.linalg.norm(raw, axis=1)[:, None], atol=1e-6)


def test_no_steps_give_the_normalised_input_back(inside, tmp_path):
    assert run(f"refine v.npy --model model --out {tmp_path}/out.npy --steps 0").exit_code == 0
    raw = np.load("v.npy")
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), raw / np.linalg.norm(raw, axis=1)[:, None], atol=1e-6)


def test_context_is_another_gallery_but_the_vectors_themselves_are_not(inside, tmp_path):
    np.save(tmp_path / "half.npy", np.load("v.npy")[::2])
    contexts = {"none": "", "same": "--context ./v.npy", "half": f"--context {tmp_path}/half.npy"}
    outputs = {}
    for name, option in contexts.items():
        outcome = run(f"refine v.npy --model model --out {tmp_path}/{name}-out.npy {option} --json")
        assert outcome.stderr == (ONE_SIDED if name == "half" else "")
        outputs[name] = np.load(tmp_path / f"{name}-out.npy"), json.loads(outcome.stdout)["protocol"]["context"]
    np.testing.assert_array_equal(outputs["none"][0], outputs["same"][0])
    assert outputs["none"][1] == outputs["same"][1] == "transductive: the vectors themselves"
    assert not np.allclose(outputs["none"][0], outputs["half"][0])
    assert outputs["half"][1] == "gallery: 40 items"


def test_a_context_without_ids_is_said_to_hide_the_item_itself(inside, tmp_path):
    shutil.copy("v.npy", tmp_path / "copy.npy")
    outputs = f"--out {tmp_path}/o.npy --context-out {tmp_path}/g.npy --json"
    shown = document(run(f"refine v.npy --model model --context {tmp_path}/copy.npy {outputs}"))
    assert "cannot be recognised" in shown["protocol"]["own_item"]
    shutil.copy("v.npz", tmp_path / "copy.npz")
    outputs = f"--out {tmp_path}/o.npz --context-out {tmp_path}/g.npz --json"
    shown = document(run(f"refine v.npz --model model --context {tmp_path}/copy.npz {outputs}"))
    assert shown["protocol"]["own_item"] == f"left out by id, {COUNT} times"


def test_overwrite_replaces_an_output(inside, tmp_path):
    np.save(tmp_path / "there.npy", np.zeros((3, 2)))
    assert run(f"refine v.npy --model model --out {tmp_path}/there.npy --overwrite").exit_code == 0
    assert np.load(tmp_path / "there.npy").shape == (COUNT, DIM)
    assert os.listdir(tmp_path) == ["there.npy"]


def test_a_run_is_scored_at_the_numbers_asked_for(inside, tmp_path):
    report = document(run(f"refine v.npz --run {tmp_path}/run --at 3,7 --json"))
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert {"precision@3", "ndcg@7", "mrr@3", "recall@1"} <= set(report["scores"]["after"])
    assert kept["metrics"] == report["scores"]["after"] and "recall@2" not in kept["metrics"]
    assert set(kept["intervals"]) == set(kept["metrics"])
    shown = run(f"refine v.npz --run {tmp_path}/other --at 3,7").stdout
    line = next(line for line in shown.splitlines() if line.startswith("precision@3 "))
    before, after = (report["scores"][when]["precision@3"] for when in ("before", "after"))
    assert line.split()[1:] == [f"{100 * before:.2f}", f"{100 * after:.2f}", f"{100 * (after - before):+.2f}"]
    head = next(line for line in shown.splitlines() if line.startswith("metric "))
    assert "before, %" in head and "after, %" in head and "change, points" in head


def test_the_estimated_purity_is_in_percent_in_the_table_and_a_fraction_in_the_document(clusters, tmp_path):
    share = document(run(f"refine {tmp_path}/q.npy --out {tmp_path}/o.npy --json"))["metrics"]["estimated_purity"]
    shown = run(f"refine {tmp_path}/q.npy --out {tmp_path}/o.npy --overwrite").stdout
    line = next(line for line in shown.splitlines() if line.startswith("estimated purity"))
    assert 0 < share < 1 and line.split()[-2:] == [f"{100 * share:.2f}", "%"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("v.npy --out {}/o.npy --at 5", "--at is 5 but there is no --run to keep it in"),
        ("v.npy --run {}/r --at 5,6", "--at is 5,6 but there are no labels to score by; add --labels"),
        (f"v.npz --run {{}}/r --at {COUNT}", f"recall@{COUNT} was asked for, but a query has only {COUNT - 1} items"),
    ],
)
def test_scores_that_cannot_be_measured_are_refused_before_anything_is_refined(inside, tmp_path, options, message):
    refused = run(f"refine {options.format(tmp_path)}")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr and not os.listdir(tmp_path)


def test_refine_writes_how_sure_one_can_be_of_each_query(clusters, tmp_path):
    queries, gallery = clusters
    np.savez(tmp_path / "q.npz", vectors=queries, ids=[f"q{i}" for i in range(len(queries))])
    refine = f"refine {tmp_path}/q.npz --context {tmp_path}/g.npy --run {tmp_path}/run"
    report = document(run(f"{refine} --confidence {tmp_path}/sure.csv --json"))
    assert report["confidence"] == f"{tmp_path}/sure.csv"
    lines = (tmp_path / "sure.csv").read_text().splitlines()
    assert lines[0] == "id,confidence" and lines[1].startswith("q0,")
    wanted = ContextRefiner().fit(gallery).serve(gallery).confidence(queries)
    np.testing.assert_allclose([float(line.split(",")[1]) for line in lines[1:]], wanted, atol=1e-6)
    again = document(run(f"{refine} --confidence {tmp_path}/sure.csv --overwrite --json"))
    assert again["confidence"] == report["confidence"]
    run(f"refine {tmp_path}/g.npy --out {tmp_path}/own.npy --confidence {tmp_path}/own.csv")
    own = np.loadtxt(tmp_path / "own.csv", delimiter=",", skiprows=1)  # among the others, by row number
    assert own[:, 0].tolist() == list(range(len(gallery))) and own[:, 1].mean() == pytest.approx(0.5, abs=0.01)


def refused(result) -> str:
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    return result.stderr


def test_a_store_is_refined_where_it_is(inside, tmp_path):
    pytest.importorskip("lancedb")
    url = ENGINES["lance"].fill(tmp_path, np.arange(COUNT), np.load("v.npy"))
    shown = document(run(f"refine {url} --json"))
    assert shown["out"].endswith("db/items_refined") and shown["protocol"]["items"] == COUNT
    assert len(ENGINES["lance"].read(tmp_path, "items_refined")) == COUNT
    assert "exists already" in refused(run(f"refine {url}"))
    assert run(f"refine {url} --overwrite").exit_code == 0
    assert "there is no table 'none'" in refused(run(f"refine lance://{tmp_path}/db/none"))
    assert "holds no vectors in 'colour'" in refused(run(f"refine {url} --column colour --overwrite"))
    assert "--run is kept with the store" in refused(run(f"refine {url} --run kept"))


def test_a_file_is_refined_in_stages_where_that_is_asked_for(inside, tmp_path):
    run(f"refine v.npy --out {tmp_path}/memory.npy")
    shown = document(run(f"refine v.npy --out {tmp_path}/stages.npy --search exact --json"))
    assert "streamed" in shown["protocol"]["context"] and "exact" in shown["protocol"]["neighbors"]
    np.testing.assert_allclose(np.load(tmp_path / "stages.npy"), np.load(tmp_path / "memory.npy"), atol=2e-6)
    assert "to resume from" in refused(run(f"refine v.npy --out {tmp_path}/new.npy --resume"))
    assert "another format than .npy" in refused(run(f"refine v.npz --out {tmp_path}/new.npz --resume"))


def test_a_folder_of_parquet_files_is_refined_into_another(inside, tmp_path):
    ENGINES["parquet"].fill(tmp_path, np.arange(COUNT), np.load("v.npy"))
    run(f"refine v.npy --out {tmp_path}/memory.npy")
    shown = document(run(f"refine {tmp_path}/items --out {tmp_path}/new --json"))
    assert shown["out"] == f"{tmp_path}/new" and shown["protocol"]["items"] == COUNT
    found = ENGINES["parquet"].read(tmp_path, "new")
    np.testing.assert_allclose([found[row][0] for row in range(COUNT)], np.load(f"{tmp_path}/memory.npy"), atol=2e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items", "memory.npy", "new"]
    assert "exists already" in refused(run(f"refine {tmp_path}/items --out {tmp_path}/new"))
    assert run(f"refine {tmp_path}/items --out {tmp_path}/new --overwrite").exit_code == 0
    assert "add it" in refused(run(f"refine {tmp_path}/items"))
    assert "is an input" in refused(run(f"refine {tmp_path}/items --out {tmp_path}/items --overwrite"))
    assert "lies in the input" in refused(run(f"refine {tmp_path}/items --out {tmp_path}/items/new"))
    assert "--run is kept with the folder" in refused(run(f"refine {tmp_path}/items --run kept"))
    assert "--confidence is c.csv" in refused(run(f"refine {tmp_path}/items --out {tmp_path}/c --confidence c.csv"))
