"""Refining without labels needs no torch: the whole path runs where it cannot be imported, and gives the same."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from tests import label_free
from tests.cli.shop import run

from entourage.runtime.devices import _has_driver

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, one_thread, short_rehearsals):
    """Vectors, labels, pictures, and a model that was fitted where torch is."""
    folder = tmp_path_factory.mktemp("label_free")
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(16), 8)
    vectors = (rng.normal(size=(16, 24))[labels] + 0.7 * rng.normal(size=(128, 24))).astype(np.float32)
    ids = np.array([f"item {number:03}" for number in range(128)])
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "labels.npy", labels)
    (folder / "vectors.parquet").write_bytes(b"PAR1")
    for name, rows in (("queries", slice(None, None, 4)), ("gallery", slice(None))):
        np.savez(folder / f"{name}.npz", vectors=vectors[rows], ids=ids[rows], labels=labels[rows])
    for number, label in enumerate(labels):
        place = folder / "photos" / f"class {label:02}" / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(place)
    fitted = run(f"fit {folder}/vectors.npy --labels {folder}/labels.npy --out {folder}/model")
    assert fitted.exit_code == 0, fitted.stderr
    return folder


@pytest.fixture(scope="module")
def outcomes(folder) -> dict[str, dict]:
    """What the same commands do with torch loaded, and where neither torch nor anything else that learns is."""
    found = {}
    for name in ("with", "without", "lean"):
        line = [sys.executable, label_free.__file__, folder / name]
        subprocess.run(line, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, timeout=600)
        found[name] = json.loads((folder / name / "outcomes.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("command", label_free.COMMANDS)
def test_a_command_of_the_path_does_the_same_without_torch(outcomes, command):
    with_torch, without = (outcomes[name]["outcomes"][command] for name in ("with", "without"))
    assert without["code"] == 0, without["err"] + without["exception"]
    assert without["err"] == with_torch["err"].replace("/with/", "/without/")
    if "--json" in label_free.COMMANDS[command]:
        told = json.loads(without["out"])
        assert told["metrics"]
        assert told == json.loads(with_torch["out"].replace("/with/", "/without/"))


@pytest.mark.parametrize(
    "name", ["refined.npy", "queries.npz", "gallery.npz", "by-model.npy", "by-library.npy", "nmi.npy"]
)
def test_what_is_computed_is_the_same_to_the_bit(outcomes, folder, name):
    before, after = (np.load(folder / which / name) for which in ("with", "without"))
    if name.endswith(".npz"):
        assert before.files == after.files
        before, after = before["vectors"], after["vectors"]
    np.testing.assert_array_equal(after, before)
    assert np.isfinite(after).all()


def test_the_vectors_have_been_refined(outcomes, folder):
    raw = np.load(folder / "vectors.npy")
    for name in ("refined.npy", "by-model.npy"):
        assert not np.allclose(np.load(folder / "without" / name), raw / np.linalg.norm(raw, axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["drift.png", "query.png", "sheet.png", "steps.png"])
def test_pictures_are_the_same(outcomes, folder, name):
    before, after = (np.asarray(Image.open(folder / which / name).convert("RGB")) for which in ("with", "without"))
    assert len(np.unique(after)) > 20
    np.testing.assert_array_equal(after, before)


def test_the_kept_run_and_its_report_are_the_same_but_for_time(outcomes, folder):
    before, after = (folder / which / "run" for which in ("with", "without"))
    assert sorted(path.name for path in after.rglob("*")) == sorted(path.name for path in before.rglob("*"))
    scores = [json.loads((run / "metrics.json").read_text(encoding="utf-8")) for run in (before, after)]
    assert scores[0] == scores[1]
    pages = [(run / "report.html").read_text(encoding="utf-8") for run in (before, after)]
    assert pages[0].count("<img") == pages[1].count("<img") > 1


def test_a_method_that_does_not_learn_with_torch_is_left_out_by_no_comparison(outcomes):
    table = outcomes["without"]["outcomes"]["compare"]["out"]
    rows = [line.split() for line in table.splitlines()]
    for method in ("raw", "lda", "k-reciprocal", "diffusion", "whitening+alpha-qe", "universal"):
        assert any(row[:1] == [method] for row in rows)
    assert "skipped" not in table


def test_nothing_on_the_path_so_much_as_asks_for_torch(outcomes):
    """Importing it takes seconds, where it is installed and not needed."""
    if _has_driver():
        pytest.skip("a graphics card may be there, and torch is asked")
    assert outcomes["without"]["asked_for"] == []


@pytest.mark.parametrize("command", label_free.NEED_TRAINING)
def test_what_learns_says_how_to_install_what_it_needs(outcomes, folder, command):
    told = outcomes["without"]["outcomes"][command]
    assert told["code"] == 2
    assert told["err"].startswith("error: ") and told["err"].endswith("pip install 'entourage[train]'\n")
    assert told["err"].count("\n") == 1 and told["out"] == ""


def test_the_library_raises_what_the_command_line_says(outcomes, folder):
    assert outcomes["without"]["outcomes"]["library"].endswith("pip install 'entourage[train]'")


def test_what_is_refused_leaves_nothing_behind(outcomes, folder):
    assert not {path.name for path in (folder / "without").iterdir()} & {"model", "trained", "embedded.npz", "demo"}


# ---- the core alone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [name for name in label_free.COMMANDS if name.split()[0] not in label_free.DRAWN])
def test_refining_and_scoring_need_no_extra_at_all(outcomes, command):
    lean, usual = (outcomes[name]["outcomes"][command] for name in ("lean", "without"))
    assert lean["code"] == 0, lean["err"] + lean["exception"]
    if "--json" in label_free.COMMANDS[command]:
        assert json.loads(lean["out"]) == json.loads(usual["out"].replace("/without/", "/lean/"))


@pytest.mark.parametrize("name", ["refined.npy", "by-model.npy", "by-library.npy", "nmi.npy"])
def test_the_core_alone_computes_the_same_to_the_bit(outcomes, folder, name):
    np.testing.assert_array_equal(np.load(folder / "lean" / name), np.load(folder / "without" / name))


@pytest.mark.parametrize("command", label_free.NEED_AN_EXTRA)
def test_what_needs_an_extra_names_its_pip_line(outcomes, command):
    told, extra = outcomes["lean"]["outcomes"][command], label_free.NEED_AN_EXTRA[command][1]
    assert told["code"] == 2
    assert told["err"].startswith("error: ") and told["err"].endswith(f"pip install 'entourage[{extra}]'\n")
    assert told["err"].count("\n") == 1 and told["out"] == ""
