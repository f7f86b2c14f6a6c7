"""The speed benchmarks as a command, at toy size: what they measure is not judged here, what they write is."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SPEED = ROOT / "benchmarks" / "speed"

pytestmark = pytest.mark.usefixtures("one_thread")
MEASURES_MEMORY = os.access("/proc/self/clear_refs", os.W_OK)
KEYS = {"bench", "contender", "peer", "ratio", "needed", "ok", "detail"}


def command(*line) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    line = [sys.executable, *map(str, line)]
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def entries_of(file: Path) -> list[dict]:
    entries = json.loads(file.read_text())
    for entry in entries:
        assert set(entry) >= KEYS
        assert entry["ok"] is (entry["needed"] is None or entry["ratio"] >= entry["needed"]) or entry["detail"]["error"]
    return entries


def load(name: str, file: str):
    spec = importlib.util.spec_from_file_location(name, SPEED / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def speed(monkeypatch):
    """The main module with its folder on the path, as when it is run; what it imports is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [str(SPEED), str(SPEED.parent), *sys.path])
    known = set(sys.modules)
    yield load("speed_main", "__main__.py")
    for name in set(sys.modules) - known:
        if str(SPEED) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def no_children(speed, monkeypatch):
    """Everything in this process: a new one takes seconds to load its libraries."""
    import children

    monkeypatch.setattr(children, "cost_in_child", children._measure)


def test_every_bench_that_is_here_runs_and_is_written_down(speed, no_children, tmp_path, monkeypatch):
    in_tests_below = ("startup", "sharing")
    monkeypatch.setattr(speed, "MODULES", [name for name in speed.MODULES if name not in in_tests_below])
    speed.main(["--quick", "--n", "300", "--out", str(tmp_path)])
    entries = entries_of(tmp_path / "n300.json")
    assert {entry["module"] for entry in entries} == {path.stem for path in SPEED.glob("*.py")} & set(speed.MODULES)
    assert [entry for entry in entries if "error" in entry["detail"]] == []
    drawn = {entry["bench"] for entry in entries if entry["module"] == "pictures"}
    assert drawn == {"plot drift, d = 64", "plot query, d = 64", "plot drift, d = 512"}
    table = (tmp_path / "n300.md").read_text()
    assert "numba threads on" in table and "faiss-cpu 1." in table
    assert all(entry["bench"] in table for entry in entries)


def test_the_command_ends_well(tmp_path):
    outcome = command("benchmarks/speed", "--only", "startup", "--n", 50, "--out", tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert [entry["contender"] for entry in entries_of(tmp_path / "n50.json")] == [
        "entourage --help",
        "import entourage",
    ]
    assert command("-m", "benchmarks.speed", "--help").returncode == 0


def test_commands_at_once_are_measured_against_one_alone(speed, monkeypatch):
    import sharing

    started = []

    def quick(line, environment):
        started.append((line[0], environment))
        return subprocess.Popen([sys.executable, "-c", "pass"], stderr=subprocess.PIPE, text=True)

    monkeypatch.setattr(sharing, "_start", quick)
    results = list(sharing.run(60, quick=True))
    assert [(result.bench, result.needed) for result in results] == [
        ("sharing a machine", 1 / 2.3),
        ("a machine of its own", 0.9),
    ] * 2
    assert started[:4] == [("refine", {})] * 3 + [("refine", sharing.IN_LOOPS)]
    assert started[-1] == ("fit", sharing.IN_LOOPS)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="ended with 2: error: "):
        sharing._at_once(["refine", "nothing.npy", "--out"], 1, {})


def test_memory_is_measured_in_a_process_of_its_own(speed):
    import children

    cost = children.cost_in_child(functools.partial(functools.partial, np.ones), 8_000_000)  # np.ones(n): 61 MB
    assert cost.seconds > 0
    assert 50 < cost.mb < 90 if MEASURES_MEMORY else cost.mb is None


def write_benches(folder: Path, **sources: str) -> None:
    for name, source in sources.items():
        (folder / f"{name}.py").write_text("from timing import Result\n\ndef run(n, quick):\n" + source)


@pytest.fixture
def toy_benches(speed, tmp_path, monkeypatch):
    """Two benches, of which the first stops half way; the name of a third that does not exist."""
    write_benches(
        tmp_path,
        toy_broken='    yield Result("first", "a", "b", 2.0, 3.0, {"n": n})\n    raise ValueError("no luck")\n',
        toy_whole='    yield Result("second", "a", "b", 2.0, None, {"quick": quick})\n',
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(speed, "MODULES", ("toy_broken", "toy_missing", "toy_whole"))
    yield speed
    for name in ("toy_broken", "toy_whole"):
        sys.modules.pop(name, None)


def test_a_bench_that_raises_is_reported_and_the_others_go_on(toy_benches, tmp_path, capsys):
    toy_benches.main(["--n", "50", "--out", str(tmp_path)])
    first, failed, second = entries_of(tmp_path / "n50.json")
    assert (first["bench"], first["ok"], first["detail"]) == ("first", False, {"n": 50})
    assert failed["ok"] is False and failed["detail"]["error"] == "ValueError: no luck"
    assert (second["bench"], second["ok"], second["detail"]) == ("second", True, {"quick": False})
    said = capsys.readouterr()
    assert "toy_missing: skipped" in said.err
    assert "| first | a | b | 2.00 | 3 | **below** |" in said.out
    assert "| toy_broken | entourage |  |  |  | failed |" in (tmp_path / "n50.md").read_text()


def test_the_documentation_shows_what_was_measured_and_calls_limits_ours(speed):
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for name in ("full", "quick"):
        rows = [speed._row(entry) for entry in entries_of(ROOT / "benchmarks" / "results" / f"{name}.json")]
        assert "\n".join([*speed.HEAD, *rows, f"<!-- speed {name}: end -->"]) in page
    assert "| our limit |" in page and "| 0.91 | ok |" in page


def test_one_bench_repeated_leaves_the_others(toy_benches, tmp_path):
    toy_benches.main(["--n", "50", "--out", str(tmp_path)])
    before = entries_of(tmp_path / "n50.json")
    toy_benches.main(["--n", "50", "--out", str(tmp_path), "--only", "toy_whole"])
    assert entries_of(tmp_path / "n50.json") == before


def test_a_run_that_is_stopped_keeps_what_it_has(toy_benches, tmp_path, monkeypatch):
    write_benches(
        tmp_path, toy_stopped='    yield Result("third", "a", "b", 1.0, 1.0, {})\n    raise KeyboardInterrupt\n'
    )
    monkeypatch.setattr(toy_benches, "MODULES", ("toy_stopped",))
    with pytest.raises(KeyboardInterrupt):
        toy_benches.main(["--n", "50", "--out", str(tmp_path)])
    assert [entry["bench"] for entry in entries_of(tmp_path / "n50.json")] == ["third"]
    sys.modules.pop("toy_stopped")


def test_only_results_of_the_two_standard_sizes_go_into_the_documentation(toy_benches, tmp_path, monkeypatch):
    page = tmp_path / "speed.md"
    page.write_text("before\n<!-- speed quick: begin -->\nold\n<!-- speed quick: end -->\nafter\n")
    monkeypatch.setattr(toy_benches, "PAGE", page)
    monkeypatch.setattr(toy_benches, "RESULTS", tmp_path)
    toy_benches.main(["--n", "50", "--out", str(tmp_path)])
    assert "old" in page.read_text()
    toy_benches.main(["--quick", "--out", str(tmp_path)])
    text = page.read_text()
    assert "old" not in text and "| second | a | b | 2.00 |" in text
    assert text.startswith("before\n<!-- speed quick: begin -->\nN = 12,288, d = 512; ") and text.endswith("\nafter\n")


def test_growth_is_tabled_and_drawn(speed, no_children, tmp_path):
    scaling = load("speed_scaling", "scaling.py")
    scaling.main(["--sizes", "60", "120", "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "scaling.json").read_text())
    assert len(rows) == 8 and {row["n"] for row in rows} == {60, 120}
    assert all(row["seconds"] > 0 and (row["mb"] is not None) == MEASURES_MEMORY for row in rows)
    assert "| metrics (search included) |" in (tmp_path / "scaling.md").read_text()
    assert (tmp_path / "scaling.png").stat().st_size > 10_000


def test_made_up_items_have_the_shape_of_the_test_split(speed):
    import numpy as np

    from samples import CLASSES, FULL, clustered_items

    vectors, labels = clustered_items(5350, d=32)
    sizes = np.bincount(labels)
    assert vectors.shape == (5350, 32) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert len(sizes) == round(5350 * CLASSES / FULL) and 2 <= sizes.min() < sizes.max() <= 12
    np.testing.assert_array_equal(vectors, clustered_items(5350, d=32)[0])
