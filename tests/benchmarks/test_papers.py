"""The page of the papers is in step with what is printed, what is kept, and the pages of the systems."""

import importlib.util
import json
import re
import shutil
import sys
from itertools import chain
from pathlib import Path

import pytest

from entourage.runs.reproduce.markdown import printed_text
from entourage.runs.reproduce.page import papers_page
from entourage.runs.reproduce.tables import tables

ROOT = Path(__file__).parents[2]
NAMES = ("attend-4", "attend-fig3")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("papers_bench", ROOT / "benchmarks" / "papers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_as_the_command_writes_them(bench, monkeypatch, tmp_path):
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    monkeypatch.setattr(sys, "argv", ["papers.py", "--docs", str(docs)])
    bench.main()
    for page in ("papers.md", *bench.SHOWN):
        assert (docs / page).read_text() == (ROOT / "docs" / page).read_text(), f"run benchmarks/papers.py for {page}"
    for name in bench.IMAGES.values():
        assert (docs / "images" / name).read_bytes() == (ROOT / "docs" / "images" / name).read_bytes()


def test_every_printed_figure_stands_on_the_page():
    page = (ROOT / "docs" / "papers.md").read_text()
    for table in tables().values():
        assert printed_text(table) in page
        assert f"`entourage reproduce {table.id}`" in page and f"{table.place}: {table.shows}" in page
        assert table.says in page and table.differs in page and table.found in page
    row = next(line for line in page.splitlines() if line.startswith("| Ours 2048"))
    assert re.split(r"\s*\|\s*", row)[2:-1] == ["74.8", "83.8", "76.9", "91.4", "94.5", "77.6", "82.3", "92.7", "93.4"]


@pytest.mark.parametrize("scale", ["small", "quick"])
def test_what_is_kept_is_of_rows_that_there_are(bench, scale):
    known = tables(scale)
    folder = bench.KEPT if scale == "small" else bench.KEPT / bench.QUICK
    files = sorted(path for path in folder.glob("*.json") if path.stem in known)
    assert files
    for path in files:
        names = {row.name for row in known[path.stem].made}
        content = json.loads(path.read_text())
        assert content["scale"] == scale
        for dataset, rows in content["measured"].items():
            assert set(rows) <= names and "/" not in dataset, path.name


def written(folder: Path, table: str, scale: str, values: dict[str, float], figures: dict[str, list[str]]) -> None:
    """Results of a row by dataset, and its pictures."""
    folder.mkdir(exist_ok=True)
    measured = {
        name: {"Ours": {"0": {"of": "", "seconds": 1, "values": {"recall@1": v}}}} for name, v in values.items()
    }
    head = {"table": table, "scale": scale, "protocol": {name: {} for name in values}}
    (folder / f"{table}.json").write_text(json.dumps(head | {"measured": measured, "figures": figures}))
    for name in chain.from_iterable(figures.values()):
        (folder / name).write_text("a picture")


def test_results_are_taken_with_their_pictures(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept")
    made, tried = tmp_path / "small", tmp_path / "tried"
    written(made, "attend-fig3", "small", {"glyphs": 0.5}, {"glyphs": ["attend-fig3-glyphs.png"]})
    (made / "other.png").write_text("of something else")
    written(tried, "attend-fig3", "quick", {"glyphs": 0.2}, {"glyphs": ["attend-fig3-glyphs.png"]})
    bench.take(tried)
    bench.take(made)
    kept = sorted(str(path.relative_to(bench.KEPT)) for path in bench.KEPT.rglob("*.*"))
    names = ["attend-fig3-glyphs.png", "attend-fig3.json"]
    assert kept == [*names, *(f"quick/{name}" for name in names)]
    shutil.rmtree(bench.KEPT / bench.QUICK)
    bench.take(tried)
    assert not (bench.KEPT / bench.QUICK).exists()  # what is measured need not be tried


def test_datasets_that_were_not_measured_again_stay(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept")
    written(tmp_path / "one", "attend-fig3", "small", {"glyphs": 0.5, "omniglot": 0.4}, {})
    written(tmp_path / "two", "attend-fig3", "small", {"/data/omniglot/images": 0.6, "clinc150.npz": 0.9}, {})
    bench.take(tmp_path / "one")
    bench.take(tmp_path / "two")
    rows = json.loads((bench.KEPT / "attend-fig3.json").read_text())["measured"]
    values = {name: row["Ours"]["0"]["values"]["recall@1"] for name, row in rows.items()}
    assert values == {"glyphs": 0.5, "omniglot": 0.6, "clinc150": 0.9}


def test_what_quick_made_is_shown_where_nothing_else_is_and_says_so(tmp_path):
    written(tmp_path, "attend-4", "small", {"glyphs": 0.5}, {})
    written(tmp_path / "quick", "attend-4", "quick", {"glyphs": 0.2}, {})
    written(tmp_path / "quick", "attend-fig3", "quick", {"glyphs": 0.2}, {"glyphs": ["attend-fig3-glyphs.png"]})
    page = papers_page(tmp_path)
    of_table, of_figure = (page.split(f"`entourage reproduce {name}`")[1].split("###")[0] for name in NAMES)
    assert "Tried" not in of_table
    assert "**Tried here by `--quick`** (glyphs: , 1 seed)" in of_figure and "20.0" in of_figure
    assert "benchmarks/results/papers/quick/attend-fig3-glyphs.png" in of_figure
