"""The benchmark of divide and conquer as a command, at toy size: what it writes, not how well anything does."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PLACE = "# A page\n\n<!-- divide: begin -->\nold\n<!-- divide: end -->\n\nand more\n"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("divide_bench", BENCHMARKS / "divide.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(bench, monkeypatch, tmp_path, capsys):
    (tmp_path / "page.md").write_text(PLACE)

    def command(line: str) -> tuple[dict, str]:
        places = ["--out", str(tmp_path / "results"), "--page", str(tmp_path / "page.md")]
        monkeypatch.setattr(sys, "argv", ["divide.py", *line.split(), *places])
        bench.run(bench.main)
        (file,) = (tmp_path / "results").glob("*.json")
        return json.loads(file.read_text()), capsys.readouterr().out

    return command


@pytest.fixture
def shop(tmp_path) -> str:
    """Vectors of 20 classes, as --data and --root name them."""
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(20), 8)
    (tmp_path / "shop").mkdir()
    np.save(tmp_path / "shop" / "vectors.npy", rng.normal(size=(20, 12))[labels] + rng.normal(size=(160, 12)))
    np.save(tmp_path / "shop" / "labels.npy", labels)
    return f"--data shop --root {tmp_path} --epochs 2 --start 1 --learners 4 --rows baseline divided"


def test_scores_and_table_s1_of_vectors_fill_the_page(run, shop, tmp_path):
    results, shown = run(f"{shop} --seeds 2")
    scores = results["shop"]["scores"]
    assert {model: list(by_seed) for model, by_seed in scores.items()} == {
        "baseline": ["0", "1"],
        "divided": ["0", "1"],
    }
    assert shown.startswith("| encoder | shop R@1 | shop MAP@R |")
    maps = [100 * scores["divided"][seed]["map@r"] for seed in ("0", "1")]
    assert f"| {np.mean(maps):.1f} ± {np.std(maps, ddof=1):.1f} |" in shown
    slices = [100 * scores["baseline"][seed]["alone"][3] for seed in ("0", "1")]
    assert f"| 4 | {np.mean(slices):.1f} ± {np.std(slices, ddof=1):.1f} |" in shown and "| 97–128 |" in shown
    alike = [scores["divided"][seed]["correlation"] for seed in ("0", "1")]
    assert f"{np.mean(alike):.4f} ± {np.std(alike, ddof=1):.4f}" in shown
    assert (tmp_path / "page.md").read_text() == PLACE.replace("old\n", shown.rstrip("\n") + "\n")
    assert results["shop"]["protocol"]["settings"]["encoder"] == "linear"
    with pytest.raises(SystemExit, match="under another protocol"):
        run(shop.replace("--epochs 2", "--epochs 1"))


def test_pictures_have_both_figures(run, tmp_path):
    results, _ = run("--quick --max-classes 8 --epochs 1 --start 0 --learners 4 --rows baseline divided")
    one = results["glyphs"]["scores"]["divided"]["0"]
    assert len(one["alone"]) == len(one["only"]) == len(one["first"]["8"]) == 4
    assert one["first"]["1"][-1] == pytest.approx(one["recall@1"]) and 0 < one["correlation"] < 1
    figures = sorted(path.name for path in (tmp_path / "results").glob("*.png"))
    assert figures == ["divide_quick_glyphs_first.png", "divide_quick_glyphs_only.png"]
    assert results["glyphs"]["protocol"]["test"] == "160 pictures of 8 classes"
    assert (tmp_path / "page.md").read_text() == PLACE  # --quick leaves it alone


def test_what_is_there_is_not_measured_again(run, shop, bench, monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    real = bench.train_divided
    monkeypatch.setattr(bench, "train_divided", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(f"{shop} --quick --start 0")
    monkeypatch.setattr(bench, "train_divided", real)
    monkeypatch.setattr(bench, "train_baseline", interrupted)  # its seed is there
    results, _ = run(f"{shop} --quick --start 0")
    assert list(results["shop"]["scores"]) == ["baseline", "divided"]
    assert [path.name for path in (tmp_path / "results").glob("*.png")] == ["divide_quick_shop_first.png"]


def test_a_dataset_that_is_not_there_is_named(run):
    with pytest.raises(SystemExit, match="dataset is"):
        run("--data nothing --root .")
