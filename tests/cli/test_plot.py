"""`entourage refine --run` and `entourage plot` from outside."""

import json
import os

import numpy as np
import pytest
from PIL import Image
from tests.cli.pictures import write_birds
from tests.cli.shop import COUNT, check_refused, document, run

from entourage.runs.refinement_run import open_refinement

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


@pytest.fixture(scope="module")
def kept(shop):
    """A refinement of labelled vectors."""
    command = f"refine {shop}/v.npz --model {shop}/model --run {shop}/kept"
    return kept_document(run(f"{command} --out {shop}/kept.npz --json"))


def kept_document(result) -> dict:
    """What --json printed, and on standard error the warnings the run keeps, nothing else."""
    printed = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "".join(f"warning: {text}\n" for text in printed["warnings"]))
    assert printed["warnings"] == open_refinement(printed["run"]).document["warnings"]
    return printed


def test_a_refinement_is_kept_with_its_scores(kept, inside):
    opened = open_refinement("kept")
    assert (kept["run"], len(opened.items)) == (f"{inside}/kept", COUNT)
    assert kept["scores"]["after"] == pytest.approx(opened.document["metrics"])
    assert opened.document["protocol"]["refiner"] == f"{inside}/model"
    with np.load("kept.npz") as out:
        np.testing.assert_allclose(out["vectors"], opened.refined.vectors, atol=1e-6)


def test_labels_are_never_refined_by(inside, tmp_path):
    command = f"refine v.npy --model model --out {tmp_path}"
    assert "scores" not in document(run(f"{command}/plain.npy --json"))
    for labels in ("l.csv", "one-class.npy"):
        kept_document(run(f"{command}/{labels}.npy --labels {labels} --run {tmp_path}/{labels} --json"))
        np.testing.assert_array_equal(np.load(tmp_path / f"{labels}.npy"), np.load(tmp_path / "plain.npy"))
    assert sorted(set(open_refinement(tmp_path / "l.csv").refined.labels))[:2] == ["class 0", "class 1"]


def test_warnings_about_the_scores_are_printed_and_kept(inside, tmp_path):
    command = f"refine v.npy --model model --labels all-different.npy --run {tmp_path}"
    outcome = run(f"{command}/printed")
    assert outcome.exit_code == 0 and "warning: not scored: " in outcome.stderr
    warnings = kept_document(run(f"{command}/json --json"))["warnings"]
    assert warnings[-1].startswith("not scored: ")


def test_texts_and_galleries_are_kept(inside, tmp_path):
    texts, others = tmp_path / "t.json", tmp_path / "o.json"
    texts.write_text(json.dumps([f"text {row}" for row in range(COUNT)]))
    others.write_text(json.dumps([f"other {row}" for row in range(COUNT)]))
    command = f"refine v.npy --context v.npz --labels l.txt --texts {texts} --context-texts {others}"
    document(run(f"{command} --run {tmp_path}/run --json"))
    opened = open_refinement(tmp_path / "run")
    assert (opened.appearance.text(3), opened.gallery_appearance.text(3)) == ("text 3", "other 3")
    assert opened.document["metrics"]["recall@1"] > 0.5 and opened.context.labels[0] == "class 0"


def test_pictures_are_found_again(tmp_path, monkeypatch):
    write_birds(tmp_path / "birds")
    monkeypatch.chdir(tmp_path)
    ids = sorted(os.path.relpath(path, tmp_path / "birds") for path in (tmp_path / "birds").rglob("*.png"))[24:]
    vectors = np.random.default_rng(0).normal(size=(24, 8))
    np.savez("v.npz", vectors=vectors, ids=ids, labels=[item.split("/")[0] for item in ids])
    document(run("refine v.npz --pictures birds --run kept --json"))
    monkeypatch.chdir("/")
    opened = open_refinement(tmp_path / "kept")
    assert opened.run["media"]["pictures"]["source"] == str(tmp_path / "birds")
    with Image.open(tmp_path / "birds" / ids[5]) as picture:
        assert opened.appearance.picture(5).tobytes() == picture.tobytes()


@pytest.mark.parametrize(("ending", "beginning"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_picture_is_written_by_its_ending(kept, inside, tmp_path, ending, beginning):
    outcome = run(f"plot sheet kept --out {tmp_path}/sheet.{ending}")
    assert (outcome.exit_code, outcome.stdout) == (0, f"Written to {tmp_path}/sheet.{ending}\n")
    assert (tmp_path / f"sheet.{ending}").read_bytes().startswith(beginning)


def test_the_query_and_the_number_of_points_can_be_asked_for(kept, inside, tmp_path):
    assert run("plot query kept --query", "id 3", "--out", tmp_path / "q.svg").exit_code == 0
    assert run(f"plot drift kept --points 20 --out {tmp_path}/d.png").exit_code == 0
    with Image.open(tmp_path / "d.png") as picture:
        assert min(picture.size) > 500


def test_pictures_that_are_gone_are_warned_of(kept, inside, tmp_path):
    settings = json.loads((inside / "kept" / "run.json").read_text())
    media = {"pictures": {"source": "/gone", "root": None, "split": "test", "options": {}}}
    (inside / "kept" / "run.json").write_text(json.dumps(settings | {"media": media}))
    outcome = run(f"plot sheet kept --out {tmp_path}/s.png")
    (inside / "kept" / "run.json").write_text(json.dumps(settings))
    assert outcome.exit_code == 0 and "warning: the pictures of /gone cannot be loaded again" in outcome.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "plot nothing kept --out a.png",
            "unknown figure 'nothing' of kept; wanted one of drift, query, steps, grid, sheet",
        ),
        (
            "plot parts kept --out a.png",
            "parts is a figure of a run of cross-image; wanted one that kept has: drift, query",
        ),
        ("plot sheet kept --out a.jpg", "wanted a name that ends in .png, .pdf, .svg"),
        ("plot sheet kept --out a.mp4", "wanted a name that ends in .png, .pdf, .svg"),
        ("plot drift kept --out a.avi", "wanted a name that ends in .png, .pdf, .svg, .mp4, .gif"),
        ("plot sheet kept --out nowhere/a.png", "the folder nowhere does not exist"),
        ("plot sheet kept --out there.png", "there.png exists already"),
        ("plot query kept --query 3 --out a.png", "the query is '3', which is not an id of the 80 items"),
        ("plot sheet model --out a.png", "no run; wanted a folder that `entourage train` or"),
        ("plot sheet missing --out a.png", "missing does not exist"),
        ("refine v.npy", "there is nothing to write to"),
        ("refine v.npy --out a.npy --labels l.npy", "--labels is l.npy but there is no --run"),
        ("refine v.npy --run new --context-labels l.npy", "--context-labels is l.npy but there is no gallery"),
        (
            "refine v.npy --run new --context ./v.npy --context-labels l.npy",
            "--context-labels is l.npy but the gallery v.npy is VECTORS",
        ),
        (
            "refine v.npy --run new --context v.npz --context-texts l.txt",
            "--context-texts is l.txt but there are no texts of VECTORS; add --texts or leave it out",
        ),
        ("refine v.npy --run new --root /", "--root is / but there are no pictures"),
        ("refine v.npy --run new --texts t.txt --pictures birds", "--pictures is birds and --texts t.txt"),
        ("refine v.npy --run new --pictures nowhere", "the dataset is"),
        ("refine v.npy --run new --pictures glyphs --data-option max_classes=8", "for 80 vectors without ids"),
        ("refine v.npy --run kept", "kept exists already"),
        ("refine v.npy --run precious --overwrite", "precious is a folder that Entourage did not write"),
        ("refine v.npy --run new --labels short-labels.npy", "79 labels for 80 vectors"),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(kept, inside, command, message):
    (inside / "there.png").write_text("in the way")
    check_refused(inside, command, message)
