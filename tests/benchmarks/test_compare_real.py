"""The tables of the comparison on real data: what is written where, from results that are there."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPARE = ROOT / "docs" / "compare.md"
PLACE = "before\n<!-- compare_real: begin -->\nyesterday\n<!-- compare_real: end -->\nafter\n"


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The script, writing into pages of its own."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("compare_real_bench", ROOT / "benchmarks" / "compare_real.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    for name in ("README", "PAGE"):
        (tmp_path / f"{name}.md").write_text(PLACE)
        monkeypatch.setattr(module, name, tmp_path / f"{name}.md")
    return module


def document(**scores: float) -> dict:
    rows = [{"method": name, "recall@1": 0.5, "map@r": score, "seeds": [{}]} for name, score in scores.items()]
    return {"protocol": {"seeds": [0]}, "methods": rows}


def test_the_page_has_every_method_and_the_readme_a_few(bench, tmp_path):
    bench.keep("some-set", document(raw=0.25, lda=0.75, relational=0.5))
    page, readme = ((tmp_path / f"{name}.md").read_text() for name in ("PAGE", "README"))
    for text in (page, readme):
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "yesterday" not in text
        assert "| raw | **50.0** / 25.0 |" in text and "| relational | **50.0** / 50.0 |" in text
    assert "| lda | **50.0** / **75.0** |" in page and "| lda |" not in readme
    assert "(docs/compare.md#what-it-gains)" in readme and "## What it gains" in COMPARE.read_text(encoding="utf-8")
    assert (tmp_path / "compare_real.md").read_text() in page


def test_the_documentation_shows_what_was_measured(bench, tmp_path):
    bench.write_tables(json.loads((ROOT / "benchmarks" / "results" / "compare_real.json").read_text()))
    written = {ROOT / "README.md": "README.md", COMPARE: "PAGE.md"}
    for page, ours in written.items():
        block = (tmp_path / ours).read_text().removeprefix("before\n").removesuffix("after\n")
        assert block in page.read_text(encoding="utf-8"), f"{page.name} holds another table"
