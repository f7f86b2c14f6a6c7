"""`entourage doctor`: what it prints, where labels come from, bad input."""

import json

import numpy as np
import pytest
from tests.comparison.test_diagnosis import clusters
from typer.testing import CliRunner

from entourage.cli import app

pytestmark = pytest.mark.usefixtures("one_thread")


def run(command: str):
    return CliRunner().invoke(app, command.split(), catch_exceptions=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    vectors, labels = clusters(20, 10, 1.0)
    np.save(folder / "v.npy", vectors)
    np.save(folder / "l.npy", labels)
    (folder / "l.txt").write_text("\n".join(f"class {label}" for label in labels) + "\n")
    np.savez(folder / "v.npz", vectors=vectors, labels=labels, coarse=labels % 3)
    np.save(folder / "one.npy", vectors[:1])
    np.save(folder / "short.npy", labels[:-1])
    vectors[3] = np.nan
    np.save(folder / "nan.npy", vectors)
    return folder


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_the_document(inside):
    outcome = run("doctor v.npy --labels l.npy --json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    document = json.loads(outcome.stdout)
    assert list(document) == ["protocol", "metrics", "findings", "verdict"]
    assert (document["protocol"]["items"], document["protocol"]["dimensions"]) == (200, 32)
    assert all(set(found) == {"name", "value", "note"} for found in document["findings"])
    numbers = {f["name"]: f["value"] for f in document["findings"] if isinstance(f["value"], int | float)}
    assert document["metrics"] == numbers
    assert document["verdict"].startswith("refinement should help: ")


def test_without_labels(inside):
    document = json.loads(run("doctor v.npy --json").stdout)
    assert document["protocol"]["classes"] is None
    assert "map@r" not in document["metrics"] and "estimated_purity" in document["metrics"]


def test_the_table_says_the_same(inside):
    text, document = run("doctor v.npz"), json.loads(run("doctor v.npz --json").stdout)
    lines = text.stdout.splitlines()
    assert text.exit_code == 0 and lines[-1] == document["verdict"]
    assert any(line.split()[:3] == ["map@r", f"{100 * document['metrics']['map@r']:.1f}", "%"] for line in lines)
    shares = {name for name, value in document["metrics"].items() if isinstance(value, float)}
    shares -= {"hubness", "mean_cosine", "median_class", "same_class_neighbors", "structure"}
    assert {"estimated_purity", "true_purity", "room", "recall@1"} <= shares
    for name in shares:
        assert 0 <= document["metrics"][name] <= 1, "a fraction in the document"
        line = next(line for line in lines if line.startswith(f"{name.replace('_', ' ')}  "))
        assert f" {100 * document['metrics'][name]:.1f} % " in line, "in percent in the table"


@pytest.mark.parametrize(
    ("command", "classes"), [("v.npz", 20), ("v.npz --labels coarse", 3), ("v.npy --labels l.txt", 20)]
)
def test_where_labels_come_from(inside, command, classes):
    assert json.loads(run(f"doctor {command} --json").stdout)["protocol"]["classes"] == classes


def test_one_item_on_the_command_line(inside):
    outcome = run("doctor one.npy")
    assert outcome.exit_code == 0 and "will not help: 1 distinct vector" in outcome.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("nan.npy", "nan.npy: row 3 of the vectors contains NaN"),
        ("no.npy", "no.npy does not exist"),
        ("v.npy --labels short.npy", "199"),
        ("v.npz --labels colour", "colour"),
    ],
)
def test_bad_input_gets_one_sentence(inside, command, message):
    outcome = run(f"doctor {command}")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert len(outcome.stderr.splitlines()) == 1 and outcome.stderr.startswith("error: ")
    assert message in outcome.stderr
