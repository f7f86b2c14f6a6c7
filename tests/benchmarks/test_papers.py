"""The page of the papers is in step with what is printed, what is kept, and the pages of the systems."""

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from entourage.runs.reproduce.markdown import printed_text
from entourage.runs.reproduce.tables import tables

ROOT = Path(__file__).parents[2]


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
        assert table.says in page and table.differs in page
    row = next(line for line in page.splitlines() if line.startswith("| Ours 2048"))
    assert re.split(r"\s*\|\s*", row)[2:-1] == ["74.8", "83.8", "76.9", "91.4", "94.5", "77.6", "82.3", "92.7", "93.4"]


def test_what_is_kept_is_of_rows_that_there_are(bench):
    known = tables("small")
    files = sorted(path for path in bench.KEPT.glob("*.json") if path.stem in known)
    assert files
    for path in files:
        names = {row.name for row in known[path.stem].made}
        for rows in json.loads(path.read_text())["measured"].values():
            assert set(rows) <= names, path.name


def test_results_are_taken_with_their_pictures(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept")
    made = tmp_path / "small"
    made.mkdir()
    for name in ("attend-3.json", "attend-3.md", "attend-fig3-glyphs.png", "other.png"):
        (made / name).write_text("{}")
    bench.take(made)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["attend-3.json", "attend-fig3-glyphs.png"]
