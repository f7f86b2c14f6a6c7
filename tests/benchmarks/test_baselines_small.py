"""The benchmark of baselines as a command, at toy size: what it writes, not how well anything does."""

import functools
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FILE = Path(__file__).parents[2] / "benchmarks" / "baselines_small.py"

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(FILE.parent))
    spec = importlib.util.spec_from_file_location("baselines_small", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(bench, monkeypatch, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- baselines: begin -->\n<!-- baselines: end -->\n")

    def command(line: str) -> tuple[dict, str]:
        places = ["--out", str(tmp_path / "results"), "--page", str(page)]
        monkeypatch.setattr(sys, "argv", ["baselines_small.py", *line.split(), *places])
        bench.run(bench.main)
        (file,) = (tmp_path / "results").glob("*.json")
        return json.loads(file.read_text()), capsys.readouterr().out

    return command


def test_every_loss_raw_and_refined_in_one_table(run, bench, monkeypatch, tmp_path):
    small = "--max-classes 8 --epochs 1 --losses ms,margin --seeds 2 --methods raw,relational"
    results, shown = run(small)
    assert list(results["glyphs"]["scores"]) == ["ms", "margin"]
    assert list(results["glyphs"]["scores"]["ms"]) == ["raw", "relational"]
    values = [results["glyphs"]["scores"]["ms"]["raw"][seed]["recall@1"] for seed in ("0", "1")]
    assert f"| ms | raw | {100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f} |" in shown
    assert results["glyphs"]["protocol"]["test"] == "160 pictures of 8 classes"
    assert (tmp_path / "results" / "baselines_small.md").read_text() in (tmp_path / "page.md").read_text()
    monkeypatch.setattr(bench, "train_baseline", None)
    assert run(small)[0] == results  # what is there is not measured again
    with pytest.raises(SystemExit, match="under another protocol"):
        run(small.replace("--epochs 1", "--epochs 2"))


def test_a_folder_of_colour_pictures_and_the_papers_recipe(run, bench, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for number in range(12):
        place = tmp_path / "data" / "shop" / "images" / f"class {number:02}"
        place.mkdir(parents=True)
        for shot in range(6):
            Image.fromarray(rng.integers(0, 255, (12, 12, 3)).astype(np.uint8)).save(place / f"{shot}.png")
    brief = functools.partial(bench.RECIPES["paper"], 2, 1, epochs=1)
    monkeypatch.setitem(bench.RECIPES, "paper", brief)
    results, shown = run(f"--data shop --root {tmp_path}/data --quick --losses ms --epochs 1 --methods raw,paper")
    assert results["shop"]["protocol"]["settings"]["encoder"] == "small-rgb"
    assert [line.split("|")[2].strip() for line in shown.splitlines()[2:4]] == ["raw", "paper"]
    assert (tmp_path / "results" / "baselines_small_quick.md").read_text() in shown


def test_a_dataset_that_is_not_there_is_named(run):
    with pytest.raises(SystemExit, match="dataset is"):
        run("--data nothing --root .")
