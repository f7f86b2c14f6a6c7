"""Two processes under torchrun learn what one learns alone; only the first writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.runtime import two_processes

from entourage.runtime import distributed

GRADIENTS = ("with_blocks", "without_blocks")
every_loss = pytest.mark.parametrize("loss", two_processes.LOSSES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, one_thread) -> dict[str, Path]:
    """Folders with what one process, and two of them, found."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("one", "two")}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    together = subprocess.Popen(
        [*torchrun, two_processes.__file__, folders["two"]],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    two_processes.main(folders["one"])
    output, _ = together.communicate(timeout=300)
    assert together.returncode == 0, output
    return folders


def found(folder: Path, rank: int) -> dict:
    return json.loads((folder / f"rank{rank}.json").read_text())


def weights(folder: Path, rank: int, prefix: str) -> dict[str, torch.Tensor]:
    tensors = load_file(folder / f"rank{rank}.safetensors")
    return {name: value for name, value in tensors.items() if name.startswith(f"{prefix}.")}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_process_knows_its_place(runs):
    assert found(runs["one"], 0)["place"] == [0, 1, True]
    assert [found(runs["two"], rank)["place"] for rank in (0, 1)] == [[0, 2, True], [1, 2, False]]


def test_rows_are_gathered_in_order_and_their_gradient_is_that_of_the_whole(runs):
    """d/dw of sum_i c_i (x_i w), c = 1, 10, 100 and x = (0, 1), (2, 3), (4, 5)."""
    for folder, rank in ((runs["one"], 0), (runs["two"], 0), (runs["two"], 1)):
        assert found(folder, rank)["gathered"] == [[0, 1], [2, 3], [4, 5]]
        assert found(folder, rank)["gradient"] == 1 + 50 + 900


def test_what_the_first_process_says_counts(runs):
    assert [found(runs["two"], rank)["from_main"] for rank in (0, 1)] == [0.25, 0.25]


@pytest.mark.parametrize("model", [*two_processes.LOSSES, "divided", "intra_batch", "student"])
def test_two_processes_end_with_the_weights_of_one(runs, model):
    alone = weights(runs["one"], 0, model)
    assert len(alone) >= 2
    for rank in (0, 1):
        together = weights(runs["two"], rank, model)
        for name, value in alone.items():
            torch.testing.assert_close(together[name], value, rtol=0, atol=1e-6, msg=name)


@every_loss
def test_two_processes_log_the_losses_of_one(runs, loss):
    alone, together = (lines(runs[name] / f"{loss}.jsonl") for name in ("one", "two"))
    assert [entry["epoch"] for entry in together] == list(range(6))
    assert [entry["loss"] for entry in together[1:]] == pytest.approx([entry["loss"] for entry in alone[1:]], abs=1e-5)


def test_only_the_first_process_reports_and_writes(runs):
    assert set(found(runs["two"], 0)["reporting"]) == {0}
    assert found(runs["two"], 1)["reporting"] == []
    names = [sorted(p.name for p in folder.iterdir() if "rank" not in p.name) for folder in runs.values()]
    assert names[0] == names[1]


def test_the_baseline_system_is_the_same_in_both_processes(runs):
    """Statistics of batch norm come from the shares, so it differs from one process; not between the two."""
    first, second = (weights(runs["two"], rank, "baseline") for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert found(runs["two"], 0)["curve"] == found(runs["two"], 1)["curve"]
    assert found(runs["two"], 0)["curve"][0] == found(runs["one"], 0)["curve"][0]
    assert sorted(path.name for path in (runs["two"] / "baseline").iterdir()) == [
        "checkpoint.safetensors",
        "log.jsonl",
        "refit.jsonl",
        "refit.safetensors",
    ]


def test_the_network_learns_what_it_learns_alone_and_is_written_once(runs):
    """Dropout leaves out the same in every process.

    Some parameters change nothing, as a softmax or a batch norm follows: their gradients are rounding errors, in which
    direction Adam takes whole steps.
    """
    alone, together = (weights(runs[name], 0, "messages") for name in ("one", "two"))
    idle = ("messages.key.bias", "after_feed_forward.weight", "after_feed_forward.bias")
    for name in (name for name in alone if not name.endswith(idle)):
        torch.testing.assert_close(together[name], alone[name], rtol=0, atol=1e-5, msg=name)
    written = sorted(path.name for path in (runs["two"] / "intra_batch").iterdir())
    assert written == ["checkpoint.safetensors", "encoder", "log.jsonl", "network"]


def test_the_cross_image_system_is_the_same_in_both_processes(runs):
    first, second = (weights(runs["two"], rank, "cross_image") for rank in (0, 1))
    assert first and all(torch.equal(first[name], second[name]) for name in first)
    assert found(runs["two"], 0)["cross_image_curve"] == found(runs["two"], 1)["cross_image_curve"]
    assert sorted(path.name for path in (runs["two"] / "cross_image").iterdir()) == [
        "checkpoint.safetensors",
        "cross_image",
        "gradients.jsonl",
        "log.jsonl",
        "refit.jsonl",
        "refit.safetensors",
    ]
    for name in ("one", "two"):  # every value of the whole batch of 6, 16 channels and 2 x 2 places
        for entry in lines(runs[name] / "cross_image" / "gradients.jsonl"):
            assert [sum(entry[key]) for key in GRADIENTS] == [384 - zeros for zeros in entry["zeros"]]
            assert all(sum(entry[key]) > 0 for key in GRADIENTS)


def test_two_processes_count_the_gradients_of_one(runs):
    """Not those of a share, nor world_size times as large: a factor of 2 is three bins."""
    alone, together = (lines(runs[name] / "transformer" / "gradients.jsonl") for name in ("one", "two"))
    assert [entry["epoch"] for entry in alone] == [entry["epoch"] for entry in together] == [1, 2]
    for one, two in zip(alone, together, strict=True):
        for place, key in enumerate(GRADIENTS):
            values = 2 * 9 * 8 * 36  # batches, pictures, channels, places
            assert sum(one[key]) + one["zeros"][place] == sum(two[key]) + two["zeros"][place] == values
            assert sum(one[key]) > 0.9 * values
            moved = sum(abs(a - b) for a, b in zip(one[key], two[key], strict=True))
            assert moved <= 0.02 * values  # by rounding, over a border of the bins


def test_alone_nothing_is_started_and_nothing_changes():
    assert distributed.start() is False
    rows = torch.ones(2, 3, requires_grad=True)
    assert distributed.gathered(rows) is rows
    assert distributed.from_main(0.5) == 0.5
    parameter = torch.nn.Parameter(torch.ones(2))
    distributed.average_gradients([parameter])
    assert parameter.grad is None
    distributed.stop()
    assert (distributed.rank(), distributed.world_size(), distributed.is_main()) == (0, 1, True)
