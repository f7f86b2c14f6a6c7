"""What the commands are tried on: a folder of good vectors and labels, and everything that can be wrong with them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from entourage.cli import app

CLASSES, PER_CLASS, DIM = 8, 10, 8
COUNT = CLASSES * PER_CLASS
FIT = "--recipe paper --blocks 2 --epochs 2"


def run(command: str, *more):
    """A command in this process; `more` are arguments that may hold spaces."""
    return CliRunner().invoke(app, [*command.split(), *map(str, more)], catch_exceptions=False)


def document(result) -> dict:
    """What --json printed: one document, and nothing else anywhere."""
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too, to tell whether a command changed anything."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_good_files(folder: Path) -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(CLASSES), PER_CLASS)
    x = (rng.normal(size=(CLASSES, DIM))[classes] + 0.6 * rng.normal(size=(COUNT, DIM))).astype(np.float32)
    ids, labels = [f"id {row}" for row in range(COUNT)], [f"class {code}" for code in classes]
    np.save(folder / "v.npy", x)
    np.save(folder / "l.npy", classes)
    np.savez(folder / "v.npz", vectors=x.astype(np.float64), ids=ids, labels=labels, coarse=classes % 3)
    pq.write_table(pa.table({"id": ids, "vector": list(x), "label": labels, "n": classes}), folder / "v.parquet")
    (folder / "l.txt").write_text("\n".join(labels) + "\n")
    lines = [f"{item},{label}\n" for item, label in zip(ids, labels, strict=True)]
    (folder / "l.csv").write_text("id,label\n" + "".join(reversed(lines)))


def write_bad_files(folder: Path) -> None:
    x, classes = np.load(folder / "v.npy"), np.load(folder / "l.npy")
    for name, value in {"nan": np.nan, "inf": np.inf, "zero": 0}.items():
        bad = x.copy()
        bad[3] = value
        np.save(folder / f"{name}.npy", bad)
    np.save(folder / "wide.npy", np.hstack([x, x]))
    np.save(folder / "few.npy", x[:5])
    np.save(folder / "short-labels.npy", classes[:-1])
    np.save(folder / "one-class.npy", classes * 0)
    np.save(folder / "all-different.npy", np.arange(COUNT))
    np.save(folder / "objects.npy", np.array([{}, None]), allow_pickle=True)
    np.savez(folder / "twice.npz", vectors=x, ids=classes)
    pq.write_table(pa.table({"vector": [row[: 1 + i % 2] for i, row in enumerate(x)]}), folder / "ragged.parquet")
    null = pa.array(["a", None] * (COUNT // 2))
    pq.write_table(pa.table({"vector": list(x), "id": null}), folder / "null-id.parquet")
    pq.write_table(pa.table({"vector": list(x), "label": null}), folder / "null-label.parquet")
    (folder / "text.npy").write_text("0.1 0.2 0.3\n")
    (folder / "empty.npy").touch()
    for name in ("v.npy", "v.npz", "v.parquet"):
        whole = (folder / name).read_bytes()
        (folder / f"cut-{name}").write_bytes(whole[: len(whole) // 2])
    for name, damaged in {"cut-model": "model.safetensors", "bad-config": "config.json"}.items():
        shutil.copytree(folder / "model", folder / name)
        (folder / name / damaged).write_bytes((folder / "model" / damaged).read_bytes()[:100])
    (folder / "there.npy").write_text("in the way")
    (folder / "precious").mkdir()
    (folder / "precious" / "thesis.tex").write_text("years of work")


def check_refused(folder: Path, command: str, message: str) -> None:
    """One sentence on standard error, exit code 2, nothing on standard output and nothing changed in the folder."""
    before = files(folder)
    outcome = run(command)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error: ") and outcome.stderr.endswith("\n")
    assert len(outcome.stderr.splitlines()) == 1
    assert message in outcome.stderr
    assert files(folder) == before
