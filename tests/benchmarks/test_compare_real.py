"""The tables of the comparison on real data: what is written where, from results that are there."""

import importlib.util
import json
from pathlib import Path

import pytest
from tests.comparison.samples import clusters

from entourage.comparison.measuring import compare_split
from entourage.comparison.splits import split_half

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


def by_class(**scores: float) -> dict:
    """Four classes; R@1 is the same for all, and MAP@R of every class that of the whole."""
    methods = {name: {"recall@1": [0.5] * 4, "map@r": [score] * 4} for name, score in scores.items()}
    return {"sizes": [1, 2, 3, 4], "methods": methods}


def test_the_page_has_every_method_and_the_readme_a_few(bench, tmp_path):
    scores = {"raw": 0.25, "lda": 0.75, "relational": 0.5}
    bench.keep("some-set", document(**scores), by_class(**scores))
    page, readme = ((tmp_path / f"{name}.md").read_text() for name in ("PAGE", "README"))
    for text in (page, readme):
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "yesterday" not in text
        assert "| raw | 50.0 / 25.0 |" in text and "| relational | 50.0 / 50.0 |" in text
    assert "| lda | 50.0 / **75.0** |" in page and "| lda |" not in readme
    assert "(docs/compare.md#what-it-gains)" in readme and "## What it gains" in COMPARE.read_text(encoding="utf-8")
    assert (tmp_path / "compare_real.md").read_text() in page


def test_nothing_is_bold_that_may_be_chance(bench, tmp_path):
    """Of four classes one is better by far and two are a little worse: other classes might say the opposite."""
    scores = {"raw": 0.25, "lda": 0.40, "relational": 0.41}
    classes = by_class(**scores)
    classes["methods"]["relational"]["map@r"] = [0.39, 0.39, 0.39, 0.45]
    for name in scores:  # one by one, as they are measured
        part = {"sizes": classes["sizes"], "methods": {name: classes["methods"][name]}}
        bench.keep("some-set", document(**{name: scores[name]}), part)
    assert "**" not in (tmp_path / "compare_real.md").read_text()
    best = json.loads((tmp_path / "compare_real.json").read_text())["some-set"]["best"]["map@r"]
    assert best == {"method": "relational", "tied_with": ["lda"]}


def test_class_scores_give_the_intervals_of_the_queries_themselves(bench):
    items = clusters(n_classes=12, per_class=5)
    comparison = compare_split(*split_half(items), ["alpha-qe-8-3", "pca-whitening"])
    kept = bench.class_scores(comparison)
    for metric in ("recall@1", "map@r"):
        assert bench.best_method(kept, metric) == comparison.document()["best"][metric]


def test_the_documentation_shows_what_was_measured(bench, tmp_path):
    bench.write_tables(json.loads((ROOT / "benchmarks" / "results" / "compare_real.json").read_text()))
    written = {ROOT / "README.md": "README.md", COMPARE: "PAGE.md"}
    for page, ours in written.items():
        block = (tmp_path / ours).read_text().removeprefix("before\n").removesuffix("after\n")
        assert block in page.read_text(encoding="utf-8"), f"{page.name} holds another table"
