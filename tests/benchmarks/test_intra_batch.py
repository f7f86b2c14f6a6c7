"""The benchmark of intra-batch connections as a command, at toy size: what it writes, not how well anything does."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "intra_batch.py"
TINY = {"networks": 2, "ensembles": (1, 2), "steps": (1, 2), "heads": (2,), "dims": (8, 128)}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(FILE.parent))
    spec = importlib.util.spec_from_file_location("intra_batch_bench", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FULL", module.FULL | TINY)
    monkeypatch.setattr(module, "CONTEXTS", ("reciprocal", "nearest", "ward"))
    return module


@pytest.fixture
def run(bench, monkeypatch, tmp_path, capsys):
    """A command with a page of its own to fill: (results, what is shown, the page)."""
    page = tmp_path / "page.md"
    page.write_text(
        "".join(f"<!-- intra_batch {part}: begin -->\n<!-- intra_batch {part}: end -->\n" for part in bench.PARTS)
    )

    def command(line: str) -> tuple[dict, str, str]:
        places = ["--out", str(tmp_path / "results"), "--page", str(page)]
        monkeypatch.setattr(sys, "argv", ["intra_batch.py", *line.split(), *places])
        bench.run(bench.main)
        (file,) = (tmp_path / "results").glob("*.json")
        return json.loads(file.read_text()), capsys.readouterr().out, page.read_text()

    return command


SMALL = "--max-classes 6 --epochs 1 --seeds 1"


def test_every_part_in_one_file_and_on_the_page(run, bench, monkeypatch, tmp_path):
    results, shown, page = run(SMALL)
    scores = results["glyphs"]["scores"]
    assert list(scores) == list(bench.PARTS)
    assert list(scores["losses"]) == [*bench.LOSSES, bench.AT_TEST_TIME]
    assert list(scores["contexts"])[:4] == ["encoder alone", "reciprocal", "nearest", "ward"]
    assert list(scores["contexts"])[4:] == [f"student, {lesson}" for lesson in bench.DISTILLATIONS]
    assert {size: list(seeds) for size, seeds in scores["ensembles"].items()} == {"1": ["0", "1"], "2": ["0"]}
    assert list(scores["grid"]) == ["1 x 2", "2 x 2"] and list(scores["sizes"]) == ["8", "128"]
    both = scores["losses"]["both"]["0"]
    assert (
        both == scores["contexts"]["encoder alone"]["0"] == scores["ensembles"]["1"]["0"] == scores["sizes"]["128"]["0"]
    )
    assert scores["contexts"]["reciprocal"] == scores["losses"][bench.AT_TEST_TIME]
    assert set(both) == set(bench.METRICS)
    row = " | ".join(f"{100 * both[metric]:.1f}" for metric in bench.METRICS)
    assert f"| both | {row} |" in shown and f"| both | {row} |" in page
    assert results["glyphs"]["protocol"]["test"] == "120 pictures of 6 classes"
    assert [path.name for path in (tmp_path / "results").glob("*.png")] == ["intra_batch_glyphs_grid.png"]

    # What is there is not measured again; another protocol is not mixed in.
    monkeypatch.setattr(bench, "fit_intra_batch", None)
    assert run(SMALL)[0] == results
    with pytest.raises(SystemExit, match="under another protocol"):
        run(SMALL.replace("--epochs 1", "--epochs 2"))


def test_a_run_that_is_interrupted_keeps_what_it_has_and_goes_on(run, bench, monkeypatch, tmp_path):
    real, calls = bench.fit_intra_batch, []

    def fit(images, settings, **options):
        calls.append(settings.seed)
        if calls == [0, 1]:
            raise KeyboardInterrupt
        return real(images, settings, **options)

    monkeypatch.setattr(bench, "fit_intra_batch", fit)
    command = SMALL.replace("--seeds 1", "--seeds 2") + " --parts sizes"
    monkeypatch.setitem(bench.FULL, "dims", (8,))
    with pytest.raises(KeyboardInterrupt):
        run(command)
    kept = json.loads((tmp_path / "results" / "intra_batch.json").read_text())
    assert list(kept["glyphs"]["scores"]["sizes"]["8"]) == ["0"]
    results, shown, _ = run(command)
    assert calls == [0, 1, 1]
    values = [100 * results["glyphs"]["scores"]["sizes"]["8"][seed]["recall@1"] for seed in ("0", "1")]
    assert f"| 8 | {np.mean(values):.1f} ± {np.std(values, ddof=1):.1f} |" in shown


def test_quick_leaves_the_page_alone_and_what_is_not_there_is_named(run, tmp_path):
    _, _, page = run("--quick --max-classes 6 --epochs 1 --parts sizes")
    assert "|" not in page and (tmp_path / "results" / "intra_batch_quick.md").exists()
    with pytest.raises(SystemExit, match="no part 'table'; wanted some of losses, controls, contexts"):
        run("--parts table")
    with pytest.raises(SystemExit, match="dataset is"):
        run("--data nothing --root .")


def test_the_grid_is_drawn_for_every_dataset_that_has_one(bench, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(bench, "draw_grid", lambda *given, **named: drawn.append((given, named)))
    monkeypatch.setattr(bench, "save", lambda figure, path: drawn.append(path.name))
    scores = {"1 x 2": {"0": {"recall@1": 0.5}, "1": {"recall@1": 0.7}}, "4 x 8": {"0": {"recall@1": 0.8}}}
    content = {"one": {"scores": {"grid": scores}}, "other": {"scores": {"sizes": {}}}}
    bench.draw_grids(type("Results", (), {"all": content, "file": tmp_path / "intra_batch.json"}))
    ((values, steps, heads, *titles), named), name = drawn
    np.testing.assert_allclose(values, [[60, np.nan], [np.nan, 80]])
    np.testing.assert_allclose(named["spread"], [[np.std([50, 70], ddof=1), np.nan], [np.nan, np.nan]])
    assert (steps, heads, titles[0], titles[1]) == ([1, 4], [2, 8], "message-passing steps", "heads")
    assert name == "intra_batch_one_grid.png"


def test_the_documentation_has_a_place_for_every_table(bench):
    page = bench.PAGE.read_text()
    assert all(f"<!-- intra_batch {part}: begin -->\n" in page for part in bench.PARTS)
