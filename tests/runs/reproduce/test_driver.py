"""One driver for every table: rows that are there stay, what a kill interrupts is resumed, what is missing is said."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from entourage.errors import FileError, InputError
from entourage.runs.reproduce import driver
from entourage.runs.reproduce.driver import Request, reproduce
from entourage.runs.reproduce.scale import Scale

pytestmark = pytest.mark.usefixtures("one_thread")

TOY = {"epochs": 1, "refiner": {"epochs": 1, "n_blocks": 2}}


def toy(**more) -> Scale:
    return Scale("quick", data_options={"max_classes": 5, "per_class": 6}, settings=TOY | more)


def test_a_table_is_made_row_by_row_and_written_three_ways(tmp_path):
    made = reproduce(Request("attend-4", tmp_path, toy()))
    assert made.missing == {} and made.figures == []
    content = json.loads((tmp_path / "attend-4.json").read_text())
    rows = content["measured"]["glyphs"]
    assert list(rows) == ["MS-Loss", "MS-Loss + CA", "MS-Loss + NNs", "Ours (CA + NNs)"]
    raw, ours = (rows[name]["0"]["values"]["recall@1"] for name in ("MS-Loss", "Ours (CA + NNs)"))
    assert 0 < raw <= 1
    text = (tmp_path / "attend-4.md").read_text()
    assert text == made.text
    line = next(line for line in text.splitlines() if line.startswith("| Ours"))
    cells = [cell.strip() for cell in line.split("|")[1:]]
    gain = f"{100 * (ours - raw):+.1f}".replace("-", "\N{MINUS SIGN}")
    assert cells[1:4] == ["73.2", f"{100 * ours:.1f}", f"+5.7 / {gain}"]
    assert content["protocol"]["glyphs"]["test"] == "30 items of 5 classes"
    assert made.document()["printed"]["MS-Loss"]["cub"] == {"recall@1": 67.5}
    assert "Table 4 of Attend to Context" in made.report(tmp_path)


def test_trainings_are_shared_between_tables_and_rows(tmp_path, monkeypatch):
    trained = []
    real = driver.Making.trained
    monkeypatch.setattr("entourage.runs.reproduce.making.train_run", _counted(trained))
    reproduce(Request("attend-1", tmp_path, toy()))
    reproduce(Request("attend-fig3", tmp_path, toy()))
    assert len(trained) == 1 and driver.Making.trained is real


def _counted(calls: list):
    from entourage.runs.train import train_run

    def train(request, **options):
        calls.append(request.out)
        return train_run(request, **options)

    return train


def test_what_is_there_is_not_measured_again_and_other_settings_are_refused(tmp_path, monkeypatch):
    first = reproduce(Request("attend-fig3", tmp_path, toy()))
    assert [path.name for path in first.figures] == ["attend-fig3-glyphs.png"] and first.figures[0].exists()
    drawn = first.figures[0].stat().st_mtime_ns
    monkeypatch.setattr(driver, "measure", None)
    again = reproduce(Request("attend-fig3", tmp_path, toy()))
    assert again.text == first.text and again.figures[0].stat().st_mtime_ns == drawn
    with pytest.raises(InputError, match=r"holds Ours of glyphs, seed 0, measured with other settings; .*--overwrite"):
        reproduce(Request("attend-fig3", tmp_path, toy(dim=16)))
    with pytest.raises(TypeError):  # measured anew
        reproduce(Request("attend-fig3", tmp_path, toy(dim=16), overwrite=True))
    assert (tmp_path / "attend-fig3.md").read_text() == first.text  # until something has come in its place


def test_more_seeds_are_added_to_those_that_are_there(tmp_path):
    reproduce(Request("attend-fig3", tmp_path, toy()))
    two = Scale("quick", data_options={"max_classes": 5, "per_class": 6}, settings=TOY, seeds=2)
    made = reproduce(Request("attend-fig3", tmp_path, two))
    values = [each["recall@1"] for each in made.results.values("glyphs", "Ours").values()]
    assert len(values) == 2 and f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}" in made.text


KILLED = """
import os, signal, sys
from pathlib import Path
from entourage.runs.reproduce import driver
from entourage.runs.reproduce.driver import Request, reproduce
from entourage.runs.reproduce.scale import Scale
from entourage.training import checkpoint
import entourage.runs.reproduce.making as making

real, place = making.train_run, {place!r}

def train(request, **options):
    progress = options.get("progress")
    def killing(title, done, total):
        if place == "training" and title.startswith("training the encoder") and "epoch 2" in title:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(request, progress=killing)

making.train_run = train
if place == "row":
    measured = driver.measure
    def measure(how, making, order, metrics):
        if order.recipe.refine.get("by"):
            os.kill(os.getpid(), signal.SIGKILL)
        return measured(how, making, order, metrics)
    driver.measure = measure
scale = Scale("quick", data_options={{"max_classes": 5, "per_class": 6}}, settings={settings!r})
reproduce(Request("attend-1", Path({out!r}), scale))
"""


@pytest.mark.parametrize("place", ["training", "row"])
def test_after_a_kill_it_goes_on_with_what_is_there(tmp_path, place, monkeypatch):
    settings = TOY | {"epochs": 3}
    scale = Scale("quick", data_options={"max_classes": 5, "per_class": 6}, settings=settings)
    script = KILLED.format(place=place, out=str(tmp_path / "killed"), settings=settings)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    work = [path.name for path in (tmp_path / "killed" / "work").iterdir()]
    if place == "training":
        assert any(name.endswith(".partial") for name in work)
    else:
        kept = json.loads((tmp_path / "killed" / "attend-1.json").read_text())["measured"]["glyphs"]
        assert list(kept) == ["MS-Loss"]
    resumed = []
    from entourage.runs.train import train_run

    monkeypatch.setattr(
        "entourage.runs.reproduce.making.train_run",
        lambda request, **options: [resumed.append(request.resume), train_run(request, **options)][1],
    )
    after = reproduce(Request("attend-1", tmp_path / "killed", scale))
    assert resumed == ([True] if place == "training" else [])
    monkeypatch.undo()
    whole = reproduce(Request("attend-1", tmp_path / "whole", scale))
    assert after.text == whole.text
    assert not [path for path in (tmp_path / "killed" / "work").iterdir() if path.name.endswith(".partial")]


def test_a_dataset_that_is_missing_is_named_with_what_is_missing(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(FileError, match=r"attend-3 needs data that are not there: .*cub.*; .*cars.*; .*sop") as caught:
        reproduce(Request("attend-3", tmp_path / "out", Scale(root=tmp_path / "data")))
    assert "images.txt" in str(caught.value) or "CUB_200_2011" in str(caught.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="the dataset is 'glyhps'; wanted one of"):
        reproduce(Request("attend-3", tmp_path / "out", Scale("quick", data="glyhps")))


def test_a_file_of_another_table_is_not_taken_for_this_one(tmp_path):
    reproduce(Request("attend-fig3", tmp_path, toy()))
    content = (tmp_path / "attend-fig3.json").read_text()
    (tmp_path / "attend-1.json").write_text(content)
    with pytest.raises(InputError, match="holds attend-fig3 at scale quick; wanted attend-1 at scale quick"):
        reproduce(Request("attend-1", tmp_path, toy()))
    (tmp_path / "attend-1.json").write_text(content[:100])
    with pytest.raises(FileError, match="cannot be read as JSON"):
        reproduce(Request("attend-1", tmp_path, toy()))
