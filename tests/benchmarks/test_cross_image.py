"""The benchmark of cross-image attention as a command, at toy size: what it writes, not how well anything does."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "benchmarks"
PAGE = "# Page\n\n<!-- cross-image: begin -->\n<!-- cross-image: end -->\n"
TINY = "--max-classes 6 --epochs 1 --set encoder_options.width=4 --set blocks=2 --set dim=8 --set batch_classes=4"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("cross_image_bench", FOLDER / "cross_image.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.pictures, "TRIPLES", 1)
    return module


@pytest.fixture
def run(bench, monkeypatch, tmp_path, capsys):
    def command(line: str) -> tuple[dict, str]:
        (tmp_path / "page.md").write_text(PAGE)
        places = ["--out", str(tmp_path / "results"), "--page", str(tmp_path / "page.md")]
        monkeypatch.setattr(sys, "argv", ["cross_image.py", *line.split(), *places])
        bench.run(bench.main)
        (file,) = [path for path in (tmp_path / "results").glob("*.json") if "gradients" not in path.name]
        return json.loads(file.read_text()), capsys.readouterr().out

    return command


def test_both_encoders_in_one_table_with_all_figures(run, bench, tmp_path, monkeypatch):
    results, shown = run(f"{TINY} --seeds 2")
    scores = results["glyphs"]["scores"]
    assert set(scores) == {"baseline", "cross-image", "cross-image, re-ranked"}
    assert all(set(by_seed) == {"0", "1"} for by_seed in scores.values())
    values = [scores["cross-image"][seed]["map@r"] for seed in ("0", "1")]
    assert f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f} |" in shown
    assert results["glyphs"]["protocol"]["test"] == "120 pictures of 6 classes"
    assert results["glyphs"]["protocol"]["settings"]["encoder_options"] == {"last_stride": 1, "width": 4}
    table = (tmp_path / "results" / "cross_image.md").read_text()
    assert table in shown and table in (tmp_path / "page.md").read_text()
    figures = sorted(path.name for path in (tmp_path / "results" / "cross_image").iterdir())
    assert figures[0] == "glyphs_attention_1.png" and figures[-2:] == ["glyphs_gradients.png", "glyphs_parts.png"]
    for name in figures:
        with Image.open(tmp_path / "results" / "cross_image" / name) as figure:
            assert min(figure.size) > 300
    shown_there = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert shown_there == [f"cross_image_{name}.png" for name in ("attention_1", "gradients", "parts")]
    gradients = json.loads((tmp_path / "results" / "cross_image_gradients.json").read_text())["glyphs"]
    assert list(gradients) == ["baseline", "cross-image"] and gradients["baseline"][0]["epoch"] == 1

    assert not list((tmp_path / "results").rglob("*.run"))

    monkeypatch.setattr(bench, "measure", lambda *_: pytest.fail("measured again"))
    assert run(f"{TINY} --seeds 2")[0] == results  # what is there is kept
    with pytest.raises(SystemExit, match="under another protocol"):
        run(f"{TINY} --seeds 2 --epochs 2")


def test_colour_pictures_of_a_folder_quickly(run, tmp_path):
    rng = np.random.default_rng(0)
    for number in range(12):
        place = tmp_path / "data" / "shop" / "images" / f"class {number:02}"
        place.mkdir(parents=True)
        for shot in range(4):
            Image.fromarray(rng.integers(0, 255, (12, 16, 3)).astype(np.uint8)).save(place / f"{shot}.png")
    small = f"{TINY} --set encoder_options.last_stride=1 --set image_size=24"
    results, shown = run(f"--data shop --root {tmp_path}/data --quick {small}")
    assert results["shop"]["protocol"]["settings"]["encoder"] == "small-rgb"
    assert (tmp_path / "results" / "cross_image_quick.md").read_text() in shown
    assert (tmp_path / "page.md").read_text() == PAGE  # a quick run fills no page
    assert (tmp_path / "results" / "cross_image_quick" / "shop_parts.png").exists()


def test_an_interrupted_training_goes_on_with_the_same_command(run, bench, tmp_path, monkeypatch):
    real, resumed = bench.train_cross_image, []

    def interrupted(*args, progress, **named):
        def stop(title, done, total):
            if "(epoch 2/" in title:
                raise KeyboardInterrupt

        return real(*args, progress=stop, **named)

    def going_on(*args, resume, **named):
        resumed.append(resume)
        return real(*args, resume=resume, **named)

    line = f"{TINY} --epochs 2 --seeds 1 --quick"
    monkeypatch.setattr(bench, "train_cross_image", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(line)
    monkeypatch.setattr(bench, "train_cross_image", going_on)
    results, _ = run(line)
    assert resumed == [True, False] and list(results["glyphs"]["scores"]["baseline"]) == ["0"]


def test_a_dataset_that_is_not_there_is_named(run):
    with pytest.raises(SystemExit, match="dataset is"):
        run("--data nothing --root .")
