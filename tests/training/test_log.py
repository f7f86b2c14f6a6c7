"""The log of a run: a line per epoch, each once, however often the run was broken off."""

import builtins
import json
from time import perf_counter

import pytest
import torch
from torch import nn

from entourage.errors import FileError, MissingExtra
from entourage.runtime.randomness import seeded_weights
from entourage.training.log import RunLog
from entourage.training.loop import fit_model
from entourage.training.schedule import step_schedule
from entourage.training.settings import Checkpointing, FitSettings, Reporting


class Crash(Exception):
    """Stands for a power cut."""


def fit(log, *, crash_in=None, epochs=4, checkpoint=None, resume=False, **reporting):
    model = seeded_weights(0, lambda: nn.ModuleDict({"encoder": nn.Linear(3, 2), "loss": nn.Linear(2, 1)}))
    groups = [{"params": model["encoder"].parameters()}, {"params": model["loss"].parameters(), "lr": 0.5}]

    def batches(epoch):
        if epoch == crash_in:
            raise Crash
        return [torch.ones(5, 3), torch.ones(7, 3)]

    return fit_model(
        model,
        torch.optim.SGD(groups, 0.01),
        FitSettings(epochs=epochs, patience=100, schedule=step_schedule([2])),
        batches=batches,
        loss=lambda x: model["loss"](model["encoder"](x)).square().mean(),
        evaluate=lambda: 0.25,
        checkpointing=checkpoint and Checkpointing(checkpoint, resume=resume),
        reporting=Reporting(log, **reporting),
    )


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_per_epoch_says_what_happened(tmp_path):
    path = tmp_path / "log.jsonl"
    start = perf_counter()
    history = fit(RunLog(path), unit="images")
    elapsed, entries = perf_counter() - start, lines(path)
    assert [{name: entry[name] for name in ("epoch", "loss", "score")} for entry in entries] == history.curve
    assert entries[0]["seconds"] is None and entries[0]["images_per_second"] is None
    assert sum(entry["seconds"] for entry in entries[1:]) <= elapsed + 2e-3  # each is rounded to milliseconds
    for entry in entries[1:]:
        assert entry["seconds"] == pytest.approx(12 / entry["images_per_second"], abs=6e-4)
    assert [entry["learning_rates"] for entry in entries[1:]] == [
        pytest.approx([0.01, 0.5]),
        pytest.approx([0.01, 0.5]),
        pytest.approx([0.001, 0.05]),
        pytest.approx([0.001, 0.05]),
    ]


def untimed(entries) -> list[dict]:
    return [{name: value for name, value in entry.items() if "second" not in name} for entry in entries]


@pytest.mark.parametrize(
    "left_over",
    ["", '{"epoch": 3, "loss": 1.0, "score": 0.0}\n', '{"epoch": 3, "lo'],
    ids=["in step", "logged but not saved", "cut short"],
)
def test_a_resumed_log_is_that_of_an_unbroken_run(tmp_path, left_over):
    unbroken, broken = tmp_path / "unbroken.jsonl", tmp_path / "broken.jsonl"
    fit(RunLog(unbroken))
    with pytest.raises(Crash):
        fit(RunLog(broken), crash_in=3, checkpoint=tmp_path / "saved")
    with broken.open("a") as file:
        file.write(left_over)
    fit(RunLog(broken), checkpoint=tmp_path / "saved", resume=True)
    assert untimed(lines(broken)) == untimed(lines(unbroken))


def test_a_new_run_starts_a_new_log(tmp_path):
    path = tmp_path / "log.jsonl"
    fit(RunLog(path))
    fit(RunLog(path), epochs=1)
    assert [entry["epoch"] for entry in lines(path)] == [0, 1]


def test_a_log_that_cannot_be_written_is_refused_before_training(tmp_path):
    with pytest.raises(FileError, match=r"log.jsonl cannot be written"):
        fit(RunLog(tmp_path / "missing" / "log.jsonl"), crash_in=1)


def scalars(folder) -> dict[str, list[int]]:
    """The epochs at which each number was written, the last event of an epoch counting."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {name: [event.step for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


def test_tensorboard_gets_the_same_numbers_also_after_a_crash(tmp_path):
    pytest.importorskip("tensorboard")
    log = RunLog(tmp_path / "log.jsonl", tensorboard=tmp_path / "board")
    with pytest.raises(Crash):
        fit(log, crash_in=3, checkpoint=tmp_path / "saved")
    fit(log, checkpoint=tmp_path / "saved", resume=True)
    found = scalars(tmp_path / "board")
    assert found["loss"] == [1, 2, 3, 4] and found["score"] == [0, 1, 2, 3, 4]
    assert {"seconds", "items_per_second", "learning_rate/0", "learning_rate/1"} <= set(found)


def test_tensorboard_asked_for_but_missing_names_the_pip_line(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install 'entourage\[tensorboard\]'"):
        fit(RunLog(tmp_path / "log.jsonl", tensorboard=tmp_path / "board"))
