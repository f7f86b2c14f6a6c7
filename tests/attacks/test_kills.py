"""A command killed at any step leaves what was there or what it was to write, whole; run again, it ends as if nothing
had happened and leaves nothing beside its outputs.

`make test` kills at a few steps of each command, `make attack` at every one.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.attacks.killing import Killer, Outcome

from entourage.stores.changes import settle_to_read

SAMPLE = 4  # steps of each command in `make test`
SEQUENCES = 15  # of kills, each of three in a row
TIMES = {"seconds", "images_per_second"}  # what two runs may differ in
FIT = "fit v.npz --recipe paper --blocks 1 --epochs 2"
TRAIN = "train v.npz --encoder linear --epochs 2 --no-nmi --set validation_share=0"


@dataclass(frozen=True)
class Scenario:
    """A command that replaces its outputs."""

    command: str
    outputs: tuple[str, ...]
    before: str | None = None
    """The command that wrote them before; None: they were not there, and --overwrite is not given."""
    kept: str | None = None
    """Where unfinished work is kept: if it is there, a user resumes it."""
    exchange: bool = True
    """Whether the system can exchange two names in one step."""


SCENARIOS = {
    "a new file": Scenario("refine v.npy --out o.npy", ("o.npy",)),
    "a new run": Scenario("refine v.npz --out o.npz --run kept", ("o.npz", "kept")),
    "npy": Scenario("refine v.npy --out o.npy", ("o.npy",), "refine w.npy --out o.npy"),
    "npy in stages": Scenario(
        "refine v.npy --out o.npy --search exact", ("o.npy",), "refine w.npy --out o.npy", kept="o.npy.refining"
    ),
    "npz": Scenario("refine v.npz --out o.npz", ("o.npz",), "refine w.npz --out o.npz"),
    "parquet": Scenario("refine v.parquet --out o.parquet", ("o.parquet",), "refine w.parquet --out o.parquet"),
    "queries and gallery": Scenario(
        "refine v.npy --context w.npy --out o.npy --context-out elsewhere/g.npy",
        ("o.npy", "elsewhere/g.npy"),
        "refine w.npy --context v.npy --out o.npy --context-out elsewhere/g.npy",
    ),
    "vectors and run": Scenario(
        "refine v.npz --out o.npz --run kept", ("o.npz", "kept"), "refine w.npz --out o.npz --run kept"
    ),
    "run": Scenario("refine v.npz --run kept", ("kept",), "refine w.npz --run kept"),
    "run by two renames": Scenario("refine v.npz --run kept", ("kept",), "refine w.npz --run kept", exchange=False),
    "vectors and run by two renames": Scenario(
        "refine v.npz --out o.npz --run kept", ("o.npz", "kept"), "refine w.npz --out o.npz --run kept", exchange=False
    ),
    "model": Scenario("fit few.npz --out model", ("model",), "fit few.npz --out model --neighbors 3"),
    "model with checkpoint": Scenario(
        f"{FIT} --out model", ("model",), "fit few.npz --out model", kept="model.checkpoint"
    ),
    "vectors and labels": Scenario(
        "embed v.npz --model trained --out e.npy --split all --shard-size 60",
        ("e.npy", "e.csv"),
        "embed w.npz --model trained --out e.npy --split all",
        kept="e.npy.parts",
    ),
    "training": Scenario(f"{TRAIN} --out run", ("run",), f"{TRAIN} --out run --seed 1", kept="run.partial"),
    "picture": Scenario("plot steps drawn --out p.png", ("p.png",), "plot grid drawn --out p.png"),
    "report": Scenario("report drawn", ("drawn/report.html",), "report drawn --seed 1"),
}
IN_THE_SAMPLE = (
    "a new file",
    "queries and gallery",
    "vectors and run",
    "model with checkpoint",
    "vectors and labels",
    "training",
    "npy in stages",
)


@pytest.fixture(scope="module")
def killer():
    killer = Killer()
    yield killer
    killer.close()


@pytest.fixture(scope="module")
def inputs(killer, tmp_path_factory) -> Path:
    """Vectors v and, in another order, w; a trained encoder and a run to draw."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("inputs")
    (folder / "elsewhere").mkdir()
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 10
    x = (rng.normal(size=(10, 8))[labels] + 0.5 * rng.normal(size=(90, 8))).astype(np.float32)
    for name, order in {"v": np.arange(90), "w": rng.permutation(90)}.items():
        np.save(folder / f"{name}.npy", x[order])
        np.savez(folder / f"{name}.npz", vectors=x[order], labels=labels[order], ids=order)
        pq.write_table(pa.table({"vector": list(x[order]), "id": order}), folder / f"{name}.parquet")
    np.savez(folder / "few.npz", vectors=x[:20], labels=labels[:20] % 2)
    for command in (f"{TRAIN} --out trained", "refine v.npz --run drawn"):
        done(killer.run(command, folder))
    return folder


def done(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.errors
    return outcome


def everything(folder: Path, within: tuple[str, ...] = ("",)) -> dict[str, bytes]:
    """All files, hidden ones too, and folders; without the times in them."""
    found = {}
    for name in within:
        for path in [folder / name, *(folder / name).rglob("*")] if (folder / name).exists() else []:
            found[str(path.relative_to(folder))] = _content(path) if path.is_file() else b"a folder"
    return found


def _content(path: Path) -> bytes:
    if path.suffix not in (".json", ".jsonl"):
        return path.read_bytes()
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    without_times = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
    return json.dumps(without_times).encode()


@dataclass(frozen=True)
class Prepared:
    """A scenario, ready to be killed."""

    scenario: Scenario
    command: str
    start: Path
    """How it was before the command."""
    place: Path
    """Where it runs, always the same, as a run names the place of its data."""
    before: dict[str, bytes]
    after: dict[str, bytes]
    whole: dict[str, bytes]
    """All there is after the command ran undisturbed."""
    steps: int


def prepared(killer: Killer, inputs: Path, folder: Path, scenario: Scenario) -> Prepared:
    start, place = folder / "start", folder / "place"
    shutil.copytree(inputs, place)
    if scenario.before is not None:
        done(killer.run(scenario.before, place))
    command = scenario.command + (" --overwrite" if scenario.before is not None else "")
    shutil.copytree(place, start)
    steps = done(killer.run(command, place, exchange=scenario.exchange)).steps
    before, after = (everything(each, scenario.outputs) for each in (start, place))
    assert before != after and len(after) >= len(scenario.outputs)
    return Prepared(scenario, command, start, place, before, after, everything(place), steps)


def check_killed(killer: Killer, ready: Prepared, *steps: int) -> None:
    """Kill the command at the first of the steps, the one that is run again at the next, ...; then let it be."""
    folder = ready.place
    shutil.rmtree(folder)
    shutil.copytree(ready.start, folder)
    outputs, when = ready.scenario.outputs, f"killed at {steps}"
    for step in steps:
        last = killer.run(as_a_user_would(ready, folder), folder, kill_at=step, exchange=ready.scenario.exchange)
        for output in outputs:
            settle_to_read(folder / output)  # as all who read an output do first
        state = everything(folder, outputs)
        assert state in (ready.before, ready.after), f"{when}: {sorted(state)}"
        if not last.killed:
            assert state == ready.after, f"{when}: {last.errors}"
    again = killer.run(as_a_user_would(ready, folder), folder, exchange=ready.scenario.exchange)
    if again.code == 2 and ready.scenario.before is None and "exists already" in again.errors:
        assert state == ready.after  # it was done
    else:
        done(again)
    assert sorted(everything(folder)) == sorted(ready.whole), when
    assert everything(folder) == ready.whole, when


def as_a_user_would(ready: Prepared, folder: Path) -> str:
    kept = ready.scenario.kept
    return ready.command + (" --resume" if kept is not None and (folder / kept).exists() else "")


def test_killed_at_some_steps_nothing_is_lost_or_mixed(killer, inputs, tmp_path):
    for name in IN_THE_SAMPLE:  # in one test: several would load everything in several processes
        ready = prepared(killer, inputs, tmp_path / name, SCENARIOS[name])
        for step in np.unique(np.linspace(1, ready.steps, SAMPLE).round().astype(int)).tolist():
            check_killed(killer, ready, step)


@pytest.mark.attack
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_at_any_step_nothing_is_lost_or_mixed(killer, inputs, tmp_path, name):
    ready = prepared(killer, inputs, tmp_path, SCENARIOS[name])
    for step in range(1, ready.steps + 1):
        check_killed(killer, ready, step)


@pytest.mark.attack
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ("picture", "report")])
def test_killed_again_and_again_nothing_is_lost_or_mixed(killer, inputs, tmp_path, name):
    ready = prepared(killer, inputs, tmp_path, SCENARIOS[name])
    rng = np.random.default_rng(0)
    for _ in range(SEQUENCES):
        check_killed(killer, ready, *rng.integers(1, ready.steps + 1, 3).tolist())
