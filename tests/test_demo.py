import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from entourage import ContextRefiner, data, evaluate
from entourage.cli import app
from entourage.demo import DemoSettings, run_demo
from entourage.errors import FileError
from entourage.runs.encoders import encoder_of
from entourage.runs.refinement_run import open_refinement

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

SMALL = DemoSettings(max_classes=12, per_class=10, encoder_epochs=2)


@pytest.fixture(scope="module")
def run(tmp_path_factory, short_rehearsals):
    events = []
    folder = tmp_path_factory.mktemp("demo") / "deeper" / "run"
    result = run_demo(folder, settings=SMALL, progress=lambda *event: events.append(event))
    return folder, result, events


def test_run_folder_holds_vectors_model_metrics_and_pictures(run):
    folder, result, _ = run
    raw, refined = np.load(folder / "items.npz"), np.load(folder / "refined.npz")
    assert raw["vectors"].shape == refined["vectors"].shape == (120, 128)
    again = ContextRefiner.load(folder / "model").transform(raw["vectors"], context=raw["vectors"])
    np.testing.assert_allclose(again, refined["vectors"], atol=1e-5)
    written = json.loads((folder / "metrics.json").read_text())
    assert written | {"folder": str(folder)} == result.document()
    assert encoder_of(folder).dim == 128  # pictures can be dropped on `entourage explore`
    for name in ("drift.png", "query.png", "retrieval.png", "steps.png"):
        with Image.open(folder / name) as picture:
            assert min(picture.size) > 500


def test_scores_are_those_of_the_written_vectors(run):
    folder, result, _ = run
    for name, key in (("items", "metrics_before"), ("refined", "metrics")):
        with np.load(folder / f"{name}.npz") as file:
            again = evaluate(file["vectors"], file["labels"], seed=0)
        assert again.metrics == pytest.approx(result.measured[key])


def test_training_and_test_classes_are_disjoint(run):
    folder, *_ = run
    train, test = (set(np.load(folder / f"{name}.npz")["labels"]) for name in ("train", "items"))
    assert not train & test
    assert not {label.split()[0] for label in train} & {label.split()[0] for label in test}


def test_the_protocol_tells_how_the_refiner_was_learned_and_has_no_warnings(run):
    _, result, _ = run
    assert result.measured["protocol"]["refiner"].startswith("relational, chosen in rehearsals on training classes")
    assert result.measured["intervals"].keys() == result.measured["metrics"].keys() - {"nmi"}
    assert result.measured["warnings"] == []


def test_the_folder_is_a_kept_refinement_whose_pictures_are_drawn_again(run):
    folder, result, _ = run
    opened = open_refinement(folder)
    assert opened.document == result.measured and opened.run["settings"]["demo"]["encoder_epochs"] == 2
    again = data.load("glyphs", "test", per_class=10, max_classes=12, seed=0)
    shown = opened.appearance
    assert np.asarray(shown.picture(17)).tolist() == again.pixels[17].tolist() and shown.name(17) == again.labels[17]


def test_progress_is_reported_throughout(run):
    *_, events = run
    titles = {title.partition(" (")[0] for title, _, _ in events}
    assert {
        "drawing glyphs",
        "training the encoder",
        "choosing a base map",
        "choosing how to weigh",
        "embedding",
        "ranking",
        "drawing pictures",
    } <= titles
    assert all(0 <= done <= total for _, done, total in events)


def test_an_existing_folder_is_not_touched_without_overwrite(run):
    folder, *_ = run
    with pytest.raises(FileError, match="exists already"):
        run_demo(folder, settings=SMALL)


def test_command_prints_one_document_and_finds_a_free_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("entourage.demo.QUICK", SMALL)
    for expected in ("runs/demo", "runs/demo-2"):
        outcome = CliRunner().invoke(app, ["demo", "--quick", "--json"])
        assert outcome.exit_code == 0, outcome.stderr
        document = json.loads(outcome.stdout)
        assert document["folder"] == expected
        assert document.keys() >= {"protocol", "metrics", "metrics_before"}
    table = CliRunner().invoke(app, ["demo", "--quick", "--out", "mine"]).stdout
    assert all(word in table for word in ("before", "after", "recall@1", "map@r", "Written to mine"))
