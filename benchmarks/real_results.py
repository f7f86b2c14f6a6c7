"""What compare_real.py has measured: kept by half, set, class split and method, and put together.

A file of measured/HALF/SET/SPLIT/METHOD.json has, for each task, the row that `entourage compare --json` gives and the
scores of every class, from which intervals between any two methods are made, over the class splits that both have.
"""

import json
import os
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np

from entourage.comparison.intervals import JUDGED_BY, Scores, leader
from entourage.comparison.methods import METHODS
from entourage.comparison.open_set import OpenSet
from entourage.comparison.results import LISTED, Comparison, MethodResult
from entourage.comparison.scoring import scored_queries
from entourage.values import label_codes, labels_of

MEASURED = Path(__file__).parent / "measured"
RESULTS = Path(__file__).parent / "results"
CODE = ("src", "benchmarks/*.py")


class Key(NamedTuple):
    """What is measured."""

    half: str
    name: str
    """Of the set."""
    split: int

    def file(self, method: str) -> Path:
        return MEASURED / self.half / self.name / str(self.split) / f"{method}.json"


# ---- method by method ----------------------------------------------------------------------------------------------


def missing(key: Key, method: str, protocols: list[str], seeds: int, again: str | None) -> list[str]:
    """The protocols under which a method is still to be measured."""
    if again or not key.file(method).exists():
        return protocols
    known = json.loads(key.file(method).read_text())
    return [name for name in protocols if known["seeds"].get(name, 0) < seeds]


def keep(key: Key, method: str, protocols, tasks, results: list[MethodResult]) -> None:
    """Add what was measured of a method to its file, whole or not at all."""
    file = key.file(method)
    known = json.loads(file.read_text()) if file.exists() else {"seeds": {}, "tasks": {}}
    known["seeds"] |= {name: len(results[0].seeds) for name in protocols}
    known |= {"commit": commit(), "date": now()}
    for task, result in zip(tasks, results, strict=True):
        known["tasks"][task.name] = _row(task, result)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(known))
    os.replace(new, file)


def _row(task, result: MethodResult) -> dict:
    if result.skipped:
        return {"skipped": result.skipped}
    queries = scored_queries(task)
    labels = labels_of(queries)
    open_set = None if task.known is None else OpenSet((labels_of(task.queries),), (task.known,))
    row = Comparison({}, (_as_raw(result),), queries.ids, labels, open_set=open_set).document()["methods"][0]
    codes, own = label_codes(labels), result.per_query
    sizes = np.bincount(codes)
    return {
        "drawn": task.note,
        "row": {name: value for name, value in row.items() if "_vs_" not in name} | {"method": result.method},
        "classes": np.unique(labels).tolist(),
        "sizes": sizes.tolist(),
        "scores": {name: (np.bincount(codes, own[name]) / sizes).round(6).tolist() for name in LISTED},
    }


def _as_raw(result: MethodResult) -> MethodResult:
    """A document compares with raw; here a method stands alone."""
    return MethodResult("raw", result.seeds, settings_are=result.settings_are)


# ---- together ------------------------------------------------------------------------------------------------------


def summary(half: str) -> dict:
    """All that was measured on a half: set -> task -> method -> its row, its splits and their classes."""
    found: dict = {}
    for file in sorted((MEASURED / half).glob("*/*/*.json")):
        known = json.loads(file.read_text())
        for task, part in known["tasks"].items():
            if "skipped" not in part:
                methods = found.setdefault(file.parts[-3], {}).setdefault(task, {})
                methods.setdefault(file.stem, {})[int(file.parts[-2])] = part
    return {name: {task: _ordered(methods) for task, methods in tasks.items()} for name, tasks in found.items()}


def _ordered(methods: dict) -> dict:
    return {name: dict(sorted(methods[name].items())) for name in METHODS if name in methods}


def score(splits: dict, metric: str) -> float:
    """The mean over the queries of all class splits; of AUROC, over the splits."""
    if metric in LISTED:
        weights = [sum(part["sizes"]) for part in splits.values()]
        return float(np.average([part["row"][metric] for part in splits.values()], weights=weights))
    return float(np.mean([part["row"][metric] for part in splits.values()]))


def on_common_splits(methods: dict[str, dict]) -> tuple[dict[str, Scores], np.ndarray]:
    """Scores of each method as if of every query, class means standing for them, and the classes of the queries."""
    common = sorted(set.intersection(*(set(splits) for splits in methods.values())))
    if not common:
        return {}, np.array([])
    first = next(iter(methods.values()))
    labels = [np.repeat(np.array(first[split]["classes"], str), first[split]["sizes"]) for split in common]
    scores: dict[str, Scores] = {}
    for name, splits in methods.items():
        parts = [splits[split] for split in common]
        scores[name] = {
            metric: np.concatenate([np.repeat(part["scores"][metric], part["sizes"]) for part in parts])
            for metric in LISTED
        }
    return scores, np.concatenate(labels)


def write_summary(results: dict) -> dict:
    """Write and return everything but the scores of classes, for the tables and for whoever wants to know.

    Of every task only the class splits that all its methods have, as scores of different ones cannot be compared.
    """
    document = {}
    for name, tasks in results.items():
        tasks = {task: _on_same_splits(methods) for task, methods in tasks.items()}
        document[name] = {"methods": _rows(tasks.get("together", {})), "best": _best(tasks.get("together", {}))}
        document[name]["further"] = {task: _rows(methods) for task, methods in tasks.items() if task != "together"}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "compare_real.json").write_text(json.dumps(document, indent=1) + "\n")
    return document


def _on_same_splits(methods: dict) -> dict:
    common = set.intersection(*(set(splits) for splits in methods.values()))
    return {name: {split: splits[split] for split in sorted(common)} for name, splits in methods.items()}


def _rows(methods: dict) -> dict:
    """By method: scores over all class splits, and the row of each."""
    rows = {}
    for name, splits in methods.items():
        first = next(iter(splits.values()))["row"]
        metrics = [*LISTED, *(each for each in ("auroc", "fpr@95tpr") if each in first)]
        rows[name] = {metric: score(splits, metric) for metric in metrics}
        rows[name]["seeds"] = [seed for part in splits.values() for seed in part["row"]["seeds"]]
        rows[name]["splits"] = {number: {"drawn": part["drawn"], **part["row"]} for number, part in splits.items()}
    return rows


def _best(methods: dict) -> dict:
    if not methods:
        return {}
    scores, labels = on_common_splits(methods)
    return {metric: leader(scores, metric, labels) for metric in JUDGED_BY} if scores else {}


# ---- the record of test runs ---------------------------------------------------------------------------------------


def record_run(asked: dict) -> str:
    """Write down that test halves are about to be scored; the date it is known by."""
    status = ["git", "status", "--porcelain", "--", *CODE]
    if subprocess.run(status, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]).stdout.strip():
        raise SystemExit("there are uncommitted changes of code: a recorded run names its commit; commit them first")
    file, date = RESULTS / "test_runs.json", now()
    runs = json.loads(file.read_text()) if file.exists() else []
    runs.append({"date": date, "commit": commit(), **asked, "finished": None})
    _write_runs(runs)
    return date


def record_end(date: str) -> None:
    """Write down that a run came to its end."""
    runs = json.loads((RESULTS / "test_runs.json").read_text())
    next(run for run in runs if run["date"] == date)["finished"] = now()
    _write_runs(runs)


def _write_runs(runs: list[dict]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "test_runs.json").write_text(json.dumps(runs, indent=1) + "\n")


def commit() -> str:
    return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
