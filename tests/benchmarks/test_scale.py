"""The benchmarks of large sets run in small; what is measured is kept, and only what is missing is measured."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def loaded(name: str, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scale(monkeypatch):
    """With works that only say that they were done, in this process."""
    module, done = loaded("scale", monkeypatch), []

    def measure(work, path, compiled):
        if path.stem in module.fails:
            raise KeyboardInterrupt
        done.append((path.stem, next(name for name, each in module.WORK.items() if each is work)))
        return {"seconds": float(len(done)), "mb": 1.0}

    monkeypatch.setattr(module, "in_a_child", measure)
    module.done, module.fails = done, ()
    return module


def test_what_is_interrupted_goes_on_with_the_next_line(scale, tmp_path):
    asked = ["--sizes", "40", "60", "--dimensions", "4", "--out", str(tmp_path)]
    scale.fails = ("60x4",)
    with pytest.raises(KeyboardInterrupt):
        scale.main(asked)
    first = list(scale.done)
    assert {name for name, _ in first} == {"40x4"} and len(first) == len(scale.WORK)
    scale.fails = ()
    scale.main(asked)
    assert {name for name, _ in scale.done[len(first) :]} == {"60x4"}
    count = len(scale.done)
    scale.main(asked)
    assert len(scale.done) == count == len(json.loads((tmp_path / "scale.json").read_text())) == 2 * len(scale.WORK)


def test_lines_are_chosen_by_name_measured_again_and_kept_beside_others(scale, tmp_path):
    out = ["--out", str(tmp_path)]
    scale.main(["--only", "40x4", "60x8", "--works", "graph, ours", *out])
    scale.main(["--only", "40x4", "--works", "graph, exact", *out])
    scale.main(["--only", "40x4", "--works", "graph, ours", "--again", *out])
    rows = [
        (row["n"], row["d"], row["work"], row["seconds"]) for row in json.loads((tmp_path / "scale.json").read_text())
    ]
    assert rows == [(40, 4, "graph, exact", 3.0), (40, 4, "graph, ours", 4.0), (60, 8, "graph, ours", 2.0)]
    assert (tmp_path / "scale.md").read_text().count("\n") == 2 + len(rows)
    scale.main(["--only", "200000x4", "--works", "graph, exact", *out])  # which is for small sets alone
    assert len(scale.done) == 4


def test_files_folders_and_tables_are_refined(scale, tmp_path, one_thread):
    pytest.importorskip("lancedb", reason="the package lancedb is not installed: pip install 'entourage[lance]'")
    path = scale.write_vectors(tmp_path, 200, 8)
    for work in ("refine file, ours", "refine Parquet folder, ours", "refine Lance table, ours"):
        assert "exact" in scale.WORK[work](path)["by"]


def test_the_cost_of_recall_is_measured(monkeypatch, tmp_path, one_thread):
    pytest.importorskip("faiss", reason="the package faiss is not installed: pip install 'entourage[faiss]'")
    cost = loaded("recall_cost", monkeypatch)
    cost.main(["--items", "400", "--dim", "16", "--sets", "--out", str(tmp_path)])
    (row,) = json.loads((tmp_path / "recall_cost.json").read_text())
    assert row["searches"][0]["recall"] == 1 and [each["wanted"] for each in row["searches"][1:]] == list(cost.WANTED)
    assert all(each["recall"] >= each["wanted"] for each in row["searches"][1:])
    assert row["raw"] < row["searches"][0]["map@r"] <= 1
