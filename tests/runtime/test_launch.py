"""Which of several processes this is: clear, or refused in a sentence; never a result that nobody writes."""

import numpy as np
import pytest
from typer.testing import CliRunner

from entourage.cli import app
from entourage.errors import InputError
from entourage.runtime.launch import Launch, launched

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
MEET = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.fixture
def environment(monkeypatch):
    """Sets what torchrun sets, and nothing else of it."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def set_all(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"RANK": "3"},
        {"RANK": "x", "LOCAL_RANK": "-1"},
        {"RANK": "3", "WORLD_SIZE": ""},
        {"LOCAL_WORLD_SIZE": "x"},
        {"WORLD_SIZE": "1"},
        {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"},
        {"WORLD_SIZE": "1", "RANK": ""},
    ],
)
def test_a_process_of_its_own(environment, values):
    environment(**values)
    assert launched() == Launch()


def test_a_process_among_several(environment):
    environment(**MEET, RANK="5", WORLD_SIZE="8", LOCAL_RANK="1", LOCAL_WORLD_SIZE="4")
    assert launched() == Launch(5, 8, 1, 4)


BAD = [
    ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two' in the environment; wanted a whole number, 1 or more"),
    ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0'"),
    ({"WORLD_SIZE": "-2"}, "WORLD_SIZE is '-2'"),
    ({"WORLD_SIZE": "1", "RANK": "--1"}, "RANK is '--1'"),
    ({"WORLD_SIZE": "2.5"}, "WORLD_SIZE is '2.5'"),
    ({"WORLD_SIZE": "9" * 5000}, "WORLD_SIZE is '9"),
    ({"WORLD_SIZE": "1", "RANK": "3"}, "RANK is '3' in the environment; wanted a whole number, from 0 to 0"),
    ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2 but RANK is not set"),
    ({"WORLD_SIZE": "2", "RANK": ""}, "WORLD_SIZE is 2 but RANK is not set"),
    ({"WORLD_SIZE": "2", "RANK": "0"}, "but MASTER_ADDR is not set"),
    ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost"}, "but MASTER_PORT is not set"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "http"}, "MASTER_PORT is 'http'"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "2"}, "RANK is '2' in the environment; wanted a whole number, from 0 to 1"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "-1"}, "RANK is '-1'"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "one"}, "RANK is 'one'"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "x"}, "LOCAL_RANK is 'x'"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "-1"}, "LOCAL_RANK is '-1'"),
    (MEET | {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_WORLD_SIZE": "0"}, "LOCAL_WORLD_SIZE is '0'"),
]


@pytest.mark.parametrize(("values", "message"), BAD)
def test_what_does_not_fit_is_refused_in_a_sentence_and_nothing_is_trained(
    environment, values, message, tmp_path, monkeypatch
):
    environment(**values)
    with pytest.raises(InputError) as refused:
        launched()
    assert str(refused.value).startswith(message) or message in str(refused.value)
    assert str(refused.value).endswith("start the processes with torchrun, or unset WORLD_SIZE to train with one")
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app, ["train", "glyphs", "--out", "run"])
    assert outcome.exit_code == 2 and outcome.output.startswith("error: ") and len(outcome.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rank", ["3", "x", ""])
def test_a_rank_that_nobody_set_for_it_does_not_cost_the_result(environment, rank, tmp_path):
    environment(RANK=rank)
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(8), 6)
    vectors = rng.normal(size=(8, 6))[labels] + 0.1 * rng.normal(size=(48, 6))
    np.savez(tmp_path / "v.npz", vectors=vectors, labels=labels)
    line = ["train", tmp_path / "v.npz", "--out", tmp_path / "run", "--encoder", "linear", "--epochs", "1", "--no-nmi"]
    outcome = CliRunner().invoke(app, list(map(str, line)))
    assert outcome.exit_code == 0, outcome.output
    assert (tmp_path / "run" / "encoder").is_dir()
