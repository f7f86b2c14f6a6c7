"""The comparison on real data: what is kept and what is measured again, claims, and the tables."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.comparison.intervals import intervals_between
from entourage.comparison.measuring import compare_split
from entourage.comparison.splits import split_half, split_numbered

ROOT = Path(__file__).parents[2]
COMPARE = ROOT / "docs" / "compare.md"
MODULES = ("compare_real", "real_results", "real_claims", "real_tables", "markers")
PLACES = tuple(f"compare_real{ending}" for ending in ("", "_first", "_parts", "_uses", "_claims", "_ranges"))
METHODS = "alpha-qe-8-3,pca-whitening"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The script, with data, measurements and pages of its own."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    module, kept, tables = (importlib.import_module(name) for name in ("compare_real", "real_results", "real_tables"))
    monkeypatch.setattr(kept, "MEASURED", tmp_path / "measured")
    for each in (kept, tables):
        monkeypatch.setattr(each, "RESULTS", tmp_path)
    place = "".join(f"before\n<!-- {name}: begin -->\nyesterday\n<!-- {name}: end -->\nafter\n" for name in PLACES)
    for name in ("README", "PAGE", "REFINER"):
        (tmp_path / f"{name}.md").write_text(place)
        monkeypatch.setattr(tables, name, tmp_path / f"{name}.md")
    for seed, name in enumerate(("one", "two")):
        items = clusters(n_classes=24, per_class=6, seed=seed)
        (tmp_path / "data" / name).mkdir(parents=True)
        np.save(tmp_path / "data" / name / "vectors.npy", items.vectors)
        np.save(tmp_path / "data" / name / "labels.npy", items.labels)
    yield module
    for name in MODULES:
        sys.modules.pop(name, None)


def measure(bench, tmp_path, *more, half="train", methods=METHODS):
    bench.main(["--data", str(tmp_path / "data"), "--half", half, "--methods", methods, "--splits", "2", *more])


def test_each_method_is_measured_once_and_a_stopped_run_goes_on(bench, tmp_path, monkeypatch, capsys):
    measure(bench, tmp_path, "--protocols", "together", methods="alpha-qe-8-3")
    files = sorted(str(file.relative_to(tmp_path / "measured")) for file in (tmp_path / "measured").rglob("*.json"))
    assert files == sorted(
        f"train/{name}/{split}/{method}.json"
        for name in ("one", "two")
        for split in (0, 1)
        for method in ("raw", "alpha-qe-8-3")
    )
    fitted = []
    original = bench.score_methods

    def watched(specs, training, tasks, **options):
        fitted.append(([spec.name for spec in specs], [task.name for task in tasks]))
        return original(specs, training, tasks, **options)

    monkeypatch.setattr(bench, "score_methods", watched)
    measure(bench, tmp_path, "--protocols", "together", "--sets", "one")
    assert fitted == [(["raw", "pca-whitening"], ["together"])] * 2
    fitted.clear()
    measure(bench, tmp_path, "--protocols", "together,served", "--sets", "one")
    assert fitted == [(["raw", "alpha-qe-8-3", "pca-whitening"], ["served"])] * 2
    fitted.clear()
    measure(bench, tmp_path, "--protocols", "together,served", "--sets", "one")
    assert fitted == []
    assert not (tmp_path / "test_runs.json").exists() and "yesterday" in (tmp_path / "PAGE.md").read_text()


def test_the_training_half_is_measured_without_the_test_half(bench, tmp_path):
    measure(bench, tmp_path, "--protocols", "together", "--sets", "one", "--splits", "1", methods="alpha-qe-8-3")
    kept = json.loads((tmp_path / "measured" / "train" / "one" / "0" / "alpha-qe-8-3.json").read_text())
    items = clusters(n_classes=24, per_class=6, seed=0)
    items = type(items).from_vectors(items.vectors, labels=items.labels)
    training = split_half(items)[0]
    alone = compare_split(*split_half(training), ["alpha-qe-8-3"]).document()["methods"][1]
    assert kept["tasks"]["together"]["row"]["map@r"] == pytest.approx(alone["map@r"])
    assert kept["tasks"]["together"]["classes"] == list(range(6, 12))


def test_the_test_half_leaves_a_record_and_tables(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.kept, "CODE", ("nowhere",))
    measure(bench, tmp_path, half="test")
    (run,) = json.loads((tmp_path / "test_runs.json").read_text())
    assert run["sets"] == ["one", "two"] and run["splits"] == 2 and run["again"] is None
    assert len(run["commit"]) == 40 and run["date"] <= run["finished"]
    page, readme = ((tmp_path / f"{name}.md").read_text() for name in ("PAGE", "README"))
    assert "| R@1 / MAP@R | one | two |" in page and "| alpha-qe-8-3 |" in page and "alpha-qe-8-3" not in readme
    assert "| R@1 / MAP@R | raw |" in readme and "\n| two |" in readme
    assert "Means over 2 class splits: one, two." in page
    for task in ("served: R@1 / MAP@R / recall@10", "open: R@1 / AUROC / FPR", "sparse, distractors: R@1"):
        assert f"| {task}" in page
    document = json.loads((tmp_path / "compare_real.json").read_text())["one"]
    row = document["methods"]["alpha-qe-8-3"]
    assert row["map@r"] == pytest.approx(np.mean([row["splits"][str(each)]["map@r"] for each in (0, 1)]))
    assert "auroc" in document["further"]["open"]["raw"]


def test_uncommitted_code_is_not_recorded(bench, monkeypatch, tmp_path):
    class Changed:
        stdout = " M src/entourage/errors.py\n"

    monkeypatch.setattr(bench.kept.subprocess, "run", lambda *command, **options: Changed())
    with pytest.raises(SystemExit, match="uncommitted changes"):
        measure(bench, tmp_path, half="test")


def test_intervals_of_class_scores_are_those_of_the_queries_of_all_splits(bench, tmp_path):
    measure(bench, tmp_path, "--protocols", "together", "--sets", "one")
    methods = bench.kept.summary("train")["one"]["together"]
    scores, labels = bench.kept.on_common_splits(methods)
    items = clusters(n_classes=24, per_class=6, seed=0)
    items = type(items).from_vectors(items.vectors, labels=items.labels)
    values, classes = [], []
    for number in (0, 1):
        halves = split_numbered(split_numbered(items, 0)[0], number)
        found = compare_split(*halves, ["alpha-qe-8-3"])
        values.append([found.result(name).per_query["map@r"] for name in ("alpha-qe-8-3", "raw")])
        classes.append(found.labels)
    own, raw = ({"map@r": np.concatenate(each)} for each in zip(*values, strict=True))
    wanted = intervals_between(own, raw, np.concatenate(classes).astype(str))["map@r"]
    ours = intervals_between({"map@r": scores["alpha-qe-8-3"]["map@r"]}, scores["raw"], labels)["map@r"]
    assert ours.document() == pytest.approx(wanted.document(), abs=1e-5)


def part(recall, precision, at_10=0.9, **more):
    """A class split of four classes that all score alike."""
    scores = {"recall@1": recall, "map@r": precision, "recall@10": at_10}
    by_class = {name: [value] * 4 for name, value in scores.items()}
    row = scores | more | {"seeds": [{"split": 0}]}
    return {0: {"row": row, "classes": [0, 1, 2, 3], "sizes": [1, 2, 3, 4], "scores": by_class, "drawn": ""}}


def test_claims_hold_or_fail_by_so_much(bench, capsys):
    together = {
        "raw": part(0.50, 0.30),
        "alpha-qe": part(0.50, 0.40),
        "lda": part(0.56, 0.45),
        "alpha-qe-8-3": part(0.50, 0.39),
        "universal": part(0.494, 0.38, 0.896),
        "universal-tuned": part(0.50, 0.405),
        "relational": part(0.55, 0.46, 0.88),
    }
    tasks = {
        "together": together,
        "served": {"raw": part(0.5, 0.3), "relational": part(0.51, 0.4)},
        "sparse, 1 a class": {"raw": part(0.5, 0.3), "relational": part(0.498, 0.3)},
        "sparse, zipf": {"raw": part(0.5, 0.3), "relational": part(0.48, 0.3)},
        "open": {"raw": part(0.5, 0.3, auroc=0.8), "relational": part(0.5, 0.3, auroc=0.79)},
    }
    found = {claim.text: claim for claim in bench.claims({"some-set": tasks})}
    verdicts = {text: (claim.holds, round(claim.margin, 6)) for text, claim in found.items()}
    assert verdicts == {
        "relational: MAP@R not below every rival": (True, 1.0),
        "relational: R@1 not below every rival beyond the interval": (False, -1.0),
        "universal: MAP@R not below every rival without labels": (False, -1.0),
        "universal-tuned: MAP@R not below every untrained rival, tuned": (True, 0.5),
        "relational: MAP@R not below universal": (True, 8.0),
        "universal: recall@10 not below raw by more than 0.5": (True, 0.1),
        "universal: R@1 not below raw by more than 0.5": (False, -0.1),
        "relational: recall@10 not below raw by more than 0.5": (False, -1.5),
        "relational, served: R@1 not below raw": (True, 1.0),
        "relational, sparse: R@1 not below raw by more than 0.5, in the worst gallery": (False, -1.5),
        "relational, sparse: MAP@R not below raw by more than 0.5, in the worst gallery": (True, 0.5),
        "relational, open: AUROC not below raw": (False, -1.0),
    }
    text = bench.described(list(found.values()))
    assert "relational: R@1 not below every rival beyond the interval: 0 of 1 sets" in text
    assert "fails by 1.50" in text and "sparse, zipf" in text and "to lda" in text
    table = bench.write_tables.__globals__["claims_table"](list(found.values()))
    assert "| relational: R@1 not below every rival beyond the interval | 0 of 1 sets | " in table and " 1.50" in table
    assert "| relational, open: AUROC not below raw | 0 of 1 sets | " in table


def test_nothing_is_bold_that_may_be_chance(bench):
    """Of four classes one is better by far and two are a little worse: other classes might say the opposite."""
    methods = {"raw": part(0.5, 0.25), "lda": part(0.5, 0.40), "relational": part(0.5, 0.41)}
    assert "| lda | 50.0 / 40.0 |" in bench.write_tables.__globals__["tables"](_document(bench, methods))
    methods["relational"][0]["scores"]["map@r"] = [0.39, 0.39, 0.39, 0.45]
    table = bench.write_tables.__globals__["tables"](_document(bench, methods))
    assert "**" not in table
    methods["relational"][0]["scores"]["map@r"] = [0.41] * 4
    assert "| relational | 50.0 / **41.0** |" in bench.write_tables.__globals__["tables"](_document(bench, methods))


def _document(bench, methods):
    return bench.kept.write_summary({"some-set": {"together": methods}})


def test_the_documentation_shows_what_was_measured(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.kept, "MEASURED", ROOT / "benchmarks" / "measured")
    bench.main(["--claims", "--half", "test"])
    results = ROOT / "benchmarks" / "results"
    assert (tmp_path / "compare_real.md").read_text() == (results / "compare_real.md").read_text()
    pages = {ROOT / "README.md": "README.md", COMPARE: "PAGE.md", COMPARE.with_name("refiner.md"): "REFINER.md"}
    for page, ours in pages.items():
        for block in (tmp_path / ours).read_text().split("before\n")[1:]:
            block = block.removesuffix("after\n")
            assert "yesterday" in block or block in page.read_text(encoding="utf-8"), f"{page.name} holds another table"
