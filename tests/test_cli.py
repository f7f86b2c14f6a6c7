"""The command line from outside: what it prints where, what it leaves on disk, and how it says no."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from entourage import __version__
from entourage.cli import app
from entourage.systems.context_refiner import ContextRefiner

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

CLASSES, PER_CLASS, DIM = 8, 10, 8
COUNT = CLASSES * PER_CLASS
METRICS = [*(f"recall@{k}" for k in (1, 2, 4, 8, 10, 100)), "r-precision", "map@r", "map@1000", "nmi"]
FIT = "--recipe paper --blocks 2 --epochs 2"


def run(command: str, *more):
    """A command in this process; `more` are arguments that may hold spaces."""
    return CliRunner().invoke(app, [*command.split(), *map(str, more)], catch_exceptions=False)


def document(result) -> dict:
    """What --json printed: one document, and nothing else anywhere."""
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too, to tell whether a command changed anything."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder of good vectors and labels, a model fitted on them, and everything that can be wrong with either."""
    folder = tmp_path_factory.mktemp("shop")
    _write_good_files(folder)
    fitted = run(f"fit {folder}/v.npy --labels {folder}/l.txt --out {folder}/model {FIT}")
    assert fitted.exit_code == 0, fitted.stderr
    _write_bad_files(folder)
    return folder


@pytest.fixture
def inside(shop, monkeypatch):
    monkeypatch.chdir(shop)
    return shop


def _write_good_files(folder: Path) -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(CLASSES), PER_CLASS)
    x = (rng.normal(size=(CLASSES, DIM))[classes] + 0.6 * rng.normal(size=(COUNT, DIM))).astype(np.float32)
    ids, labels = [f"id {row}" for row in range(COUNT)], [f"class {code}" for code in classes]
    np.save(folder / "v.npy", x)
    np.save(folder / "l.npy", classes)
    np.savez(folder / "v.npz", vectors=x.astype(np.float64), ids=ids, labels=labels, coarse=classes % 3)
    pq.write_table(pa.table({"id": ids, "vector": list(x), "label": labels, "n": classes}), folder / "v.parquet")
    (folder / "l.txt").write_text("\n".join(labels) + "\n")
    lines = [f"{item},{label}\n" for item, label in zip(ids, labels, strict=True)]
    (folder / "l.csv").write_text("id,label\n" + "".join(reversed(lines)))


def _write_bad_files(folder: Path) -> None:
    x, classes = np.load(folder / "v.npy"), np.load(folder / "l.npy")
    for name, value in {"nan": np.nan, "inf": np.inf, "zero": 0}.items():
        bad = x.copy()
        bad[3] = value
        np.save(folder / f"{name}.npy", bad)
    np.save(folder / "wide.npy", np.hstack([x, x]))
    np.save(folder / "few.npy", x[:5])
    np.save(folder / "short-labels.npy", classes[:-1])
    np.save(folder / "one-class.npy", classes * 0)
    np.save(folder / "all-different.npy", np.arange(COUNT))
    np.save(folder / "objects.npy", np.array([{}, None]), allow_pickle=True)
    np.savez(folder / "twice.npz", vectors=x, ids=classes)
    pq.write_table(pa.table({"vector": [row[: 1 + i % 2] for i, row in enumerate(x)]}), folder / "ragged.parquet")
    null = pa.array(["a", None] * (COUNT // 2))
    pq.write_table(pa.table({"vector": list(x), "id": null}), folder / "null-id.parquet")
    pq.write_table(pa.table({"vector": list(x), "label": null}), folder / "null-label.parquet")
    (folder / "text.npy").write_text("0.1 0.2 0.3\n")
    for name in ("v.npy", "v.npz", "v.parquet"):
        whole = (folder / name).read_bytes()
        (folder / f"cut-{name}").write_bytes(whole[: len(whole) // 2])
    for name, damaged in {"cut-model": "model.safetensors", "bad-config": "config.json"}.items():
        shutil.copytree(folder / "model", folder / name)
        (folder / name / damaged).write_bytes((folder / "model" / damaged).read_bytes()[:100])
    (folder / "there.npy").write_text("in the way")
    (folder / "precious").mkdir()
    (folder / "precious" / "thesis.tex").write_text("years of work")


# ---- one sentence for each thing that can be wrong ---------------------------------------------------------

REFINE = "--model model --out out.npy"
ONE_SIDED = "warning: search the refined queries in the refined gallery only: add --context-out to refine it\n"
BAD = {
    # vectors
    "NaN": (f"refine nan.npy {REFINE}", "nan.npy: row 3 of the vectors contains NaN"),
    "Inf": (f"refine inf.npy {REFINE}", "inf.npy: row 3 of the vectors contains Inf"),
    "zero vector": (f"refine zero.npy {REFINE}", "zero.npy: row 3 of the vectors is all zeros"),
    "NaN in the context": (f"refine v.npy --context nan.npy {REFINE}", "nan.npy: row 3"),
    "NaN in the gallery": ("evaluate v.npz --gallery nan.npy --gallery-labels l.npy", "nan.npy: row 3"),
    "wrong dimension": (f"refine wide.npy {REFINE}", "the vectors have 16 dimensions but the model was trained on 8"),
    "wrong gallery": ("evaluate v.npz --gallery wide.npy --gallery-labels l.npy", "8 dimensions and the gallery 16"),
    "k >= N to refine": (f"refine few.npy {REFINE}", "5 vectors to find k ="),
    "k >= N to fit": (
        "fit v.npz --out out --recipe paper --neighbors 80",
        "n_neighbors is 80 but there are only 80 vectors",
    ),
    "repeated ids": ("evaluate twice.npz --labels l.npy", "twice.npz: id 0 appears 10 times (8 ids repeated)"),
    "ragged rows": ("evaluate ragged.parquet", "ragged.parquet: column `vector` has rows of 1 or 2 values"),
    "null id": ("refine null-id.parquet --model model --out out.parquet", "column `id` has 40 missing values"),
    # labels
    "too few labels": ("fit v.npy --labels short-labels.npy --out out", "79 labels for 80 vectors"),
    "no labels to fit": ("fit v.npy --out out", "v.npy has no labels of its own; wanted one per vector: give them"),
    "no labels": ("evaluate v.npy", "give them with --labels"),
    "no gallery labels": ("evaluate v.npz --gallery few.npy", "give them with --gallery-labels"),
    "labels of no gallery": ("evaluate v.npz --gallery-labels l.npy", "there is no gallery; add --gallery"),
    "null label": ("evaluate null-label.parquet", "null-label.parquet: column `label` has 40 missing values"),
    "unknown column": ("evaluate v.parquet --labels kind", "kind is neither a file nor a column of v.parquet"),
    "one class": ("fit v.npy --labels one-class.npy --out out", "1 class with two or more items"),
    "no usable class": ("fit v.npy --labels all-different.npy --out out", "0 classes with two or more items"),
    # files
    "missing file": (f"refine nothing.npy {REFINE}", "nothing.npy does not exist; check the path"),
    "missing labels": ("evaluate v.npy --labels nothing.csv", "nothing.csv does not exist; check the path"),
    "unknown suffix": ("evaluate l.csv", "l.csv ends in .csv; vectors are read from .npy, .npz, .parquet files"),
    "truncated .npy": (f"refine cut-v.npy {REFINE}", "cut-v.npy cannot be read as .npy"),
    "truncated .npz": ("evaluate cut-v.npz", "cut-v.npz cannot be read as .npz"),
    "truncated .parquet": ("evaluate cut-v.parquet", "cut-v.parquet cannot be read as .parquet"),
    "text named .npy": (f"refine text.npy {REFINE}", "text.npy begins with b'0.1 0.'"),
    "pickled objects": (f"refine objects.npy {REFINE}", "objects.npy holds Python objects, which are never loaded"),
    "no model": ("refine v.npy --model nothing --out out.npy", "nothing has no config.json and no model.safetensors"),
    "truncated model": ("refine v.npy --model cut-model --out out.npy", "the model in cut-model cannot be used"),
    "damaged config": ("refine v.npy --model bad-config --out out.npy", "the model in bad-config cannot be used"),
    # outputs
    "output in the way": ("refine v.npy --model model --out there.npy", "there.npy exists already"),
    "model in the way": ("fit v.npy --labels l.npy --out model", "model exists already"),
    "never ours to replace": ("fit v.npz --out precious --overwrite", "precious is a folder that entourage did not"),
    "model over a file": ("fit v.npz --out l.csv --overwrite", "--out is l.csv; wanted the name of a folder"),
    "model over here": ("fit v.npz --out . --overwrite", "--out is .; wanted the name of a folder"),
    "another format": ("refine v.npy --model model --out out.npz", "call it out.npy"),
    "no such folder": ("refine v.npy --model model --out new/out.npy", "the folder new does not exist"),
    "nothing to resume": ("fit v.npz --out out --recipe paper --resume", "there is no out.checkpoint to resume from"),
    # settings
    "gallery to nowhere": (f"refine v.npy {REFINE} --context-out g.npy", "there is no gallery; add --context or"),
    "gallery in the way": (f"refine v.npy {REFINE} --context few.npy --context-out there.npy", "there.npy exists"),
    "gallery of another format": (f"refine v.npy {REFINE} --context v.npz --context-out g.npy", "call it g.npz"),
    "two outputs, one name": (
        "refine v.npy --model model --context nan.npy --out out.npy --context-out ./out.npy",
        "--out and --context-out",
    ),
    "too many steps": (f"refine v.npy {REFINE} --steps 3", "steps is 3; wanted 0 ≤ steps ≤ 2"),
    "too many universal steps": ("refine v.npy --out out.npy --steps 6", "steps is 6; wanted 0 ≤ steps ≤ 5"),
    "unknown recipe": ("fit v.npz --out out --recipe fast", "recipe is 'fast'; wanted"),
    "no resuming": ("fit v.npz --out out --resume", "--resume goes on with the paper's recipe, but --recipe is relat"),
    "no passes": ("fit v.npz --out out --epochs 3", 'epochs is 3 but only recipe="paper" uses it; leave it out'),
    "no head": ("fit v.npz --out out --out-dim 3", 'out_dim is 3 but only recipe="paper" uses it'),
    "no neighbours": ("fit v.npz --out out --neighbors 0", "n_neighbors is 0; wanted a whole number, at least 1"),
    "no epochs": ("fit v.npz --out out --recipe paper --epochs 0", "epochs is 0; wanted a whole number, at least 1"),
    "hopeless rate": (f"fit v.npz --out out {FIT} --learning-rate 1e30", "lower the learning rate"),
    "unknown rule": ("evaluate v.npz --no-match maybe", "no_match is 'maybe'; wanted"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("as_json", [False, True], ids=["", "json"])
def test_bad_input_gets_one_sentence_exit_code_2_and_leaves_nothing(inside, command, message, as_json):
    before = files(inside)
    result = run(command + (" --json" if as_json else ""))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.endswith("\n")
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert files(inside) == before


def test_a_damaged_model_never_runs_code(inside, tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    shutil.copytree("model", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "new.checkpoint").write_bytes(pickle.dumps(Trap()))
    refined = run(f"refine v.npy --model {tmp_path}/model --out {tmp_path}/out.npy")
    resumed = run(f"fit v.npz --out {tmp_path}/new --resume {FIT}")
    assert (refined.exit_code, resumed.exit_code) == (2, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "new.checkpoint"]


# ---- fit ---------------------------------------------------------------------------------------------------


def test_fit_writes_a_model_and_reports_it(inside, tmp_path):
    outcome = run(f"fit v.parquet --out {tmp_path}/m {FIT} --json")
    report = json.loads(outcome.stdout)
    assert outcome.stderr.splitlines() == [f"warning: {warning}" for warning in report["warnings"]]
    assert sorted(os.listdir(tmp_path)) == ["m"]  # no checkpoint is left
    assert sorted(os.listdir(tmp_path / "m")) == ["config.json", "model.safetensors"]
    assert (report["protocol"]["items"], report["protocol"]["classes"]) == (COUNT, CLASSES)
    assert report["model"] == f"{tmp_path}/m"
    assert set(report["metrics"]) == {"held_out_map@r_raw", "held_out_map@r_refined"}
    assert all(0 <= value <= 1 for value in report["metrics"].values())
    assert [point["epoch"] for point in report["curve"]] == [0, 1, 2]


def test_fit_learns_by_the_relational_recipe_unless_told_otherwise(inside, tmp_path):
    outcome = run(f"fit v.parquet --out {tmp_path}/m --neighbors 6 --blocks 3 --json")
    report = json.loads(outcome.stdout)
    assert outcome.stderr.splitlines() == [f"warning: {warning}" for warning in report["warnings"]]
    assert sorted(os.listdir(tmp_path)) == ["m"]
    assert sorted(os.listdir(tmp_path / "m")) == ["config.json", "model.safetensors"]
    protocol = {name: report["protocol"][name] for name in ("recipe", "items", "classes", "steps")}
    assert protocol == {"recipe": "relational", "items": COUNT, "classes": CLASSES, "steps": 3}
    assert set(report["metrics"]) == {f"rehearsal_{m}_{v}" for m in ("recall@1", "map@r") for v in ("raw", "refined")}
    refined = run(f"refine v.npy --model {tmp_path}/m --out {tmp_path}/o.npy --json")
    assert (refined.exit_code, json.loads(refined.stdout)["protocol"]["steps"]) == (0, 3)
    expected = ContextRefiner(6, 3).fit(np.load("v.npy"), np.load("l.npy")).transform(np.load("v.npy"))
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), expected)


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
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said == f"stopped; {checkpoint} keeps the finished epochs: add --resume to go on\ninterrupted\n"
    assert os.listdir(tmp_path) == ["stopped.checkpoint"]

    again = run(command, tmp_path / "stopped")
    assert again.exit_code == 2 and "add --resume to go on with it, or --overwrite to start again" in again.stderr
    other = run(command, tmp_path / "stopped", "--resume", "--seed", 1)
    assert other.exit_code == 2 and "belongs to other data or settings" in other.stderr
    assert checkpoint.exists()

    assert run(command, tmp_path / "stopped", "--resume").exit_code == 0
    assert run(command, tmp_path / "whole").exit_code == 0
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")
    assert json.loads((tmp_path / "whole" / "config.json").read_text())["history"]["best_epoch"] == 40
    assert sorted(os.listdir(tmp_path)) == ["stopped", "whole"]


# ---- refine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_refine_writes_the_format_it_read_with_ids_and_order(inside, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    report = document(run(f"refine v{suffix} --model model --out {out} --json"))
    assert (report["protocol"]["items"], report["protocol"]["steps"], report["out"]) == (COUNT, 2, str(out))
    assert -1 <= report["metrics"]["mean_cosine_to_input"] <= 1
    assert os.listdir(tmp_path) == [out.name]
    run(f"refine v.npy --model model --out {tmp_path}/plain.npy")
    expected = np.load(tmp_path / "plain.npy")
    assert not np.allclose(expected, np.load("v.npy"), atol=0.1)
    if suffix == ".npz":
        with np.load("v.npz") as before, np.load(out) as after:
            assert after.files == before.files and after["vectors"].dtype == np.float64
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
    assert report["metrics"]["estimated_purity"] == pytest.approx(refiner.report()["metrics"]["estimated_purity"])
    assert 0.3 < report["metrics"]["estimated_purity"] < 1 > report["metrics"]["mean_cosine_to_input"]


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


def test_overwrite_replaces_an_output(inside, tmp_path):
    shutil.copy("there.npy", tmp_path)
    assert run(f"refine v.npy --model model --out {tmp_path}/there.npy --overwrite").exit_code == 0
    assert np.load(tmp_path / "there.npy").shape == (COUNT, DIM)
    assert os.listdir(tmp_path) == ["there.npy"]


# ---- evaluate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["v.npy --labels l.npy", "v.npz --labels l.csv", "v.parquet --labels n"])
def test_evaluate_reports_every_metric_as_a_fraction(inside, source):
    scores = document(run(f"evaluate {source} --json"))
    assert set(scores) == {"protocol", "metrics"}
    assert list(scores["metrics"]) == METRICS
    assert all(0 <= value <= 1 for value in scores["metrics"].values())
    assert scores["metrics"]["recall@1"] == pytest.approx(0.85)
    assert scores["protocol"]["queries"] == scores["protocol"]["self_matches_removed_by_id"] == COUNT


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


def test_a_context_without_ids_is_said_to_hide_the_item_itself(inside, tmp_path):
    shutil.copy("v.npy", tmp_path / "copy.npy")
    outputs = f"--out {tmp_path}/o.npy --context-out {tmp_path}/g.npy --json"
    shown = document(run(f"refine v.npy --model model --context {tmp_path}/copy.npy {outputs}"))
    assert "cannot be recognised" in shown["protocol"]["own_item"]
    shutil.copy("v.npz", tmp_path / "copy.npz")
    outputs = f"--out {tmp_path}/o.npz --context-out {tmp_path}/g.npz --json"
    shown = document(run(f"refine v.npz --model model --context {tmp_path}/copy.npz {outputs}"))
    assert shown["protocol"]["own_item"] == f"left out by id, {COUNT} times"


def test_a_typing_error_does_not_cost_the_checkpoint(inside, tmp_path):
    (tmp_path / "m.checkpoint").write_bytes(b"hours of work")
    assert run(f"fit typo.npy --out {tmp_path}/m --recipe paper --overwrite").exit_code == 2
    assert (tmp_path / "m.checkpoint").read_bytes() == b"hours of work"


def test_the_table_holds_the_same_numbers_in_percent_and_nothing_on_standard_error(inside):
    shown = run("evaluate v.npz")
    scores = document(run("evaluate v.npz --json"))["metrics"]
    assert shown.stderr == ""
    lines = dict(line.rsplit(maxsplit=1) for line in shown.stdout.splitlines() if line)
    assert {name: lines[name] for name in METRICS} == {name: f"{100 * scores[name]:.2f}" for name in METRICS}


# ---- the rest ----------------------------------------------------------------------------------------------


def test_a_long_or_odd_path_is_printed_as_it_is(inside, tmp_path):
    out = tmp_path / ("a [red] name that is longer than any line of any terminal " * 3).strip()
    assert run(f"fit v.npz {FIT} --out", out).stdout.splitlines()[-1] == f"Written to {out}"


@pytest.mark.parametrize("option", ["--seed -1", "--seed 99999999999", "--out-dim 0", "--neighbors many", "--depth 3"])
def test_an_option_of_no_meaning_is_refused_by_name(inside, option):
    result = run(f"fit v.npz --out out {option}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert option.split()[0] in result.stderr and "Traceback" not in result.stderr


def test_a_reader_that_has_seen_enough_is_no_error(inside):
    nobody, pipe = os.pipe()
    os.close(nobody)
    line = [sys.executable, "-c", "from entourage.cli import main; main()", "evaluate", "v.npz", "--no-nmi"]
    assert subprocess.run(line, stdout=pipe, stderr=subprocess.PIPE).stderr == b""
    os.close(pipe)


def test_version_and_help():
    assert run("--version").stdout == f"{__version__}\n"
    assert all(name in run("--help").stdout for name in ("demo", "fit", "refine", "evaluate"))


@pytest.mark.parametrize("module", ["entourage", "entourage.cli"])
def test_starting_does_not_wait_for_heavy_libraries(module):
    code = f"import {module}, sys; print({{'torch', 'sklearn', 'matplotlib', 'pyarrow'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
